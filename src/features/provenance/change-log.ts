import { existsSync } from 'node:fs';
import { basename } from 'node:path';
import { isUtf8 } from 'node:buffer';
import { isRecord, parseJson } from '../../kernel/core/json.js';
import { addAll } from '../../kernel/core/lists.js';
import type { Store } from '../../kernel/core/store.js';
import { decodeText } from '../../kernel/disk/text-encoding.js';
import type { ChangedFileRows } from './changed-file-rows.js';
import { type Author, type HistorySource, type LineHistory, traceLines } from './line-history.js';
import { matchLines, type Splice, spliceBetween, splicesOfDiff, splitLines } from './line-matching.js';
import { type ContentState, type FileChangeRecord, SessionRecord } from './session-record.js';

/** The contents of a file at a time (unix ms), as UTF-8. */
export interface FileVersion {
  readonly path: string;
  readonly sha256: string;
  readonly bytes: Buffer;
  readonly at: number;
}

/** The name of a file up to a time (unix ms). */
export interface NamedUntil {
  readonly path: string;
  readonly until: number;
}

/** Finds an earlier name of a file that had these contents at `until` (unix ms); null if it had none. */
export type EarlierName = (path: string, contents: Buffer, until: number) => Promise<NamedUntil | null>;

/** The log of one file. */
interface Lineage {
  /** All changes up to a time, also under earlier names, oldest first. */
  readonly records: readonly FileChangeRecord[];
  /** The absolute paths that the file had, oldest first. */
  readonly names: readonly string[];
}

export type TracedFile = LineHistory & Lineage;

const maxRenames = 50;
const maxDepth = 4;

/** The recorded changes of files in all sessions of a store. */
export class ChangeLog {
  readonly #store: Pick<Store, 'load' | 'session' | 'blob' | 'list'>;
  readonly #rows: ChangedFileRows | null;
  readonly #sessions = new Map<string, SessionRecord | null>();
  readonly #texts = new Map<string, Promise<Buffer | null>>();
  #all: readonly string[] | null = null;
  #moves: readonly { readonly from: string; readonly to: string }[] | null = null;
  #depth = 0;

  constructor(store: Pick<Store, 'load' | 'session' | 'blob' | 'list'>, rows: ChangedFileRows | null) {
    this.#store = store;
    this.#rows = rows;
  }

