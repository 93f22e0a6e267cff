import { CliError, exit } from '../kernel/console/command.js';
import type { Rule, RuleList } from '../kernel/core/policy.js';
import type { Registry } from '../kernel/core/tool.js';
import { splitPatterns } from '../kernel/core/tool-patterns.js';
import { type ReadRule, readClaudeRule } from './claude-rules.js';
import { refusedAllow } from '../kernel/permissions/rules.js';
import type { Notice, Settings } from '../kernel/console/run-settings.js';

/** The settings of a run with the rules of its command line. */
export interface AllowedTools {
  readonly settings: Settings;
  /** Returns notices about patterns of the command line that allow nothing. */
  readonly notices: (registry: Registry) => readonly Notice[];
}

/** The patterns of `--allowed-tools`, `--ask-tools` and `--disallowed-tools`, as they were written. */
type RunPatterns = Readonly<Record<RuleList, string>>;

/** Reads the patterns of a run: `bash(git log *), file_edit(src/**), Read`, with our names of tools or Claude Code's.
 * Each is a rule for this run, or a host of `web.allow_domains`. What has no effect is left out with a notice. Throws a
 * `CliError` (2) for a text that should stop calls and is no pattern. */
export function withRunRules(settings: Settings, { allow, ask, deny }: RunPatterns): AllowedTools {
  const allowed = withAllowed(settings, allow);
  const { config } = allowed.settings;
  const { rules } = config.policy;
  const asked = stoppedBy('--ask-tools', 'ask', ask, settings.cwd);
  const denied = stoppedBy('--disallowed-tools', 'deny', deny, settings.cwd);
  const all = { ...rules, ask: [...rules.ask, ...asked.rules], deny: [...rules.deny, ...denied.rules] };
  return {
    settings: { ...allowed.settings, config: { ...config, policy: { ...config.policy, rules: all } } },
    notices: (registry) => [...allowed.notices(registry), ...asked.notices, ...denied.notices],
  };
}

/** The rules of an option that stops calls, and notices about those that have no effect. */
function stoppedBy(
  option: string,
  list: RuleList,
  patterns: string,
  cwd: string,
): { readonly rules: readonly Rule[]; readonly notices: readonly Notice[] } {
  const read = splitPatterns(patterns).map((pattern) => ({ pattern, ...readPattern(option, list, pattern, cwd) }));
  return {
    rules: read.flatMap(({ rules }) => rules),
    notices: read.flatMap(({ pattern, problem }) => (problem === undefined ? [] : [notice(option, pattern, problem)])),
  };
}

function withAllowed(settings: Settings, patterns: string): AllowedTools {
  const { config, cwd } = settings;
  const { policy, web } = config;
  const read = splitPatterns(patterns).map((pattern) => ({
    pattern,
    ...readPattern('--allowed-tools', 'allow', pattern, cwd),
  }));
  const rules = read.flatMap((each) => each.rules).filter((rule) => refusedAllow(rule) === null);
  const allow = [...policy.rules.allow, ...rules];
  const allowDomains = [...web.allowDomains, ...read.flatMap(({ domains = [] }) => domains)];
  const run = { ...config, policy: { ...policy, rules: { ...policy.rules, allow } }, web: { ...web, allowDomains } };
  return {
    settings: { ...settings, config: run },
    notices: (registry) =>
      read.flatMap(({ pattern, rules: own, problem }) => {
        if (problem !== undefined) return [notice('--allowed-tools', pattern, problem)];
        const problems = own.flatMap((rule) => refusedAllow(rule) ?? missing(rule, registry) ?? []);
        const [first] = problems;
        return first !== undefined && problems.length === own.length
          ? [notice('--allowed-tools', pattern, `allows nothing: ${first}`)]
          : [];
      }),
  };
}

function notice(option: string, pattern: string, problem: string): Notice {
  const message = `${option}: \`${pattern}\` ${problem}.`;
  return { level: 'warn', code: 'allowed_tools', message };
}

/** Tools of MCP servers are not known before they are searched for. */
function missing({ tool = '' }: Rule, registry: Registry): string | null {
  return registry.get(tool) || tool.startsWith('mcp__') ? null : `there is no tool ${tool} here`;
}

/** An invalid pattern allows nothing. In a list that stops calls it is an error, for its lack of effect would go unnoticed. */
function readPattern(option: string, list: RuleList, pattern: string, cwd: string): ReadRule {
  const read = readClaudeRule(pattern, list, { cwd });
  if (read !== null) return read;
  if (list === 'allow') return { rules: [], problem: `is not a pattern and is ignored; for example: ${examples}` };
  throw new CliError(
    exit.usage,
    `${option}: \`${pattern}\`: it is not a pattern`,
    `For example: ${option} "${examples}".`,
  );
}

const examples = 'bash(git log *), bash(npm test), file_edit(src/**)';
