import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export const root = join(import.meta.dirname, '../..');

/** The pages for users, without those that are generated. */
export const pages = [
  'README.md',
  ...readdirSync(join(root, 'docs'))
    .filter((name) => name.endsWith('.md') && !['commands.md', 'tools.md'].includes(name))
    .map((name) => `docs/${name}`),
];

/** A command line of a page. `needs`: what a reader must have for it, from the comment `<!-- needs: … -->` above its
 * block, where commas divide it; empty: it runs as it is in any project. */
export interface Documented {
  readonly page: string;
  readonly line: number;
  readonly text: string;
  readonly needs: readonly string[];
}

/** One command of a line. `raw`: as it stands there. `pipes`: its output is the input of the next one. */
export interface Command {
  readonly raw: string;
  readonly words: readonly string[];
  readonly pipes: boolean;
}

/** Matches the start of other commands. They count in a block with a mark only: without one, an indented block may be
 * anything. */
const otherPrograms = /^(?:claude|codex|createdb|export|git|node|npm|pg_dump|pg_dumpall|pg_restore|psql) /;

/** Returns the command lines of a page: in blocks fenced as sh, or indented by four blanks. A line that ends in a
 * backslash continues in the next one. */
export function documentedIn(page: string): readonly Documented[] {
  const found: Documented[] = [];
  let fence: string | null = null;
  let needs: readonly string[] = [];
  let begun = '';
  for (const [index, line] of readFileSync(join(root, page), 'utf8').split('\n').entries()) {
    const mark = /^<!-- needs: (.+) -->$/.exec(line);
    const opening = /^```(\w*)/.exec(line);
    const isShell = (fence === 'sh' && line.trim() !== '') || (fence === null && /^ {4,}\S/.test(line));
    if (mark) needs = (mark[1] ?? '').split(', ');
    else if (opening) fence = fence === null ? (opening[1] ?? '') : null;
    else if (isShell && line.endsWith('\\')) begun += `${line.slice(0, -1).trim()} `;
    else if (isShell) {
      found.push({ page, line: index + 1, text: begun + line.trim(), needs });
      begun = '';
    } else if (line.trim() !== '' && fence === null) needs = [];
  }
  return found.filter(
    ({ text, needs }) => (needs.length > 0 && otherPrograms.test(text)) || agentCalls(text).length > 0,
  );
}

/** Splits a command line as a shell does, without its comment, at `|`, `&&`, `;` and `&`. */
export function commandsOf(text: string): readonly Command[] {
  const commands: { raw: string; words: string[]; pipes: boolean }[] = [{ raw: '', words: [], pipes: false }];
  const pattern = /\s+[#○].*$|(\|\||&&|[|;])|((?:'[^']*'|"(?:[^"\\]|\\.)*"|[^\s'"|;&])+)|(\s+|&)/g;
  for (const [all, operator, word, gap] of text.matchAll(pattern)) {
    const last = commands.at(-1);
    if (last === undefined) break;
    if (operator !== undefined) {
      last.pipes = operator === '|';
      commands.push({ raw: '', words: [], pipes: false });
    } else if (word !== undefined || gap !== undefined) last.raw += all;
    if (word !== undefined) last.words.push(word.replace(/'([^']*)'|"((?:[^"\\]|\\.)*)"/g, '$1$2'));
  }
  return commands;
}

/** An `agent` of a line: its arguments, and the variables that are set before it. */
export interface AgentCall {
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** Returns what a command calls `agent` with; null: it is another program. */
export function agentCall({ words }: Command): AgentCall | null {
  const at = words.findIndex((word) => !/^[A-Z_]+=/.test(word));
  if (words[at] !== 'agent') return null;
  const env = Object.fromEntries(words.slice(0, at).map((word) => word.split(/=(.*)/s)));
  return { args: words.slice(at + 1), env: env as Record<string, string> };
}

/** The arguments of each `agent` in a line. */
export function agentCalls(text: string): readonly (readonly string[])[] {
  return commandsOf(text).flatMap((command) => {
    const call = agentCall(command);
    return call === null ? [] : [call.args];
  });
}
