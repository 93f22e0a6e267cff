import gitTables from '../../config/commands/git.json' with { type: 'json' };
import { join } from 'node:path';
import type { Rule, RuleList } from '../kernel/core/policy.js';
import { entriesOf } from '../kernel/core/lists.js';
import { isServerPattern } from '../kernel/core/tool-patterns.js';
import { hasSubject } from '../kernel/core/call-subject.js';
import { ourName, ruledTools } from '../kernel/tools/claude-names.js';
import { refusedAllow } from '../kernel/permissions/rules.js';

/** The folders that paths in a rule start in. */
interface RulePlace {
  /** Relative paths start here. */
  readonly cwd: string;
  /** A path with `/` in front starts here: the project of a settings file. Absent: such a path is absolute. */
  readonly folder?: string;
}

/** The meaning of one rule of Claude Code. `problem` says why a part of it, or all of it, has no effect. */
export interface ReadRule {
  readonly rules: readonly Rule[];
  /** Hosts that pages may be read from; of an allow rule. */
  readonly domains?: readonly string[];
  readonly problem?: string;
}

/** Reads a permission rule of Claude Code, with our names of tools or theirs: `Bash(git log *)`, `Edit(src/**)`,
 * `WebFetch(domain:example.com)`, `mcp__server__*`, `Skill(name)`. Returns null for a text that is no rule. A rule that
 * denies or asks is read as the stricter of two meanings, one that allows as the narrower.
 * Source: code.claude.com/docs/en/permissions, read 2026-11. */
export function readClaudeRule(text: string, list: RuleList, place: RulePlace): ReadRule | null {
  const [, name = '', inside] = /^([A-Za-z][\w-]*\*?(?:[\w*-]*))(?:\((.*)\))?$/s.exec(text.trim()) ?? [];
  if (name === '') return null;
  return inside === undefined ? wholeTool(name, list) : bracketRules(ruledTools(name), inside.trim(), list, place);
}

function bracketRules(tools: readonly string[], argument: string, list: RuleList, place: RulePlace): ReadRule {
  const [tool = ''] = tools;
  if (tool === 'bash') return list === 'allow' ? allowedCommands(argument) : stoppedCommands(argument);
  if (tool === 'web_fetch') return domainRules(argument, list);
  if (argument === '*') return { rules: tools.map((each) => ({ tool: each })) };
  if (hasSubject(tool)) return { rules: [{ tool, pattern: openPattern(argument) }] };
  if (isServerPattern(tool) || tool === 'ask_user')
    return nothing(list, `parentheses have no meaning for ${tool} here; use its name alone`);
  return pathRules(argument, list, tools, place);
}

function nothing(list: RuleList, why: string): ReadRule {
  const acts: Readonly<Record<RuleList, string>> = { allow: 'allows', ask: 'asks about', deny: 'denies' };
  return { rules: [], problem: `${acts[list]} nothing: ${why}` };
}

function wholeTool(name: string, list: RuleList): ReadRule {
  if (name.includes('*') && !isServerPattern(name))
    return nothing(list, 'only tools of MCP servers can be named with a star');
  const tools = list === 'allow' ? [ourName(name)] : ruledTools(name);
  return { rules: tools.map((tool) => ({ tool })) };
}

/** `name:*` and `name *` are `name` with any words behind it. */
function openPattern(text: string): string {
  return text.replace(/:\*$/, ' *');
}

/** `git log *`, `git log:*` and `git log*`, a whole command, or stars elsewhere: `npm run *:dev`. */
function allowedCommands(text: string): ReadRule {
  if (text === '') return nothing('allow', 'there is no command in the parentheses');
  if (text === '*' || text === ':*') return { rules: [{ tool: 'bash' }] };
  const open = /^(.*?)(?:\s+\*|:\*|\*)$/s.exec(text);
  const words = (open?.[1] ?? text).split(/\s+/).filter((word) => word !== '');
  const argv = words.slice(0, words.findIndex((word) => word.includes('*')) >>> 0);
  if (argv.length === 0) return nothing('allow', 'the command must not begin with a star');
  if (argv.length < words.length)
    return { rules: [{ tool: 'bash', argv, pattern: openPattern(text), risk: 'mutating' }] };
  const rules = everyVerb({ tool: 'bash', argv, ...(open ? {} : { exact: true }) });
  return open && !/(?:\s|:)\*$/.test(text) ? wholeWords(argv, rules) : { rules };
}