  /** Traces the lines of a file back to the calls that wrote them. */
  async trace(version: FileVersion, earlierName: EarlierName): Promise<TracedFile> {
    const lineage = await this.#lineage(version, earlierName);
    return { ...(await traceLines(this.#source(version.path, earlierName), lineage.records, version)), ...lineage };
  }

  /** Follows a file to its earlier names. */
  async #lineage(version: FileVersion, earlierName: EarlierName): Promise<Lineage> {
    const names: string[] = [];
    let records: readonly FileChangeRecord[] = [];
    let [name, end]: [string, number] = [version.path, version.at];
    let before: FileChangeRecord | null = null;
    for (let renames = 0; renames < maxRenames; renames++) {
      const next: FileChangeRecord | null = before;
      names.unshift(name);
      const own = (await this.#changesOf(name)).filter(
        (record) => record.at <= end && (next === null || !isSameEvent(record, next)),
      );
      const { rename, later } = lastRename(own);
      records = [...later, ...records];
      before = rename?.record ?? null;
      const first = records[0];
      const state = first === undefined ? version : first.before;
      const earlier: NamedUntil | null =
        rename ??
        (typeof state === 'object'
          ? await this.#nameBefore(
              { ...version, path: name, sha256: state.sha256, at: first?.startedAt ?? end },
              earlierName,
            )
          : null);
      if (earlier === null) break;
      [name, end] = [earlier.path, earlier.until];
    }
    // Later records are about other contents.
    const last = records.findLastIndex(({ after }) => isContent(after, version.sha256));
    return { records: last < 0 ? records : records.slice(0, last + 1), names };
  }

  /** Finds the name that a file had before it had these contents under the present one: that of a recorded file with
   * them which has gone, or what `earlierName` finds. `bytes` are the present contents. */
  async #nameBefore({ path, sha256, bytes, at }: FileVersion, earlierName: EarlierName): Promise<NamedUntil | null> {
    const gone = (await this.#writesOf(sha256, at)).findLast((one) => one.path !== path && !existsSync(one.path));
    if (gone) return { path: gone.path, until: at };
    return await earlierName(path, (await this.text(sha256)) ?? bytes, at);
  }

  /** Returns the changes up to a time (unix ms) that gave a file these contents, oldest first. */
  async #writesOf(sha256: string, until: number): Promise<readonly FileChangeRecord[]> {
    if (!this.#rows) return [];
    return (await this.#load(await this.#rows.sessionsOfContents([sha256])))
      .flatMap(({ changes }) => changes)
      .filter((change) => change.at <= until && isContent(change.after, sha256))
      .toSorted((a, b) => a.at - b.at);
  }

  /** Finds the file that was renamed and changed outside so that these contents came to be: a recorded one below a
   * directory that has gone, and whose last contents had at least half of the lines. */
  async renamedFrom(contents: Buffer, directory: string, until: number): Promise<NamedUntil | null> {
    const lasts = new Map<string, FileChangeRecord>();
    for (const { changes } of await this.sessionsBelow(directory, 0, mostSessions))
      for (const change of changes) if (change.at <= until && !existsSync(change.path)) lasts.set(change.path, change);
    const lines = splitLines(contents.toString('utf8'));
    let [best, most] = [null as NamedUntil | null, lines.length / 2];
    for (const { path, after } of lasts.values()) {
      const text = typeof after === 'object' && path.startsWith(`${directory}/`) ? await this.text(after.sha256) : null;
      if (text === null) continue;
      const old = splitLines(text.toString('utf8'));
      const kept = matchLines(old, lines).filter((at) => at >= 0).length;
      if (kept >= most && kept >= old.length / 2 && kept > 0) [best, most] = [{ path, until }, kept];
    }
    return best;
  }

  async session(id: string): Promise<SessionRecord | null> {
    const known = this.#sessions.get(id);
    if (known !== undefined) return known;
    const row = await this.#store.session(id);
    const read = row === null ? null : new SessionRecord(row, await this.#store.load(id));
    this.#sessions.set(id, read);
    return read;
  }

  /** Returns the sessions with calls that changed files below a directory, or the last ones to begin of them. */
  async sessionsBelow(directory: string, sinceMs: number, most = Infinity): Promise<readonly SessionRecord[]> {
    const paths = await this.#recordedPaths(directory);
    const ids: string[] = [];
    for (const path of paths) addAll(ids, (await this.#rows?.sessionsBelow(path, sinceMs)) ?? (await this.#allIds()));
    return await this.#load(most === Infinity ? ids : ids.toSorted().slice(-most));
  }

  /** Returns when files below a directory were changed first (unix ms); null: never. */
  async firstChangeBelow(directory: string): Promise<number | null> {
    if (!this.#rows) return 0;
    let first: number | null = null;
    for (const path of await this.#recordedPaths(directory)) {
      const at = await this.#rows.firstChangeBelow(path);
      if (at !== null) first = Math.min(at, first ?? at);
    }
    return first;
  }

  /** Returns the sessions of other programs that name the file in a call. */
  async importedSessions(path: string): Promise<readonly SessionRecord[]> {
    return await this.#load((await this.#rows?.importedSessions(basename(path))) ?? []);
  }

  /** Returns the changes of the same file in other checkouts: of files that once had contents (SHA-256, hex) which this
   * one had, too. `names`: all that this one had. */
  async changesElsewhere(
    { path, at }: Pick<FileVersion, 'path' | 'at'>,
    names: readonly string[],
    contents: ReadonlySet<string>,
  ): Promise<readonly FileChangeRecord[]> {
    const sessions = await this.#load((await this.#rows?.sessionsOfContents([...contents])) ?? []);
    const changes = sessions
      .flatMap((session) => session.changes)
      .filter((change) => !names.includes(change.path) && change.at <= at && isSameFile(change, path));
    const same = new Set(changes.filter((change) => touches(change, contents)).map((change) => change.path));
    const found: FileChangeRecord[] = [];
    for (const one of same)
      addAll(
        found,
        (await this.#changesOf(one)).filter((change) => change.at <= at),
      );
    return found;
  }

  /** Returns the lines that a change added, as far as its contents or its diff are known. */
  async linesAddedBy({ before, after, diff }: FileChangeRecord): Promise<readonly NumberedLine[]> {
    if (typeof after !== 'object') return [];
    const fromDiff = diff === null ? null : splicesOfDiff(diff);
    if (fromDiff !== null) return addedBy(fromDiff);
    const bytes = await this.text(after.sha256);
    const old = typeof before === 'object' ? await this.text(before.sha256) : Buffer.alloc(0);
    return bytes && old ? addedBy([spliceBetween(old, bytes)]) : [];
  }

  /** Returns contents as UTF-8; null where the store does not have them, or they are no text. */
  text(sha256: string): Promise<Buffer | null> {
    const known = this.#texts.get(sha256);
    if (known !== undefined) return known;
    const [oldest] = this.#texts.keys();
    if (oldest !== undefined && this.#texts.size >= maxTexts) this.#texts.delete(oldest);
    const read = this.#readText(sha256);
    read.catch(() => undefined); // the reader of the text gets the error
    this.#texts.set(sha256, read);
    return read;
  }

  async #readText(sha256: string): Promise<Buffer | null> {
    const bytes = await this.#store.blob(sha256);
    return bytes === null ? null : await plainText(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
  }

  #source(path: string, earlierName: EarlierName): HistorySource {
    return {
      text: (sha256) => this.text(sha256),
      elsewhere: (sha256, until) => this.#elsewhere(path, sha256, until, earlierName),
    };
  }

  /** Finds contents that a call wrote to the same file in another checkout, or to one that has gone. */
  async #elsewhere(
    path: string,
    sha256: string,
    until: number,
    earlierName: EarlierName,
  ): Promise<readonly Author[] | null> {
    const bytes = this.#depth < maxDepth && this.#rows ? await this.text(sha256) : null;
    if (bytes === null || bytes.length < 2) return null;
    this.#depth++;
    try {
      const found = (await this.#writesOf(sha256, until)).findLast(
        (change) => change.path !== path && isSameFile(change, path),
      );
      if (!found) return null;
      const version = { path: found.path, sha256, bytes, at: found.at };
      return (await this.trace(version, earlierName)).authors;
    } finally {
      this.#depth--;
    }
  }

  async #changesOf(path: string): Promise<readonly FileChangeRecord[]> {
    const ids = new Set<string>();
    for (const recorded of await this.#recordedPaths(path))
      for (const id of (await this.#rows?.sessionsOfPath(recorded)) ?? (await this.#allIds())) ids.add(id);
    const sessions = await this.#load([...ids]);
    return inOrder(sessions.map(({ changes }) => changes.filter((change) => change.path === path)));
  }

  /** Returns a path as it may stand in the log: also below earlier places of directories that were moved. */
  async #recordedPaths(path: string): Promise<readonly string[]> {
    this.#moves ??= ((await this.#rows?.moves()) ?? []).flatMap(readMoves);
    const paths = new Set([path]);
    for (const { from, to } of this.#moves.toReversed())
      for (const one of [...paths]) if (one === to || one.startsWith(`${to}/`)) paths.add(from + one.slice(to.length));
    return [...paths];
  }

  async #load(ids: readonly string[]): Promise<readonly SessionRecord[]> {
    const sessions: SessionRecord[] = [];
    for (const id of new Set(ids)) {
      const session = await this.session(id);
      if (session) sessions.push(session);
    }
    return sessions;
  }

  async #allIds(): Promise<readonly string[]> {
    this.#all ??= (await this.#store.list(Number.MAX_SAFE_INTEGER, undefined, true)).map(({ id }) => id);
    return this.#all;
  }
}

const maxTexts = 16;

/** A renamed file is looked for in the last sessions only. */
const mostSessions = 50;

/** A line and its number, from 1. */
export interface NumberedLine {
  readonly line: number;
  readonly text: string;
}

/** Returns the new lines of changes, which come in order, with their numbers after all of them. */
function addedBy(splices: readonly Splice[]): readonly NumberedLine[] {
  let shift = 0;
  return splices.flatMap(({ at, removed, from, texts }) => {
    const start = at + shift;
    shift += from.length - removed;
    return from.flatMap((offset, index) => (offset < 0 ? [{ line: start + index + 1, text: texts[index] ?? '' }] : []));
  });
}

function touches({ before, after }: FileChangeRecord, contents: ReadonlySet<string>): boolean {
  return [before, after].some((state) => typeof state === 'object' && contents.has(state.sha256));
}

/** Returns contents as UTF-8; null where they are no text. */
export async function plainText(bytes: Buffer): Promise<Buffer | null> {
  if (isUtf8(bytes) && !bytes.includes(0)) return bytes;
  const { text } = await decodeText(bytes, null);
  return text === null || text.includes('\0') ? null : Buffer.from(text);
}

function readMoves(text: string): readonly { readonly from: string; readonly to: string }[] {
  try {
    const list: unknown = parseJson(text);
    return (Array.isArray(list) ? (list as readonly unknown[]) : []).flatMap((item) => {
      if (!isRecord(item) || typeof item['from'] !== 'string' || typeof item['to'] !== 'string') return [];
      return [{ from: item['from'], to: item['to'] }];
    });
  } catch {
    return []; // damaged: as if it was not known
  }
}

function isContent(state: ContentState, sha256: string): boolean {
  return typeof state === 'object' && state.sha256 === sha256;
}

/** Returns true for a file that has gone, so that it was probably renamed, and for one of the same name below the
 * directory of its session. */
function isSameFile({ path, session }: FileChangeRecord, other: string): boolean {
  if (!existsSync(path)) return true;
  const { cwd } = session.row;
  const inside = path.startsWith(`${cwd}/`) ? path.slice(cwd.length) : `/${basename(path)}`;
  return other.endsWith(inside);
}

function isSameEvent(one: FileChangeRecord, other: FileChangeRecord): boolean {
  return one.session === other.session && one.seq === other.seq;
}

interface Rename extends NamedUntil {
  readonly record: FileChangeRecord;
}

/** Divides the changes of a path at the last one that gave it to a file of another name. */
function lastRename(records: readonly FileChangeRecord[]): {
  readonly rename: Rename | null;
  readonly later: readonly FileChangeRecord[];
} {
  for (let at = records.length - 1; at >= 0; at--) {
    const record = records[at];
    const source = record && sourceOf(record);
    if (!record || !source) continue;
    const renamed = { ...record, before: { sha256: source.sha256 } };
    return {
      rename: { path: source.path, until: record.at, record },
      later: [renamed, ...records.slice(at + 1)],
    };
  }
  return { rename: null, later: records };
}

/** Returns the file that a change gave a new name: one that went with these contents. */
function sourceOf({ path, before, after, deleted }: FileChangeRecord): { path: string; sha256: string } | undefined {
  const others = deleted.filter((one) => one.path !== path);
  if (typeof after !== 'object') return undefined;
  const same = others.find(({ sha256 }) => sha256 === after.sha256);
  // A file that was changed as well has the only name that came for the only one that went.
  return same ?? (before === 'absent' && others.length === 1 ? others[0] : undefined);
}

/** Sessions that run at the same time may be recorded a little later than they write. */
const sloppyMs = 1000;

/** Puts the changes of several sessions into the order in which they were made, each once. */
function inOrder(sessions: readonly (readonly FileChangeRecord[])[]): readonly FileChangeRecord[] {
  const copies = new Map<string, FileChangeRecord>();
  for (const record of sessions.flat()) {
    const key = [record.at, record.seq, record.path, nameOf(record.before), nameOf(record.after)].join(' ');
    const known = copies.get(key);
    if (!known || record.session.row.createdAt < known.session.row.createdAt) copies.set(key, record);
  }
  const originals = new Set(copies.values());
  const queues = sessions
    .map((records) => records.filter((record) => originals.has(record)))
    .filter((records) => records.length > 0);
  const ordered: FileChangeRecord[] = [];
  while (queues.length > 0) {
    queues.sort((a, b) => (a[0]?.at ?? 0) - (b[0]?.at ?? 0));
    const last = ordered.at(-1)?.after;
    const first = queues[0]?.[0]?.at ?? 0;
    const follows = queues.findIndex(
      ([head]) =>
        head !== undefined && last !== undefined && head.at <= first + sloppyMs && nameOf(head.before) === nameOf(last),
    );
    const at = Math.max(0, follows);
    const [head, ...rest] = queues[at] ?? [];
    if (head) ordered.push(head);
    if (rest.length > 0) queues[at] = rest;
    else queues.splice(at, 1);
  }
  return withoutUndone(ordered);
}

function nameOf(state: ContentState): string {
  return typeof state === 'string' ? state : state.sha256;
}

/** Takes a change and its undo as no change, where nothing came between them: the file is as before, and so are its
 * authors. */
function withoutUndone(records: readonly FileChangeRecord[]): readonly FileChangeRecord[] {
  const kept: FileChangeRecord[] = [];
  const undone = new Map<string, FileChangeRecord>();
  for (const record of records) {
    const { reverts, session, at, startedAt } = record;
    const key = `${session.row.id} ${reverts?.seq ?? 0}`;
    const place = kept.findLastIndex(({ before, after }) => nameOf(before) !== nameOf(after));
    const last = kept[place];
    const again = reverts?.kind === 'redo' ? undone.get(key) : undefined;
    if (last && takesBack(record, last)) {
      undone.set(key, last);
      kept[place] = { ...last, after: last.before, at, diff: null, deleted: [] };
    } else if (again && isSameState(again.after, record.after)) kept.push({ ...again, at, startedAt });
    else kept.push(record);
  }
  return kept;
}

function takesBack({ reverts, session, after }: FileChangeRecord, last: FileChangeRecord): boolean {
  const isOfLast = reverts?.kind === 'undo' && last.session === session && last.seq === reverts.seq;
  return isOfLast && isSameState(last.before, after);
}

function isSameState(one: ContentState, other: ContentState): boolean {
  return nameOf(one) === nameOf(other);
}
