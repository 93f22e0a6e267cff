import fuzzysort from 'fuzzysort';
import { sanitize } from '../../kernel/core/sanitize.js';
import { groupHeading, type SlashCommand } from '../../kernel/console/slash-command.js';
import type { MenuState } from '../components/menu.js';
import type { Rank } from '../components/picker.js';
import { change, type Editor } from './editor.js';

/** Possible texts at the cursor: the part of the text to replace and the candidates for it. */
export interface Completion {
  readonly from: number;
  readonly to: number;
  readonly kind: 'command' | 'file';
  readonly candidates: readonly Candidate[];
}
/** `exact`: the typed texts that mean this candidate. */
interface Candidate {
  /** The heading above the first of them that has it. */
  readonly heading?: string;
  readonly label: string;
  readonly detail: string;
  readonly insert: string;
  readonly exact: readonly string[];
}

/** The most candidates that a menu has. Commands are as many as the screen has room for. */
const mostShown = { command: 200, file: 8 } as const;

/** Returns commands for a `/name` that is the whole input so far; null otherwise. */
export function completeCommand(editor: Editor, commands: readonly SlashCommand[]): Completion | null {
  const match = /^\/([\p{L}\p{M}\p{N}_:.-]*)$/u.exec(editor.text);
  if (!match || editor.cursor !== editor.text.length) return null;
  const typed = (match[1] ?? '').toLowerCase();
  const ranked = commands
    .map((command) => ({ command, rank: rankOf(command, typed) }))
    .filter((entry) => entry.rank >= 0)
    .sort((a, b) => a.rank - b.rank);
  const candidates = ranked.map(({ command, rank }) => ({
    ...(typed === '' ? { heading: groupHeading(command) } : {}),
    label: `/${command.name}${aliasText(command, typed, rank)}${command.argument === undefined ? '' : ` ${command.argument}`}`,
    detail: command.description,
    insert: `/${command.name}${command.argument === undefined ? '' : ' '}`,
    exact: [command.name, ...(command.aliases ?? [])].map((name) => `/${name}`),
  }));
  return candidates.length > 0 ? { from: 0, to: editor.text.length, kind: 'command', candidates } : null;
}

/** Returns the alias that was typed, if the name does not begin with it. */
function aliasText({ aliases = [] }: SlashCommand, typed: string, rank: number): string {
  const alias = rank === 1 ? aliases.find((name) => name.startsWith(typed)) : undefined;
  return alias === undefined ? '' : ` (${alias})`;
}

function rankOf(command: SlashCommand, typed: string): number {
  const names = [command.name, ...(command.aliases ?? [])];
  if (command.name.startsWith(typed)) return 0;
  if (names.some((name) => name.startsWith(typed))) return 1;
  return names.some((name) => name.includes(typed)) ? 2 : -1;
}

/** The `@path` at the cursor, and what was typed of the path. */
export interface FilePlace {
  readonly from: number;
  readonly to: number;
  readonly query: string;
}