/** `git add*` does not allow `git addx`: users hardly mean that. */
function wholeWords(argv: readonly string[], rules: readonly Rule[]): ReadRule {
  if (rules.every((rule) => refusedAllow(rule) !== null)) return { rules };
  const last = argv.at(-1) ?? '';
  return { rules, problem: `allows \`${argv.join(' ')}\` and words after it, no word longer than ${last}` };
}

/** The leading words of a command are looked for behind options and wrappers, too; with other stars, the text of the
 * command decides. */
function stoppedCommands(text: string): ReadRule {
  if (text === '') return nothing('deny', 'there is no command in the parentheses');
  if (text === '*' || text === ':*') return { rules: [{ tool: 'bash' }] };
  const words = text.replace(/(?:\s+|:)?\*$/, '').split(/\s+/);
  const leading = words.some((word) => word.includes('*')) ? [] : [{ tool: 'bash', argv: words }];
  return { rules: [...leading, { tool: 'bash', pattern: openPattern(text) }] };
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
  const names = program === 'git' ? judgedCommands() : [];
  const verbs = new Set([...plain, ...names.flatMap((name) => name.match(/^git (\S+)/)?.[1] ?? [])]);
  const rules = [...verbs].map((verb): Rule => ({ tool: 'bash', argv: [program, verb], risk: 'mutating' }));
  return rules.filter((each) => refusedAllow(each) === null);
}

/** Lists the commands of git that policy judges by their words. An entry without a field of its own is not judged, and no
 * such rule allows one that is always dangerous. */
function judgedCommands(): readonly string[] {
  const isJudged = (entry: object): boolean =>
    'rules' in entry || (!('danger' in entry) && Object.keys(entry).some((key) => key !== 'names'));
  return gitTables.programs.filter(isJudged).flatMap((entry) => entriesOf(entry.names));
}

/** `domain:example.com`, `domain:*.example.com`. A rule that stops holds for the subdomains, too. */
function domainRules(text: string, list: RuleList): ReadRule {
  if (text === '*' || text === 'domain:*') return { rules: [{ tool: 'web_fetch' }] };
  const [, given] = /^domain:(?:\*\.)?((?:[\p{L}\p{N}-]+\.)*[\p{L}\p{N}-]+)$/u.exec(text) ?? [];
  if (given === undefined) return nothing(list, 'name a page by its host: WebFetch(domain:example.com)');
  const domain = given.toLowerCase();
  if (list === 'allow') return { rules: [], domains: [domain] };
  return { rules: [domain, `*.${domain}`].map((pattern) => ({ tool: 'web_fetch', pattern })) };
}

/** Patterns of paths are those of .gitignore: `//` begins an absolute path, `/` one below the folder of the settings, a
 * name without `/` is meant at any depth, and a folder means all that is in it. A rule that stops reading stops every
 * call that touches the path, commands too; one that stops editing, every call that writes it. */
function pathRules(text: string, list: RuleList, tools: readonly string[], { cwd, folder }: RulePlace): ReadRule {
  if (text === '' || /^\w+:/.test(text)) return nothing(list, 'the parentheses of this tool take only paths');
  const glob = absoluteGlob(text, cwd, folder);
  if (list === 'allow') return { rules: tools.map((tool) => ({ tool, path: glob })) };
  const globs = /\/(?:\*\*)?$/.test(glob) ? [glob.replace(/\/(?:\*\*)?$/, '/**')] : [glob, `${glob}/**`];
  const writes = tools.some((tool) => tool === 'file_edit' || tool === 'file_write') ? { writes: true } : {};
  return { rules: globs.map((path) => ({ path, ...writes })) };
}

function absoluteGlob(text: string, cwd: string, folder: string | undefined): string {
  if (text.startsWith('//')) return text.slice(1);
  if (text.startsWith('~')) return text;
  if (text.startsWith('/')) return folder === undefined ? text : join(folder, text);
  const base = text.replace(/\/$/, '').includes('/') || text === '**' ? cwd : join(cwd, '**');
  return join(base, text);
}
