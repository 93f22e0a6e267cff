import { matchesStars } from '../../kernel/core/star-pattern.js';
import { join, resolve } from 'node:path';
import { matchesTool } from '../../kernel/core/tool-patterns.js';
import type { HookedCall } from '../../kernel/core/hooks.js';
import { compileGlob } from '../../kernel/tools/search/compiled-glob.js';
import { hasSubject, subjectOf } from '../../kernel/core/call-subject.js';
import { ruledTools, theirNames } from '../../kernel/tools/claude-names.js';

/** The folders that the patterns of a hook start in. */
interface PatternRoots {
  readonly directory: string;
  readonly home: string;
}

/** The call that a condition is held against. */
interface Subject {
  readonly call: HookedCall;
  readonly cwd: string;
  readonly from: PatternRoots;
}

type ConditionTest = (subject: Subject) => boolean;

const fileTools: readonly string[] = ['file_read', 'file_edit', 'file_write', 'grep', 'glob'];

/** Parses the `if` of a hook, one permission rule: `Bash(git push*)`, `Edit(*.ts)`, `WebFetch(domain:example.com)`,
 * `mcp__github__*`. Returns null for a text that is no such rule.
 * Source: code.claude.com/docs/en/hooks, "if", and /permissions, read 2026-11. */
export function parseCondition(text: string): ConditionTest | null {
  const [, name = '', inside] = /^([A-Za-z*][\w*.-]*)(?:\((.*)\))?$/s.exec(text.trim()) ?? [];
  if (name === '') return null;
  const tools = ruledTools(name);
  const isMeant = ({ tool }: HookedCall): boolean =>
    tools.includes(tool) || matchesTool(name, [tool, ...theirNames(tool)], [serverOf(tool)]);
  const rule = inside?.trim() ?? '*';
  if (rule === '' || /\)\s*(?:&&|\|\|)/.test(rule)) return null;
  if (rule === '*' || rule === ':*') return ({ call }) => isMeant(call);
  const test = argumentTest(tools, rule);
  return test && ((subject) => isMeant(subject.call) && test(subject));
}

/** A name that has a server of two underscores in it is matched by its pattern with a star alone. */
function serverOf(tool: string): string {
  return /^mcp__(.+?)__/.exec(tool)?.[1] ?? '';
}

function argumentTest(tools: readonly string[], rule: string): ConditionTest | null {
  const [tool = ''] = tools;
  if (tool === 'bash') return ({ call }) => runsCommand(stringOrEmpty(call.args['command']), rule);
  if (fileTools.includes(tool)) return pathTest(rule);
  if (tool === 'web_fetch') return hostTest(rule);
  if (!hasSubject(tool)) return null;
  const test = starTest(rule);
  return ({ call }) => test(subjectOf(call.tool, call.args) ?? '');
}

