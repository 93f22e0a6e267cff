import { join } from 'node:path';
import gitTables from '../../config/commands/git.json' with { type: 'json' };
import { CliError, exit } from '../kernel/console/command.js';
import type { Rule } from '../kernel/core/policy.js';
import type { Registry } from '../kernel/core/tool.js';
import { isServerPattern } from '../kernel/core/tool-patterns.js';
import { ourName, ruledTools } from '../kernel/tools/claude-dialect.js';
import { refusedAllow } from '../kernel/permissions/rules.js';
import type { Notice, Settings } from '../kernel/console/run-settings.js';

/** The settings of a run with the rules of its command line. */
export interface AllowedTools {
  readonly settings: Settings;
  /** Returns notices about patterns of the command line that allow nothing. */
  readonly notices: (registry: Registry) => readonly Notice[];
}

/** The meaning of one pattern. `problem` says why a part of it, or all of it, has no effect. */
interface ReadPattern {
  readonly rules: readonly Rule[];
  /** Hosts that pages may be read from. */
  readonly domains?: readonly string[];
  readonly problem?: string;
}

/** Reads `--allowed-tools`: `bash(git log *), file_edit(src/**), Read`, with our names of tools or Claude Code's. Each
 * is a rule in `rules.allow` for this run, or a host of `web.allow_domains`. What cannot be allowed is left out with a
 * notice. Throws a `CliError` (2) for what is not a pattern. */
export function withAllowed(settings: Settings, patterns: string): AllowedTools {
  const { config, cwd } = settings;
  const { policy, web } = config;
  const read = splitPatterns(patterns).map((pattern) => ({ pattern, ...readPattern(pattern, cwd) }));
  const rules = read.flatMap((each) => each.rules).filter((rule) => refusedAllow(rule) === null);
  const allow = [...policy.rules.allow, ...rules];
  const allowDomains = [...web.allowDomains, ...read.flatMap(({ domains = [] }) => domains)];
  const run = { ...config, policy: { ...policy, rules: { ...policy.rules, allow } }, web: { ...web, allowDomains } };
  return {
    settings: { ...settings, config: run },
    notices: (registry) =>
      read.flatMap(({ pattern, rules: own, problem }) => {
        if (problem !== undefined) return [notice(pattern, problem)];
        const problems = own.flatMap((rule) => refusedAllow(rule) ?? missing(rule, registry) ?? []);
        const [first] = problems;
        return first !== undefined && problems.length === own.length
          ? [notice(pattern, `allows nothing: ${first}`)]
          : [];
      }),
  };
}

function notice(pattern: string, problem: string): Notice {
  const message = `--allowed-tools: \`${pattern}\` ${problem}.`;
  return { level: 'warn', code: 'allowed_tools', message };
}

/** Tools of MCP servers are not known before they are searched for. */
function missing({ tool = '' }: Rule, registry: Registry): string | null {
  return registry.get(tool) || tool.startsWith('mcp__') ? null : `there is no tool ${tool} here`;
}

/** Splits at commas and spaces that stand outside of brackets. */
function splitPatterns(text: string): readonly string[] {
  const found: string[] = [];
  let current = '';
  let depth = 0;
  for (const char of text) {
    if (char === '(') depth++;
    if (char === ')') depth = Math.max(0, depth - 1);
    if (depth > 0 || !/[\s,]/.test(char)) current += char;
    else {
      found.push(current);
      current = '';
    }
  }
  return [...found, current].filter((pattern) => pattern !== '');
}

function readPattern(pattern: string, cwd: string): ReadPattern {
  const [, name = '', inside] = /^([A-Za-z][\w-]*\*?(?:[\w*-]*))(?:\((.*)\))?$/s.exec(pattern) ?? [];
  if (name === '') throw refused(pattern, 'it is not a pattern');
  if (inside === undefined) {
    if (name.includes('*') && !isServerPattern(name))
      return nothing('only tools of MCP servers can be named with a star');
    return { rules: [{ tool: ourName(name) }] };
  }
  return bracketRules(ruledTools(name), inside.trim(), cwd);
}

function bracketRules(tools: readonly string[], text: string, cwd: string): ReadPattern {
  const [tool = ''] = tools;
  if (tool === 'bash') return commandRules(text);
  if (tool === 'web_fetch') return domainRules(text);
  if (withoutPaths.includes(tool) || isServerPattern(tool))
    return text === '*'
      ? { rules: [{ tool }] }
      : nothing(`parentheses have no meaning for ${tool} here; allow it by its name`);
  return pathRules(text, cwd, tools);
}

function nothing(why: string): ReadPattern {
  return { rules: [], problem: `allows nothing: ${why}` };
}

/** Tools of ours whose brackets, in Claude Code's rules, hold something else than paths. */
const withoutPaths: readonly string[] = ['agent', 'skill', 'web_search', 'ask_user'];

/** `git log *`, `git log:*` and `git log*`, or a whole command. A star alone is every command. */
function commandRules(text: string): ReadPattern {
  if (text === '') return nothing('there is no command in the parentheses');
  if (text === '*' || text === ':*') return { rules: [{ tool: 'bash' }] };
  const open = /^(.*?)(?:\s+\*|:\*|\*)$/s.exec(text);
  const argv = (open?.[1] ?? text).split(/\s+/).filter((word) => word !== '');
  if (argv.length === 0 || argv.some((word) => word.includes('*')))
    return nothing('put the star at the end of the command, where it matches all further words');
  const rules = everyVerb({ tool: 'bash', argv, ...(open ? {} : { exact: true }) });
  return open && !/(?:\s|:)\*$/.test(text) ? wholeWords(argv, rules) : { rules };
}

/** `git add*` does not allow `git addx`: users hardly mean that. */
function wholeWords(argv: readonly string[], rules: readonly Rule[]): ReadPattern {
  if (rules.every((rule) => refusedAllow(rule) !== null)) return { rules };
  const last = argv.at(-1) ?? '';
  return { rules, problem: `allows \`${argv.join(' ')}\` and words after it, no word longer than ${last}` };
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

/** `domain:example.com`, `domain:*.example.com`. */
function domainRules(text: string): ReadPattern {
  if (text === '*' || text === 'domain:*') return { rules: [{ tool: 'web_fetch' }] };
  const [, domain] = /^domain:(?:\*\.)?((?:[\p{L}\p{N}-]+\.)*[\p{L}\p{N}-]+)$/u.exec(text) ?? [];
  if (domain === undefined) return nothing('allow a page by its host: WebFetch(domain:example.com)');
  return { rules: [], domains: [domain.toLowerCase()] };
}

/** Relative paths start in the working directory; `//` begins an absolute one, as Claude Code has it. A name without
 * `/` is meant at any depth. */
function pathRules(path: string, cwd: string, tools: readonly string[]): ReadPattern {
  if (path === '' || /^\w+:/.test(path)) return nothing('the parentheses of this tool take only paths');
  const base = path.includes('/') || path === '**' ? cwd : join(cwd, '**');
  const glob = path.startsWith('//') ? path.slice(1) : /^[/~]/.test(path) ? path : join(base, path);
  return { rules: tools.map((tool) => ({ tool, path: glob })) };
}

function refused(pattern: string, problem: string): CliError {
  return new CliError(
    exit.usage,
    `--allowed-tools: \`${pattern}\`: ${problem}`,
    'For example: --allowed-tools "bash(git log *), bash(npm test), file_edit(src/**)".',
  );
}
