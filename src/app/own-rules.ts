import { keepSetting } from '../kernel/console/keep-setting.js';
import { parseConfigText, readConfigFile } from '../kernel/config/settings-file.js';
import { isRecord } from '../kernel/core/json.js';
import { type SaveResult, type Rule, ruleKey, type RuleList } from '../kernel/core/policy.js';
import { readRule } from '../kernel/permissions/rules.js';
import { counted } from '../kernel/tools/define-tool.js';
import type { Settings } from '../kernel/console/run-settings.js';

/** One list of the user's rules before and after a change. */
interface KeptRules {
  readonly own: readonly Rule[];
  readonly next: readonly Rule[];
  readonly kept: SaveResult;
}

/** Changes one list of rules in the user's configuration, without the rules of projects and of the command line. Reads
 * the file again first: another session may have written to it. */
export async function keepRules(
  settings: Pick<Settings, 'config' | 'loaded' | 'ephemeral'>,
  list: RuleList,
  change: (own: readonly Rule[]) => readonly Rule[],
): Promise<KeptRules> {
  const own = await ownRules(settings.config.files.config, list);
  const changed = change(own);
  const next = [...new Map(changed.map((rule) => [ruleKey(rule), rule])).values()];
  const { done, said } = await keepSetting(settings, settings.ephemeral, `rules.${list}`, next);
  const short = said.replace(JSON.stringify(next), () => counted(next.length, 'rule'));
  return { own, next, kept: { done, said: short } };
}

/** Returns a list of the configuration file; empty where there is none or it cannot be read. */
export async function ownRules(file: string, list: RuleList): Promise<readonly Rule[]> {
  const content = readConfigFile(file);
  const parsed = content.kind === 'text' ? await parseConfigText(content.text) : null;
  if (parsed?.kind !== 'object' || !isRecord(parsed.value['rules'])) return [];
  const rules = parsed.value['rules'][list];
  return Array.isArray(rules) ? rules.flatMap((rule: unknown) => readRule(rule) ?? []) : [];
}