function stringOrEmpty(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** `*` matches any characters. ` *` and `:*` at the end also match the text before them alone. */
function starTest(rule: string): (text: string) => boolean {
  const open = /^(.*?)(?::\*|\s+\*)$/s.exec(rule)?.[1];
  return (text) => matchesStars(open ?? rule, text, open !== undefined);
}

/** Patterns of paths are those of .gitignore: `//` begins an absolute path, `/` one below the folder of the settings,
 * a name without `/` is looked for at any depth. */
function pathTest(rule: string): ConditionTest | null {
  if (compileGlob(rule) === null) return null;
  return ({ call, cwd, from }) => {
    const path = resolve(cwd, stringOrEmpty(call.args['path']) || '.').slice(1);
    const absolute = absolutePattern(rule.replace(/\/(?:\*\*)?$/, ''), cwd, from).slice(1);
    return [absolute, `${absolute}/**`].some((glob) => compileGlob(glob)?.matches(path) === true);
  };
}

function absolutePattern(rule: string, cwd: string, { directory, home }: PatternRoots): string {
  if (rule.startsWith('//')) return rule.slice(1);
  if (rule.startsWith('~/')) return join(home, rule.slice(2));
  if (rule.startsWith('/')) return join(directory, rule);
  return rule.includes('/') ? join(cwd, rule) : join(cwd, '**', rule);
}

function hostTest(rule: string): ConditionTest | null {
  const domain = /^domain:(\S+)$/.exec(rule)?.[1];
  if (domain === undefined) return null;
  const test = starTest(domain.toLowerCase());
  return ({ call }) => test(subjectOf('web_fetch', call.args) ?? '');
}

/** Returns true if one command of the line fits the rule, or if the line is too complex to say. */
function runsCommand(line: string, rule: string): boolean {
  const commands = simpleCommands(line);
  if (commands === null) return true;
  const test = starTest(rule);
  return commands.some((command) => spellings(command).some(test));
}

/** A piece of a command line: characters that stay together, an end of a command, or a substitution. */
interface Piece {
  readonly text: string;
  readonly kind: 'text' | 'separator' | 'substitution';
}

const separators = /^(?:&&|\|\||;;|\|&|[;&|\n(){}])/;
const maxSubstitutions = 50;

/** Splits a command line into its commands, those of substitutions among them. Null: it is too complex. */
function simpleCommands(line: string): readonly string[] | null {
  const text = withoutHeredocs(line);
  if (text === null || text.split(/`|[$<>]\(/).length > maxSubstitutions) return null;
  const found: string[] = [];
  let current = '';
  let isQuoted = false;
  for (let at = 0; at < text.length;) {
    const piece = pieceAt(text, at, isQuoted);
    if (piece === null) return null;
    at += piece.text.length;
    if (piece.text === '"') isQuoted = !isQuoted;
    const inner = piece.kind === 'substitution' ? simpleCommands(insideOf(piece.text)) : [];
    if (inner === null) return null;
    for (const command of inner) found.push(command);
    if (piece.kind === 'separator') {
      found.push(current);
      current = '';
    } else current += piece.text;
  }
  if (isQuoted) return null;
  const commands = [...found, current].map((command) => command.trim()).filter((command) => command !== '');
  return commands.some((command) => runsTexts.test(command)) ? null : commands;
}

/** Returns the piece that begins at `at`; null for one without an end. */
function pieceAt(text: string, at: number, isQuoted: boolean): Piece | null {
  const next = text.slice(at, at + 2);
  const char = next.slice(0, 1);
  if (char === '\\') return { text: next, kind: 'text' };
  if (char === '`' || /^[$<>]\(/.test(next)) {
    const end = char === '`' ? text.indexOf('`', at + 1) : closingBracket(text, at + 2);
    return end < 0 ? null : { text: text.slice(at, end + 1), kind: 'substitution' };
  }
  if (isQuoted) return { text: char, kind: 'text' };
  if (char === "'") {
    const end = text.indexOf("'", at + 1);
    return end < 0 ? null : { text: text.slice(at, end + 1), kind: 'text' };
  }
  const separator = isRedirect(text, at) ? undefined : separators.exec(next)?.[0];
  return separator === undefined ? { text: char, kind: 'text' } : { text: separator, kind: 'separator' };
}

function insideOf(substitution: string): string {
  return substitution.replace(/^(?:`|[$<>]\()/, '').slice(0, -1);
}

/** Returns the index of the bracket that closes a substitution whose text begins at `from`; -1 where there is none. */
function closingBracket(text: string, from: number): number {
  let depth = 1;
  let isQuoted = false;
  for (let at = from; at < text.length;) {
    const piece = pieceAt(text, at, isQuoted);
    if (piece === null) return -1;
    if (piece.text === '"') isQuoted = !isQuoted;
    if (piece.kind === 'separator') depth += piece.text === '(' ? 1 : piece.text === ')' ? -1 : 0;
    if (depth === 0) return at;
    at += piece.text.length;
  }
  return -1;
}

/** `2>&1`, `&>file` and `>|file` separate nothing. */
function isRedirect(text: string, at: number): boolean {
  return (
    (text[at] === '&' && (/[<>]/.test(text[at - 1] ?? '') || text[at + 1] === '>')) ||
    text.slice(at - 1, at + 1) === '>|'
  );
}

/** These run a text that only they can read. */
const runsTexts = /(?:^|\s)(?:eval|source|xargs|(?:ba|da|z|k)?sh\s+-\w*c)(?:\s|$)/;

/** Removes the texts of here-documents. Null: a text may hold substitutions. */
function withoutHeredocs(line: string): string | null {
  const rest = line.replaceAll(
    /(?<!<)<<-?[ \t]*(['"\\]?)(\w+)\1([^\n]*)\n([^]*?)\n?[ \t]*\2(?=\n|\)|$)/g,
    (whole, quote: string, _word: string, tail: string, body: string) =>
      quote === '' && /[`$]/.test(body) ? whole : tail,
  );
  return /(?<!<)<<(?!<)/.test(rest) ? null : rest;
}

const assignment = /^[A-Za-z_]\w*\+?=(?:"(?:\\.|[^"\\])*"|'[^']*'|[^\s"'])*\s+/;
const starter =
  /^(?:(?:then|do|else|elif|if|while|until|!|time|nohup|command|builtin|exec|sudo|env|setsid)|(?:nice|stdbuf|timeout|ionice)(?:\s+-\S+)*(?:\s+[\d.]+[smhd]?)?)\s+/;

/** Returns a command as it is written, and without the words before its program. */
function spellings(command: string): readonly string[] {
  const found: string[] = [];
  for (let rest = command, next = ''; ; rest = next) {
    const plain = rest.replaceAll(/["']/g, '').replaceAll(/\s+/g, ' ');
    for (const each of [rest, plain, plain.replace(/^\S*\//, '')]) found.push(each);
    next = rest.replace(assignment, '').replace(starter, '');
    if (next === rest) return found;
  }
}
