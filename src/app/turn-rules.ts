import type { Rule } from '../kernel/core/policy.js';
import type { Settings } from '../kernel/console/run-settings.js';
import { refusedAllow } from '../kernel/permissions/rules.js';
import type { Registry } from '../kernel/core/tool.js';
import type { ToolChoice } from '../kernel/core/turn-settings.js';
import { isChosen, mayReach } from '../kernel/tools/chosen-tools.js';
import { claudeNames } from '../kernel/tools/foreign-tool-names.js';
import { createSubsetRegistry } from '../kernel/tools/registry.js';
import { readClaudeRule } from './claude-rules.js';

/** Returns the rules for calls that the file of a command allows in its turn. They allow less than a rule of the user
 * does: nothing dangerous, and no edit outside of the directories of the run. Rules that deny or ask, plan mode and the
 * mode `always` go before them. */
export function readTurnRules(
  settings: Settings,
  patterns: readonly string[],
): { readonly rules: readonly Rule[]; readonly problems: readonly string[] } {
  const read = patterns.flatMap(spelledNames).map((pattern) => ({ pattern, ...turnRules(pattern, settings) }));
  const problems = read.flatMap(({ pattern, problem }) =>
    problem === null ? [] : [`\`${pattern}\` of its file allows nothing: ${problem}.`],
  );
  return { rules: read.flatMap((one) => one.rules), problems };
}

/** Writes a name of another program as Claude Code does: `read`, `run_shell_command(git log)`. */
function spelledNames(pattern: string): readonly string[] {
  const [, name = '', rest = ''] = /^([a-z][\w]*)(\(.*\))?$/s.exec(pattern) ?? [];
  return (name === '' ? null : claudeNames(name))?.map((theirs) => `${theirs}${rest}`) ?? [pattern];
}

function turnRules(
  pattern: string,
  settings: Settings,
): { readonly rules: readonly Rule[]; readonly problem: string | null } {
  const read = readClaudeRule(pattern, 'allow', { cwd: settings.cwd });
  if (read === null) return { rules: [], problem: 'it is not a pattern such as Bash(git log *) or Edit(src/**)' };
  const { rules, domains = [], problem } = read;
  const pages = domains.map((domain): Rule => ({ tool: 'web_fetch', pattern: domain }));
  const all = [...rules, ...pages].flatMap((rule) => withinRun(rule, settings));
  const counting = all.filter((rule) => refusedAllow(rule) === null);
  const [first] = all.flatMap((rule) => refusedAllow(rule) ?? []);
  const why = counting.length > 0 ? null : (problem?.replace(/^allows nothing: /, '') ?? first ?? null);
  return { rules: counting.map((rule) => ({ ...rule, risk: 'mutating' })), problem: why };
}

const writers: readonly string[] = ['file_edit', 'file_write'];

/** `Edit` alone is about the files of the run. */
function withinRun(rule: Rule, { cwd, directories }: Settings): readonly Rule[] {
  if (rule.path !== undefined || !writers.includes(rule.tool ?? '')) return [rule];
  const added = directories.list().flatMap(({ path, readOnly }) => (readOnly ? [] : [path]));
  return [cwd, ...added].map((folder) => ({ ...rule, path: `${folder}/**` }));
}

/** Returns the chosen tools of a catalogue. */
export function chosenRegistry(whole: Registry, choice: ToolChoice): Registry {
  return createSubsetRegistry(whole, {
    offers: (name) => {
      const tool = whole.get(name);
      return tool !== undefined && isChosen(choice, tool);
    },
    reaches: (target) => mayReach(choice, target),
  });
}
