import { lstatSync, readdirSync, readlinkSync, type Stats } from 'node:fs';
import { basename, dirname, relative } from 'node:path';
import { readBounded } from '../../disk/bounded-file.js';
import { folderRules, type FolderRules } from '../search/ignore-rules.js';

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
