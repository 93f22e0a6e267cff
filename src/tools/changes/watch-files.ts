import { existsSync, lstatSync, readdirSync, readlinkSync, type Stats } from 'node:fs';
import { basename, dirname, relative } from 'node:path';
import { setImmediate as nextTick } from 'node:timers/promises';
import type { ChangeWatch, WatchedChange, WatchReport } from '../../core/file-changes.js';
import { readBounded } from '../../disk/bounded-file.js';
import { folderRules, type FolderRules } from '../search/ignore-rules.js';

export interface ChangeWatchOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Recognises files whose contents are never cached. */
  readonly isSecret: (path: string) => boolean;
  readonly limits?: Partial<WatchLimits>;
}

export interface WatchLimits extends ManifestLimits {
  /** Larger files are not read before a command. */
  readonly maxFileBytes: number;
  /** The time for reading contents before a command. What was read stays for the next one. */
  readonly maxReadMs: number;
  readonly maxCacheBytes: number;
  /** The most bytes that are read after a command. */
  readonly maxAfterBytes: number;
}

const defaults: WatchLimits = {
  maxEntries: 20_000,
  maxWalkMs: 30,
  maxFileBytes: 256 * 1024,
  maxReadMs: 30,
  maxCacheBytes: 24 * 1024 * 1024,
  maxAfterBytes: 32 * 1024 * 1024,
};
/** A file that was written this shortly before it was read may be written again with the same times. */
const racyMs = 20;

/** Watches the working tree around commands: its entries before and after, and the contents of small files. Files that
 * the session knows or the command names come first. If there was no time to read a file, undo has no contents for it,
 * and the report says so. */
export function createChangeWatch(options: ChangeWatchOptions): ChangeWatch {
  const limits: WatchLimits = { ...defaults, ...options.limits };
  const cache = createContentCache(limits);
  return {
    async begin({ effect, cwd, verdict, commandText, knownPaths }) {
      if (effect !== 'execute') return watchFolders(verdict.targets ?? []);
      const look = (maxWalkMs: number): Manifest =>
        readManifest({ root: cwd, limits: { ...limits, maxWalkMs }, env: options.env });
      const before = look(limits.maxWalkMs);
      const first = new Set([...(verdict.targets ?? []), ...knownPaths]);
      const entries = withNamed(before, first);
      const absent = (verdict.targets ?? []).filter((path) => !entries.has(path) && !existsSync(path));
      cache.fill(entries, { first, commandText, root: cwd, isSecret: options.isSecret });
      return async () => {
        await nextTick();
        const after = look(limits.maxWalkMs * 2);
        return report({
          before: { ...before, files: entries },
          after,
          absent,
          cache,
          limits,
          isSecret: options.isSecret,
        });
      };
    },
  };
}

/** Reports the folders that a write makes for its files. */
function watchFolders(targets: readonly string[]): () => Promise<WatchReport> {
  const missing = targets.flatMap((path) => topmostMissing(dirname(path)) ?? []);
  return () =>
    Promise.resolve({ changes: [], goneFolders: [], madeFolders: missing.filter((folder) => existsSync(folder)) });
}

function topmostMissing(folder: string): string | null {
  if (existsSync(folder)) return null;
  return topmostMissing(dirname(folder)) ?? folder;
}

/** Adds the named and known files that ignore rules or limits left out, or that lie elsewhere. */
function withNamed(manifest: Manifest, named: ReadonlySet<string>): ReadonlyMap<string, ManifestEntry> {
  const files = new Map(manifest.files);
  for (const path of named) {
    const entry = files.has(path) ? null : readEntry(path);
    if (entry) files.set(path, entry);
  }
  return files;
}

interface Comparison {
  readonly before: Manifest;
  readonly after: Manifest;
  /** Files that the command names and that did not exist. */
  readonly absent: readonly string[];
  readonly cache: ContentCache;
  readonly limits: WatchLimits;
  readonly isSecret: (path: string) => boolean;
}