/** A path that was begun: within quotes, or up to a blank; or with blanks, where a path with these words exists. */
const begunPaths: readonly (readonly [pattern: RegExp, kind: 'path' | 'words'])[] = [
  [/(?<=^|[\s(])@"[^"\n]*$/u, 'path'],
  [/(?<=^|[\s(])@(?!")\S*$/u, 'path'],
  [/(?<=^|[\s(])@[^\s"@][^"@\n]*\S$/u, 'words'],
];

/** Returns the `@path` at the cursor; null if there is none. `files`: the paths that it may name, null while they are
 * not known. */
export function fileQuery(editor: Editor, files: readonly string[] | null): FilePlace | null {
  const before = editor.text.slice(editor.text.lastIndexOf('\n', editor.cursor - 1) + 1, editor.cursor);
  for (const [pattern, kind] of begunPaths) {
    const start = before.search(pattern);
    if (start < 0) continue;
    const quoted = before[start + 1] === '"';
    const query = before.slice(start + (quoted ? 2 : 1));
    if (kind === 'words' && !isBegun(query, files ?? [])) continue;
    const to = quoted && editor.text[editor.cursor] === '"' ? editor.cursor + 1 : editor.cursor;
    return { from: editor.cursor - before.length + start, to, query };
  }
  return null;
}

/** Returns whether the name of a file or folder begins with these words. */
function isBegun(words: string, files: readonly string[]): boolean {
  const begun = foldedText(words);
  return foldedTexts(files).some((path) => path.startsWith(begun) || path.includes(`/${begun}`));
}

const marks = /[\u0300-\u036f]/g;

/** Returns a text in lower case and without accents, whether they are separate characters (NFD, as macOS writes file
 * names) or not (NFC, as keyboards do). */
function foldedText(text: string): string {
  return withoutAccents(text).toLowerCase();
}

function withoutAccents(text: string): string {
  return /[^\x00-\x7f]/.test(text) ? text.normalize('NFD').replace(marks, '') : text;
}

const folded = new WeakMap<readonly string[], readonly string[]>();

function foldedTexts(texts: readonly string[]): readonly string[] {
  const known = folded.get(texts) ?? texts.map(foldedText);
  folded.set(texts, known);
  return known;
}

/** Adds the folders of `paths`, with a slash at the end, before them. Addresses of servers are in no folder. */
export function withFolders(paths: readonly string[]): readonly string[] {
  const folders = new Set<string>();
  for (const path of paths) {
    if (/^[\w-]+:/.test(path)) continue;
    for (let end = path.lastIndexOf('/'); end > 0; end = path.lastIndexOf('/', end - 1)) {
      const folder = path.slice(0, end + 1);
      if (folders.has(folder)) break;
      folders.add(folder);
    }
  }
  return [...[...folders].toSorted(), ...paths];
}

/** Completes a path, or the name of an agent, which has a line about it. After a folder the path may continue, so no
 * blank follows it, and its quotes stay open. */
export function completeFile(
  { from, to }: FilePlace,
  paths: readonly string[],
  agents: ReadonlyMap<string, string> = new Map(),
): Completion | null {
  const candidates = paths.map((path) => {
    const [open, close] = /[\s@]/.test(path) ? ['@"', '"'] : ['@', ''];
    return {
      label: path,
      detail: agents.get(path) ?? '',
      insert: `${open}${path}${path.endsWith('/') ? '' : `${close} `}`,
      exact: [],
    };
  });
  return candidates.length > 0 ? { from, to, kind: 'file', candidates } : null;
}

export function applyCandidate(editor: Editor, completion: Completion, index: number): Editor {
  const candidate = completion.candidates[index];
  return candidate ? change(editor, completion.from, completion.to, candidate.insert) : editor;
}

/** Returns the part of the candidates to show, and which one is selected. */
export function completionMenu(completion: Completion, selected: number): MenuState {
  const count = completion.candidates.length;
  const most = mostShown[completion.kind];
  const first = Math.max(0, Math.min(selected - Math.floor(most / 2), count - most));
  return {
    rows: completion.candidates.slice(first, first + most).map(({ heading, label, detail }) => ({
      ...(heading === undefined ? {} : { heading }),
      label: sanitize(label),
      detail: sanitize(detail),
    })),
    selected: selected - first,
    more: Math.max(0, count - most),
  };
}

const mostMatches = 200;
/** The matcher scores at most this many texts for a key. Of more texts, those that contain the whole query come first;
 * it would need 0.1 to 0.5 s for 100,000. */
const mostScored = 2_000;

/** Ranks fuzzily. */
export function createRank(): Rank {
  return (query, texts) => {
    const name = foldedText(query).trim();
    const folded = foldedTexts(texts);
    const entries = candidatesOf(name, folded).map((index) => ({ index, text: withoutAccents(texts[index] ?? '') }));
    const found = fuzzysort
      .go(withoutAccents(query), entries, { key: 'text', limit: mostMatches })
      .map((result) => result.obj.index);
    // A name that was typed whole comes before longer names, whatever follows it.
    const isWhole = (index: number): boolean => `${folded[index] ?? ''} `.startsWith(`${name} `);
    return [...found.filter(isWhole), ...found.filter((index) => !isWhole(index))];
  };
}

/** Indexes of the texts that could match: those that hold the query first, then those that hold its characters in
 * order. */
function candidatesOf(query: string, lower: readonly string[]): readonly number[] {
  const whole: number[] = [];
  for (let i = 0; i < lower.length && whole.length < mostScored; i++)
    if (lower[i]?.includes(query) === true) whole.push(i);
  if (whole.length >= mostMatches) return whole;
  const characters = [...query].filter((char) => char !== ' ');
  const found = new Set(whole);
  const loose: number[] = [];
  for (let i = 0; i < lower.length && loose.length < mostScored; i++)
    if (!found.has(i) && holds(lower[i] ?? '', characters, query.includes(' '))) loose.push(i);
  return [...whole, ...loose];
}

/** Returns true if the characters are in `text` in this order; the words of a query may be in any order. */
function holds(text: string, characters: readonly string[], words: boolean): boolean {
  if (words) return characters.every((char) => text.includes(char));
  let at = 0;
  for (const char of characters) {
    at = text.indexOf(char, at) + 1;
    if (at === 0) return false;
  }
  return true;
}
