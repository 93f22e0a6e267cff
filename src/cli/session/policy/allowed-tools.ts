import { join } from 'node:path';
import gitTables from '../../../../config/commands/git.json' with { type: 'json' };
import { CliError, exit } from '../../../commands/command.js';
import type { Rule } from '../../../core/policy.js';
import type { Registry } from '../../../core/tool.js';
import { ourName } from '../../../extensions/hooks/claude-dialect.js';
import { refusedAllow } from '../../../policy/rules.js';
import type { Notice, Settings } from '../../settings.js';

/** The settings of a run with the rules of its command line. */
export interface AllowedTools {
  readonly settings: Settings;
  /** What of the command line allows nothing. */
  readonly notices: (registry: Registry) => readonly Notice[];
}

/** Reads `--allowed-tools`: `bash(git log *), file_edit(src/**), Read`, with our names of tools or Claude Code's. Each
 * is a rule in `rules.allow` for this run. What no rule may allow is left out with a notice. Throws a `CliError` (2)
 * for what is no pattern. */
export function withAllowed(settings: Settings, patterns: string): AllowedTools {
  const { config, cwd } = settings;
  const { policy } = config;
  const read = splitPatterns(patterns).flatMap((pattern) =>
    everyVerb(ruleOf(pattern, cwd)).map((rule) => ({ pattern, rule })),
  );
  const rules = read.map(({ rule }) => rule).filter((rule) => refusedAllow(rule) === null);
  const allow = [...policy.rules.allow, ...rules];
  return {
    settings: { ...settings, config: { ...config, policy: { ...policy, rules: { ...policy.rules, allow } } } },
    notices: (registry) =>
      read.flatMap(({ pattern, rule }) => {
        const problem = refusedAllow(rule) ?? missing(rule, registry);
        return problem === null ? [] : [notice(pattern, problem)];
      }),
  };
}

function notice(pattern: string, problem: string): Notice {
  const message = `--allowed-tools: \`${pattern}\` allows nothing: ${problem}.`;
  return { level: 'warn', code: 'allowed_tools', message };
}

/** Tools of MCP servers are not known before they are searched for. */
function missing({ tool = '' }: Rule, registry: Registry): string | null {
  return registry.get(tool) || tool.startsWith('mcp__') ? null : `there is no tool ${tool} here`;
}

/** Splits at commas and spaces that stand outside of brackets. */
function splitPatterns(text: string): readonly string[] {
  return text.match(/[^\s,(]+(?:\([^)]*\))?|\([^)]*\)/g) ?? [];
}

function ruleOf(pattern: string, cwd: string): Rule {
  const [, name = '', inside] = /^([A-Za-z][\w-]*)(?:\((.*)\))?$/s.exec(pattern) ?? [];
  if (name === '') throw refused(pattern, 'it is no pattern');
  const tool = ourName(name);
  if (inside === undefined) return { tool };
  return tool === 'bash' ? commandRule(pattern, inside.trim()) : pathRule(pattern, inside.trim(), cwd, tool);
}

/** `git log *`, `git log:*` as Claude Code has it, or a whole command. A star alone is every command. */
function commandRule(pattern: string, text: string): Rule {
  if (text === '*' || text === ':*') return { tool: 'bash' };
  const open = /^(.*?)(?:\s+\*|:\*)$/s.exec(text);
  const argv = (open?.[1] ?? text).split(/\s+/).filter((word) => word !== '');
  if (argv.length === 0 || argv.some((word) => word.includes('*')))
    throw refused(pattern, 'a star stands for all further words, at the end behind a space');
  return { tool: 'bash', argv, ...(open ? {} : { exact: true }) };
}

const scripts = ['add', 'build', 'ci', 'i', 'install', 'remove', 'run', 'start', 'stop', 'test', 'update'];

/** Subcommands that change no more than the project. Of git those that policy has no entry for: its table has the
 * others. */
const plainVerbs: Readonly<Record<string, readonly string[]>> = {
  git: ['add', 'cherry-pick', 'commit', 'merge', 'mv', 'revert'],
  npm: [...scripts, 'ls', 'outdated', 'rebuild', 'restart', 'run-script', 't', 'view', 'why'],
  pnpm: [...scripts, 'ls', 'outdated', 'rebuild', 'why'],
  yarn: [...scripts, 'list', 'outdated', 'why'],
  bun: scripts,
  cargo: ['add', 'bench', 'build', 'check', 'clean', 'clippy', 'doc', 'fmt', 'remove', 'test', 'tree', 'update'],
  go: ['build', 'clean', 'doc', 'fmt', 'get', 'list', 'mod', 'test', 'version', 'vet'],
};

/** `git *` and `npm *` stand for the subcommands that are known, as far as a rule may allow them and they are not
 * dangerous: such programs run whatever a setting, an alias or a package names. */
function everyVerb(rule: Rule): readonly Rule[] {
  const { argv: [program = '', ...rest] = [], exact } = rule;
  const plain = Object.hasOwn(plainVerbs, program) ? plainVerbs[program] : undefined;
  if (plain === undefined || rest.length > 0 || exact) return [rule];
  const names = program === 'git' ? gitTables.programs.flatMap((entry) => entry.names) : [];
  const verbs = new Set([...plain, ...names.flatMap((name) => name.match(/^git (\S+)/)?.[1] ?? [])]);
  const rules = [...verbs].map((verb): Rule => ({ tool: 'bash', argv: [program, verb], risk: 'mutating' }));
  return rules.filter((each) => refusedAllow(each) === null);
}

/** Relative paths start in the working directory; `//` begins an absolute one, as Claude Code has it. */
function pathRule(pattern: string, path: string, cwd: string, tool: string): Rule {
  if (path === '' || /^\w+:/.test(path)) throw refused(pattern, 'only paths stand in the brackets of such a tool');
  if (path.startsWith('//')) return { tool, path: path.slice(1) };
  return { tool, path: /^[/~]/.test(path) ? path : join(cwd, path) };
}

function refused(pattern: string, problem: string): CliError {
  return new CliError(
    exit.usage,
    `--allowed-tools: \`${pattern}\`: ${problem}`,
    'For example: --allowed-tools "bash(git log *), bash(npm test), file_edit(src/**)".',
  );
}
