import { parseJson } from '../../kernel/core/json.js';
import { readdirSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import { statsAt } from '../../kernel/disk/path-stats.js';
import type { Stop } from '../../kernel/core/event.js';
import { isRecord } from '../../kernel/core/json.js';
import { fileLines, fileSha256, readBounded } from '../../kernel/disk/bounded-file.js';

/** The places of a user's histories. */
export interface HistoryPlace {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Absolute. */
  readonly home: string;
  readonly cwd: string;
}

/** A place where one conversation is kept. `session`: its id in a file that holds several. */
export interface Source {
  /** Absolute. */
  readonly file: string;
  readonly session?: string;
}

/** A conversation of another program, with the facts of its first and last lines. */
export interface FoundConversation extends Source {
  /** The program's own id. */
  readonly id: string;
  /** Absolute. */
  readonly cwd: string;
  /** Unix ms. */
  readonly startedAt: number;
  readonly updatedAt: number;
  readonly title: string | null;
  /** The first line of what the user said first; null where it is not in the first lines. */
  readonly prompt: string | null;
  /** Of the program. */
  readonly version: string | null;
  /** The model that answered last, if the last lines name it. */
  readonly model: string | null;
  /** Of the file. */
  readonly bytes: number;
}

/** Reads the histories of one program. Only `turns` and `sha256` throw: an Error whose message is a clause. */
export interface HistoryReader {
  /** The name of the program for users: `Claude Code`. */
  readonly title: string;
  /** Lists where conversations lie. Opens no file that could be long: it is also asked only to count. */
  readonly sources: (place: HistoryPlace) => Iterable<Source>;
  /** Lists the conversations in a file that may hold several; absent: it is one. */
  readonly within?: (file: string) => Iterable<Source>;
  /** Reads the beginning and the end; null for what is not a conversation of this program. */
  readonly head: (source: Source, place: HistoryPlace) => FoundConversation | null;
  /** Yields the conversation in its order, a piece of the file in memory at a time. */
  readonly turns: (found: FoundConversation) => Iterable<Turn>;
  /** Of the conversation, where its file holds others, too (hex); absent: of the file. */
  readonly sha256?: (found: FoundConversation) => string;
}

/** Returns the SHA-256 (hex) of what is read. */
export function sha256Of(reader: HistoryReader, found: FoundConversation): string {
  return reader.sha256?.(found) ?? fileSha256(found.file);
}

/** The model that gave a response, as the program names it. */
export interface NamedModel {
  readonly provider: string;
  readonly model: string;
}

/** A part of a response. Parts with one `response` belong together, wherever they stand. */
interface Part {
  /** Unix ms; NaN: the time is not known. */
  readonly at: number;
  readonly response: string;
  /** The name of the entry, for a summary that keeps what begins there. */
  readonly key?: string;
}

/** A conversation without the forms of any program. */
export type Turn =
  | { readonly kind: 'user'; readonly at: number; readonly text: string; readonly key?: string }
  | (Part & {
      readonly kind: 'text';
      readonly text: string;
      readonly from: NamedModel;
      readonly stop?: Stop | undefined;
    })
  /** `arguments`: JSON as recorded. */
  | (Part & { readonly kind: 'call'; readonly id: string; readonly name: string; readonly arguments: string })
  /** May stand anywhere behind its call. `exitCode`: of a command that ran to its end. */
  | {
      readonly kind: 'result';
      readonly at: number;
      readonly callId: string;
      readonly text: string;
      readonly isError: boolean;
      readonly exitCode?: number | undefined;
      readonly durationMs?: number | undefined;
    }
  /** Tokens of the request, disjoint. The last one of a response counts. */
  | (Part & {
      readonly kind: 'usage';
      readonly from: NamedModel;
      readonly input: number;
      readonly output: number;
      readonly cacheRead: number;
      readonly cacheWrite: number;
      readonly costUsd: number | null;
    })
  /** Replaces everything before it, except the entries from `keepsFrom` on, if that is known. */
  | { readonly kind: 'summary'; readonly at: number; readonly text: string; readonly keepsFrom?: string | undefined }
  /** Names a part that is not imported, so that it can be counted: `reasoning`. */
  | { readonly kind: 'dropped'; readonly what: string };

export type TurnFields = Readonly<Record<string, unknown>>;

/** Longer lines are left out. */
export const maxLineBytes = 16 * 1024 * 1024;

/** Yields the objects in lines, and the name under which a line without one is counted. */
export function* jsonLines(file: string): Generator<TurnFields | string> {
  for (const { text, torn } of fileLines(file, maxLineBytes)) {
    if (text === null) yield 'long_lines';
    else if (text.trim() !== '')
      for (const value of objectsIn(text)) yield value ?? (torn ? 'torn_lines' : 'damaged_lines');
  }
}

/** Returns the objects of a line. Two writers at once may leave several in one line; null marks a part that is no
 * object. */
function objectsIn(line: string): readonly (TurnFields | null)[] {
  const whole = objectOf(line);
  if (whole !== null) return [whole];
  const ends = objectEnds(line);
  const parts = ends.map((end, index) => objectOf(line.slice(ends[index - 1] ?? 0, end)));
  return ends.length > 0 && line.slice(ends.at(-1)).trim() === '' ? parts : [...parts, null];
}

/** Returns where braces are closed, outside of texts. */
function objectEnds(line: string): readonly number[] {
  const ends: number[] = [];
  let [depth, isText] = [0, false];
  for (let at = 0; at < line.length; at++) {
    const char = line[at];
    if (isText && char === '\\') at++;
    else if (char === '"') isText = !isText;
    else if (!isText && char === '{') depth++;
    else if (!isText && char === '}' && --depth === 0) ends.push(at + 1);
  }
  return ends;
}

/** Returns the object of a JSON text; null for anything else. */
export function objectOf(text: string): TurnFields | null {
  try {
    const value: unknown = parseJson(text);
    return isRecord(value) ? value : null;
  } catch {
    return null;
  }
}

/** The beginning and the end of a file. */
export interface FileEnds {
  readonly first: readonly TurnFields[];
  readonly last: readonly TurnFields[];
  readonly bytes: number;
}

const endBytes = 128 * 1024;

/** Returns the objects in the first and the last lines; null where the file cannot be read. */
export function fileEnds(file: string): FileEnds | null {
  const start = readBounded(file, { maxBytes: endBytes, longer: 'start', links: 'follow' });
  if (start.kind !== 'read') return null;
  const end = start.size > endBytes ? readBounded(file, { maxBytes: endBytes, longer: 'end', links: 'follow' }) : start;
  const first = objectsOf(start.bytes);
  return { first, last: end.kind === 'read' ? objectsOf(end.bytes) : first, bytes: start.size };
}

function objectsOf(bytes: Buffer): readonly TurnFields[] {
  return bytes
    .toString('utf8')
    .split('\n')
    .flatMap((line) => (line.trim() === '' ? [] : objectsIn(line)))
    .filter((value) => value !== null);
}

/** The number of objects among which the first prompt is looked for. */
const mostBeforePrompt = 200;

/** Returns more objects of the start than `fileEnds`: much may be injected before the first prompt. Empty where
 * `fileEnds` has them all. */
export function longerStart(file: string, { bytes }: FileEnds): readonly TurnFields[] {
  const objects: TurnFields[] = [];
  if (bytes <= endBytes) return objects;
  for (const line of jsonLines(file)) {
    if (typeof line !== 'string') objects.push(line);
    if (objects.length >= mostBeforePrompt) break;
  }
  return objects;
}

/** Lists the files below a folder whose names fit, by name, links left out. `depth` 0: in the folder itself. */
export function* filesBelow(folder: string, depth: number, fits: RegExp): Generator<string> {
  for (const entry of entriesOf(folder)) {
    const path = join(folder, entry.name);
    if (entry.isFile() && fits.test(entry.name)) yield path;
    else if (entry.isDirectory() && depth > 0) yield* filesBelow(path, depth - 1, fits);
  }
}

function entriesOf(folder: string) {
  try {
    return readdirSync(folder, { withFileTypes: true }).sort((one, other) => (one.name < other.name ? -1 : 1));
  } catch {
    return [];
  }
}

/** The times of the first and the last line, else of the file. */
export function timesOf(file: string, ends: FileEnds): Pick<FoundConversation, 'startedAt' | 'updatedAt'> {
  const written = writtenAt(file);
  const times = (lines: readonly TurnFields[]): readonly unknown[] => lines.map(({ timestamp }) => timestamp);
  return {
    startedAt: firstTime(times(ends.first), written),
    updatedAt: firstTime(times(ends.last).toReversed(), written),
  };
}

/** Returns the first absolute path, or `otherwise`. A path of Windows is the one below `mounts` where WSL has it, and
 * stays as it is elsewhere. */
export function directoryIn(values: readonly unknown[], otherwise: string, mounts = '/mnt'): string {
  const path = values.map(nonEmptyText).find((text) => text !== null && isDirectoryPath(text)) ?? otherwise;
  const [, drive, rest] = /^([A-Za-z]):[\\/](.*)$/s.exec(path) ?? [];
  if (drive === undefined || rest === undefined) return path;
  const mounted = join(mounts, drive.toLowerCase(), rest.replaceAll('\\', '/')).replace(/(?<=.)\/$/, '');
  return statsAt(mounted)?.isDirectory() === true ? mounted : path;
}

/** Returns true for an absolute path, also one of Windows. */
export function isDirectoryPath(text: string): boolean {
  return isAbsolute(text) || /^(?:[A-Za-z]:[\\/]|\\\\[^\\])/.test(text);
}

/** Returns the number that an expression finds; undefined where it finds none. */
export function numberIn(text: string, pattern: RegExp): number | undefined {
  const found = pattern.exec(text)?.[1];
  return found === undefined ? undefined : Number(found);
}

/** Returns when a file was written last (Unix ms), 0 where that is not known. */
export function writtenAt(file: string): number {
  return Math.round(statsAt(file)?.mtimeMs ?? 0);
}

/** In the year 6429: what a clock says beyond it fits in no id. */
const lastTime = 2 ** 47;

/** Returns Unix ms of a time in ISO 8601 or in Unix ms; NaN for anything else. */
export function timeOf(value: unknown): number {
  const time = typeof value === 'string' ? Date.parse(value) : value;
  return Number.isSafeInteger(time) && Number(time) >= 0 && Number(time) < lastTime ? Number(time) : Number.NaN;
}

/** Returns the first time among the values that is one, or `otherwise`. */
export function firstTime(values: readonly unknown[], otherwise: number): number {
  return values.map(timeOf).find((time) => !Number.isNaN(time)) ?? otherwise;
}

/** Returns a text that says something; null for anything else. */
export function nonEmptyText(value: unknown): string | null {
  return typeof value === 'string' && value.trim() !== '' ? value : null;
}

/** Returns a count of tokens; 0 for what is none. */
export function countOf(value: unknown): number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : 0;
}

/** Returns the fields of an object; none for anything else. */
export function fieldsOf(value: unknown): TurnFields {
  return isRecord(value) ? value : {};
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? (value as readonly unknown[]) : [];
}

/** Returns the texts of a content, which is one text or a list of blocks. */
export function contentText(content: unknown): string {
  if (typeof content === 'string') return content;
  return listOf(content)
    .flatMap((block) => nonEmptyText(fieldsOf(block)['text']) ?? [])
    .join('\n\n');
}
