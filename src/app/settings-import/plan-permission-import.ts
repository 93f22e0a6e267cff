import { dirname } from 'node:path';
import { keepSetting } from '../../kernel/console/keep-setting.js';
import {
  type Importer,
  type ImportHost,
  type ImportItem,
  type ImportPlan,
  planSource,
  skipItem,
  type SourcePlace,
  unreadableSource,
} from '../../kernel/console/importer.js';
import { foreignTarget, isReadInPlace } from '../../kernel/console/program-folders.js';
import { parseConfigText, readConfigFile } from '../../kernel/config/settings-file.js';
import type { Settings } from '../../kernel/console/run-settings.js';
import { isRecord } from '../../kernel/core/json.js';
import { type Rule, ruleKey, type RuleList } from '../../kernel/core/policy.js';
import { refusedAllow } from '../../kernel/permissions/rules.js';
import { readClaudeRule, type ReadRule } from '../claude-rules.js';
import { type ForeignRule, type RuleSource, ruleSources } from './foreign-rules.js';
import { keepRules, ownRules } from '../own-rules.js';

/** Imports permission rules of other programs into `rules` of the user's configuration. */
export const permissionImporter: Importer = { kind: 'permissions', plan: planPermissions };

const lists: readonly RuleList[] = ['allow', 'ask', 'deny'];

async function planPermissions({ settings, programs }: ImportHost): Promise<readonly ImportPlan[]> {
  const target = await createRuleImport(settings);
  return programs.flatMap((program) =>
    ruleSources(program, settings).flatMap((source): readonly ImportPlan[] => {
      const place: SourcePlace = { program, kind: 'permissions', path: source.path, scope: source.scope };
      try {
        const items = source.rules().map((rule) => itemOf(rule, source, liveLists(place, settings, target), target));
        return items.length === 0 ? [] : [planSource(place, items)];
      } catch (error) {
        return [unreadableSource(place, 'file', error)];
      }
    }),
  );
}

/** Returns the lists that count where they are: those of Claude Code that stop calls, and all once the user trusts
 * them. */
function liveLists({ program, path, scope }: SourcePlace, settings: Settings, target: RuleImport): readonly RuleList[] {
  if (program !== 'claude-code') return [];
  if (scope === 'project') return lists;
  if (!isReadInPlace(dirname(path), settings)) return [];
  return target.isTrusted ? lists : ['ask', 'deny'];
}

function itemOf(
  { name, list, text, problem }: ForeignRule,
  { scope }: RuleSource,
  live: readonly RuleList[],
  target: RuleImport,
): ImportItem {
  const shown = `${list} ${name}`;
  if (text === null) return skipItem(shown, problem ?? 'it has no meaning here');
  const plain = readClaudeRule(text, list, { cwd: '/' });
  if (plain === null) return skipItem(shown, 'it is not a permission rule');
  if (!hasEffect(plain)) return skipItem(shown, plain.problem ?? 'it has no meaning here');
  if (live.includes(list)) return { name: shown, state: 'exists' };
  if (scope === 'project') return skipItem(shown, 'it would count in every project');
  const read = readAnywhere(text, list);
  return typeof read === 'string' ? skipItem(shown, read) : target.item(shown, list, read);
}

function hasEffect({ rules, domains = [] }: ReadRule): boolean {
  return rules.length + domains.length > 0;
}

/** Reads a rule for every folder; a text says why there is none. A relative path in a rule that stops calls is meant
 * at any depth. */
function readAnywhere(text: string, list: RuleList): ReadRule | string {
  const [one, other] = ['/a', '/**'].map((cwd) => readClaudeRule(text, list, { cwd, folder: cwd }));
  if (!one || !other) return 'it is not a permission rule';
  if (JSON.stringify(one) !== JSON.stringify(other))
    return list === 'allow' ? 'its path starts in the working directory; write a rule with an absolute path' : other;
  const refused = list === 'allow' ? one.rules.map(refusedAllow).find((why) => why !== null) : undefined;
  return refused ?? one;
}

interface RuleImport {
  /** All rules of Claude Code in the home folder of the user count already. */
  readonly isTrusted: boolean;
  item(name: string, list: RuleList, read: ReadRule): ImportItem;
}

async function createRuleImport(settings: Settings): Promise<RuleImport> {
  const { config: file } = settings.config.files;
  const foreign = foreignTarget(file, settings);
  const known = new Set<string>();
  for (const list of lists) for (const rule of await ownRules(file, list)) known.add(`${list} ${ruleKey(rule)}`);
  const domains = new Set<string>(settings.config.web.allowDomains);
  return {
    isTrusted: settings.projects.answerFor(settings, await settings.projects.userFiles(settings)) === true,
    item: (name, list, { rules, problem, domains: hosts = [] }) => {
      const fresh = rules.filter((rule) => !known.has(`${list} ${ruleKey(rule)}`));
      const freshHosts = hosts.filter((host) => !domains.has(host));
      if (fresh.length + freshHosts.length === 0) return { name, state: 'exists' };
      if (foreign !== null) return skipItem(name, foreign);
      for (const rule of fresh) known.add(`${list} ${ruleKey(rule)}`);
      for (const host of freshHosts) domains.add(host);
      const notes = problem === undefined ? [] : [problem];
      return { name, state: 'take', notes, take: async () => await takeRule(settings, list, fresh, freshHosts) };
    },
  };
}

async function takeRule(
  settings: Settings,
  list: RuleList,
  rules: readonly Rule[],
  hosts: readonly string[],
): Promise<void> {
  if (rules.length > 0) {
    const { kept } = await keepRules(settings, list, (own) => [...own, ...rules]);
    if (!kept.done) throw new Error(kept.said);
  }
  if (hosts.length === 0) return;
  const { done, said } = await keepSetting(settings, settings.ephemeral, 'web.allow_domains', [
    ...new Set([...(await ownDomains(settings.config.files.config)), ...hosts]),
  ]);
  if (!done) throw new Error(said);
}

/** Returns the hosts in the configuration file; empty where there is none or it cannot be read. */
async function ownDomains(file: string): Promise<readonly unknown[]> {
  const content = readConfigFile(file);
  const parsed = content.kind === 'text' ? await parseConfigText(content.text) : null;
  const web = parsed?.kind === 'object' ? parsed.value['web'] : undefined;
  const hosts = isRecord(web) ? web['allow_domains'] : undefined;
  return Array.isArray(hosts) ? hosts : [];
}
