import { resolve } from 'node:path';
import type { Expand, Expansion } from '../../kernel/core/session-port.js';
import { withoutEnd } from '../../kernel/core/text.js';
import { statsAt } from '../../kernel/disk/path-stats.js';

/** A file, and the lines of it that are named; from 1, both included. */
export interface NamedLines {
  readonly path: string;
  readonly from: number;
  readonly to: number;
}

const range = /^(.+?)(?:#L(\d{1,9})(?:-L?(\d{1,9}))?|:(\d{1,9})(?:-(\d{1,9}))?)$/;

/** Reads `src/a.ts#L3-9`, `src/a.ts#L3`, `src/a.ts:3-9` and `src/a.ts:3`; null for any other word. Where the second
 * number is smaller, they are exchanged. */
export function namedLines(word: string): NamedLines | null {
  const [, path = '', hashFrom, hashTo, colonFrom, colonTo] = range.exec(word) ?? [];
  const first = Number(hashFrom ?? colonFrom ?? 0);
  const last = Number(hashTo ?? colonTo ?? first);
  if (path === '' || first === 0 || last === 0) return null;
  return { path, from: Math.min(first, last), to: Math.max(first, last) };
}

/** Returns the lines as users write them: `lines 3-9`. */
export function linesText({ path, from, to }: NamedLines): string {
  return from === to ? `Line ${from} of ${path}` : `Lines ${from}-${to} of ${path}`;
}

export function linesCall({ path, from, to }: NamedLines) {
  return { name: 'file_read', arguments: JSON.stringify({ path, offset: from, limit: to - from + 1 }) } as const;
}

/** An addition to a message: a call, and the head of its output. */
interface Addition {
  readonly call: Expansion['calls'][number];
  readonly head: string;
}

const mention = /(?<=^|[\s(])@(?:"([^"\n]+)"(\S*)|([^\s"]+))/g;

/** Adds what lies below the folders that a message names as `@src/`, in the words of the tool that lists files, and the
 * lines that it names as `@src/a.ts#L3-9` or `@src/a.ts:3-9`. Other files are left to the model's tools. */
export function withNamedPaths(message: string, cwd: string): Awaited<ReturnType<Expand>> {
  const words = [...message.matchAll(mention)].map(([, quoted, behind = '', plain = '']) =>
    quoted === undefined ? plain : quoted + (/^(?:#L|:)\d[\dL-]*/.exec(behind)?.[0] ?? ''),
  );
  const added = new Map<string, Addition>();
  for (const word of words) {
    const addition = folderOf(word, cwd) ?? linesIn(word, cwd);
    if (addition) added.set(addition.head, addition);
  }
  const all = [...added.values()];
  if (all.length === 0) return null;
  return {
    command: null,
    calls: all.map(({ call }) => call),
    text: (outputs) =>
      [message, ...outputs.map((output, at) => `${all[at]?.head ?? ''}:\n${withoutEnd(output, '\n')}`)].join('\n\n'),
  };
}

function folderOf(word: string, cwd: string): Addition | null {
  if (!word.endsWith('/') || statsAt(resolve(cwd, word))?.isDirectory() !== true) return null;
  const call = { name: 'glob', arguments: JSON.stringify({ pattern: '**/*', path: word }) };
  return { call, head: `Files in ${word}` };
}

/** The end of a sentence is no part of a range, and a file may be called like one. */
function linesIn(word: string, cwd: string): Addition | null {
  const isFile = (path: string): boolean => statsAt(resolve(cwd, path))?.isFile() === true;
  const lines = namedLines(word.replace(/[),.;:!?]+$/, ''));
  if (lines === null || isFile(word) || !isFile(lines.path)) return null;
  return { call: linesCall(lines), head: linesText(lines) };
}