function report(c: Comparison): WatchReport {
  const { before, after } = c;
  let room = c.limits.maxAfterBytes;
  const changes: WatchedChange[] = [];
  const take = (change: WatchedChange | null): void => {
    if (change === null) return;
    if (change.captured) room -= change.after?.byteLength ?? 0;
    changes.push(change);
  };
  for (const [path, entry] of before.files) {
    const now = after.files.get(path) ?? readEntry(path);
    if (now === null) take(deleted(c, path, entry));
    else if (differs(entry, now, before.atMs)) take(changed(c, path, [entry, now], room));
  }
  for (const [path, entry] of after.files) {
    if (!before.files.has(path) && isNew(before, path)) take(created(c, path, entry, room));
  }
  for (const path of c.absent) {
    const entry = after.files.has(path) ? null : readEntry(path);
    if (entry) take(created(c, path, entry, room));
  }
  const madeFolders = [...after.folders.keys()].filter(
    (folder) => !before.folders.has(folder) && isNew(before, folder) && before.folders.has(dirname(folder)),
  );
  const unwatched = before.complete
    ? {}
    : { unwatched: `the tree is large: only its first ${before.files.size} files were watched` };
  const goneFolders = [...before.folders.keys()].filter(
    (folder) => !after.folders.has(folder) && !existsSync(folder) && existsSync(dirname(folder)),
  );
  return { changes, madeFolders, goneFolders, ...unwatched };
}

/** Returns true if the folder of the path was read before the command and did not contain it. */
function isNew(before: Manifest, path: string): boolean {
  const parent = dirname(path);
  const folder = before.folders.get(parent);
  return folder ? folder.listed : parent !== path && isNew(before, parent);
}

function differs(before: ManifestEntry, now: ManifestEntry, atMs: number): boolean {
  return (
    now.ctimeMs !== before.ctimeMs ||
    now.mtimeMs !== before.mtimeMs ||
    now.size !== before.size ||
    now.ino !== before.ino ||
    atMs - before.ctimeMs < racyMs
  );
}

function deleted({ cache, limits, isSecret }: Comparison, path: string, entry: ManifestEntry): WatchedChange {
  const bytes = isSecret(path) ? null : cache.take(path, entry);
  if (bytes) return { captured: true, path, before: bytes, after: null, beforeMode: entry.mode };
  return {
    captured: false,
    path,
    what: 'deleted',
    beforeMode: entry.mode,
    reason: whyNot(path, entry, limits, isSecret),
  };
}

function changed(
  c: Comparison,
  path: string,
  [entry, now]: readonly [ManifestEntry, ManifestEntry],
  room: number,
): WatchedChange | null {
  const modes = { beforeMode: entry.mode, afterMode: now.mode };
  const { before, after } = c.isSecret(path) ? { before: null, after: null } : contents(c, path, [entry, now], room);
  if (before === null || after === null) {
    if (isTouched(entry, now) && entry.mode === now.mode) return null;
    const reason = before === null ? whyNot(path, entry, c.limits, c.isSecret) : 'what it became could not be read';
    return { captured: false, path, what: 'changed', ...modes, reason };
  }
  if (before.equals(after) && entry.mode === now.mode) return null;
  c.cache.put(path, now, after);
  return { captured: true, path, before, after, ...modes };
}

/** Returns the contents before and after. A file whose time, size and place are the same has the same contents. */
function contents(
  { cache }: Comparison,
  path: string,
  [entry, now]: readonly [ManifestEntry, ManifestEntry],
  room: number,
): { readonly before: Buffer | null; readonly after: Buffer | null } {
  const after = now.size > room ? null : readContents(path, now);
  return { before: cache.take(path, entry) ?? (isTouched(entry, now) ? after : null), after };
}

function isTouched(entry: ManifestEntry, now: ManifestEntry): boolean {
  return now.mtimeMs === entry.mtimeMs && now.size === entry.size && now.ino === entry.ino;
}

function created({ cache, isSecret }: Comparison, path: string, entry: ManifestEntry, room: number): WatchedChange {
  const after = isSecret(path) || entry.size > room ? null : readContents(path, entry);
  if (after === null)
    return {
      captured: false,
      path,
      what: 'created',
      afterMode: entry.mode,
      reason: isSecret(path) ? secret : 'it is too large to be kept',
    };
  cache.put(path, entry, after);
  return { captured: true, path, before: null, after, afterMode: entry.mode };
}

const secret = 'it may hold secrets';

function whyNot(path: string, entry: ManifestEntry, limits: WatchLimits, isSecret: (path: string) => boolean): string {
  if (isSecret(path)) return secret;
  return entry.size > limits.maxFileBytes
    ? `it had more than ${limits.maxFileBytes} bytes`
    : 'there was no time to read it before';
}

/** The facts of a file or link. */
export interface ManifestEntry {
  readonly size: number;
  readonly mtimeMs: number;
  readonly ctimeMs: number;
  readonly ino: number;
  readonly mode: number;
}

export interface Manifest {
  /** Files and links by absolute path. */
  readonly files: ReadonlyMap<string, ManifestEntry>;
  /** The folders that were found. `listed` is false if there was no time to read the folder. */
  readonly folders: ReadonlyMap<string, { readonly listed: boolean }>;
  readonly complete: boolean;
  /** When the walk began, Unix ms. */
  readonly atMs: number;
}

export interface ManifestLimits {
  readonly maxEntries: number;
  readonly maxWalkMs: number;
}

interface ManifestOptions {
  /** Absolute, links resolved. */
  readonly root: string;
  readonly limits: ManifestLimits;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** A folder to read. `rules` are made once its names are known, which spares a look for each ignore file. */
interface Folder {
  readonly path: string;
  readonly rules: (names: readonly string[]) => FolderRules;
}

/** Lists a tree, near folders first, as the search tools see it: without the entries that ignore rules exclude. Links
 * are not followed. It blocks for about `maxWalkMs` at most. It throws nothing and leaves out what cannot be read. */
export function readManifest({ root, limits, env }: ManifestOptions): Manifest {
  const atMs = Date.now();
  const endsAt = performance.now() + limits.maxWalkMs;
  const files = new Map<string, ManifestEntry>();
  const folders = new Map([[root, { listed: false }]]);
  const queue: Folder[] = [{ path: root, rules: () => folderRules({ folder: root, shown: '', env }) }];
  let next = 0;
  for (let folder = queue[next]; folder !== undefined; folder = queue[++next]) {
    if (performance.now() > endsAt || files.size >= limits.maxEntries) break;
    folders.set(folder.path, { listed: true });
    for (const found of foldersAndFiles(folder, files)) {
      folders.set(found.path, { listed: false });
      queue.push(found);
    }
  }
  return { files, folders, complete: next === queue.length, atMs };
}

/** Adds the files of one folder to `files` and returns its folders. */
function foldersAndFiles(
  { path: folder, rules: rulesOf }: Folder,
  files: Map<string, ManifestEntry>,
): readonly Folder[] {
  const entries = attempt(() => readdirSync(folder, { withFileTypes: true })) ?? [];
  const rules = rulesOf(entries.map((entry) => entry.name));
  const folders: Folder[] = [];
  for (const entry of entries) {
    const isFolder = entry.isDirectory();
    if (rules.skips(entry.name, isFolder)) continue;
    const path = `${folder === '/' ? '' : folder}/${entry.name}`;
    if (isFolder) folders.push({ path, rules: (names) => rules.inside(entry.name, names) });
    else if (entry.isFile() || entry.isSymbolicLink()) {
      const found = readEntry(path);
      if (found) files.set(path, found);
    }
  }
  return folders;
}

/** Returns null if there is no file or link. */
export function readEntry(path: string): ManifestEntry | null {
  const stats = attempt(() => lstatSync(path, { throwIfNoEntry: false }));
  return stats && (stats.isFile() || stats.isSymbolicLink()) ? entryOf(stats) : null;
}

function entryOf({ size, mtimeMs, ctimeMs, ino, mode }: Stats): ManifestEntry {
  return { size, mtimeMs, ctimeMs, ino, mode };
}

/** Returns null if the file system refuses. Such a place is not watched. */
function attempt<T>(read: () => T | undefined): T | null {
  try {
    return read() ?? null;
  } catch {
    return null;
  }
}

/** The contents of small files when they were last read, bounded in bytes. The oldest are dropped first. */
export interface ContentCache {
  /** Reads files until the time is over: first those in `first`, then those that the command names, then those that
   * changed last. */
  fill(files: ReadonlyMap<string, ManifestEntry>, wanted: Wanted): void;
  put(path: string, entry: ManifestEntry, bytes: Buffer): void;
  /** Returns the contents that the file had when its facts were `entry`, or null. */
  take(path: string, entry: ManifestEntry): Buffer | null;
}

export interface Wanted {
  readonly first: ReadonlySet<string>;
  readonly commandText: string;
  readonly root: string;
  readonly isSecret: (path: string) => boolean;
}
export interface CacheLimits {
  readonly maxFileBytes: number;
  readonly maxReadMs: number;
  readonly maxCacheBytes: number;
}

interface CachedFile {
  readonly entry: ManifestEntry;
  readonly bytes: Buffer;
}

const linkType = 0o120000;
const typeMask = 0o170000;

export function createContentCache(limits: CacheLimits): ContentCache {
  const cached = new Map<string, CachedFile>();
  let total = 0;
  const drop = (path: string): void => {
    total -= cached.get(path)?.bytes.byteLength ?? 0;
    cached.delete(path);
  };
  const put: ContentCache['put'] = (path, entry, bytes) => {
    drop(path);
    if (bytes.byteLength > limits.maxFileBytes) return;
    cached.set(path, { entry, bytes });
    total += bytes.byteLength;
    for (const oldest of cached.keys()) {
      if (total <= limits.maxCacheBytes) break;
      drop(oldest);
    }
  };
  const take: ContentCache['take'] = (path, entry) => {
    const found = cached.get(path);
    return found && sameEntry(found.entry, entry) ? found.bytes : null;
  };
  return {
    put,
    take,
    fill(files, wanted) {
      const endsAt = performance.now() + limits.maxReadMs;
      const missing = [...files].filter(
        ([path, entry]) => entry.size <= limits.maxFileBytes && take(path, entry) === null,
      );
      let read = 0;
      for (const [path, entry] of ranked(missing, wanted)) {
        if (performance.now() > endsAt || read > limits.maxCacheBytes) break;
        const bytes = wanted.isSecret(path) ? null : readContents(path, entry);
        if (bytes === null) continue;
        read += bytes.byteLength;
        put(path, entry, bytes);
      }
    },
  };
}

/** Reads the target of a link or the bytes of a file. Returns null if it cannot be read or its size differs from the
 * entry. */
export function readContents(path: string, entry: ManifestEntry): Buffer | null {
  try {
    if ((entry.mode & typeMask) === linkType) return readlinkSync(path, { encoding: 'buffer' });
    const found = readBounded(path, { maxBytes: entry.size, longer: 'refuse', links: 'refuse' });
    return found.kind === 'read' && found.bytes.byteLength === entry.size ? found.bytes : null;
  } catch {
    return null;
  }
}

function sameEntry(a: ManifestEntry, b: ManifestEntry): boolean {
  return a.size === b.size && a.mtimeMs === b.mtimeMs && a.ctimeMs === b.ctimeMs && a.ino === b.ino;
}

function ranked(
  files: readonly (readonly [string, ManifestEntry])[],
  { first, commandText, root }: Wanted,
): readonly (readonly [string, ManifestEntry])[] {
  const mentioned = new Map<string, boolean>();
  const inNamedFolder = (path: string): boolean => {
    const folder = relative(root, dirname(path));
    let named = mentioned.get(folder);
    if (named === undefined) mentioned.set(folder, (named = folder !== '' && commandText.includes(folder)));
    return named;
  };
  const rank = (path: string): number =>
    first.has(path) ? 0 : commandText.includes(basename(path)) ? 1 : inNamedFolder(path) ? 2 : 3;
  return files
    .map((file) => ({ file, rank: rank(file[0]) }))
    .sort((a, b) => a.rank - b.rank || b.file[1].mtimeMs - a.file[1].mtimeMs)
    .map(({ file }) => file);
}
