import { lstatSync, readdirSync, type Stats } from 'node:fs';
import { folderRules, type FolderRules } from './ignore-rules.js';

/** A file or link as its entry shows it. */
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
  /** Folders that were found; `listed` is false where there was no time to look inside. */
  readonly folders: ReadonlyMap<string, { readonly listed: boolean }>;
  readonly complete: boolean;
  /** When the walk began, Unix ms. */
  readonly atMs: number;
}

export interface ManifestLimits {
  readonly maxEntries: number;
  readonly maxWalkMs: number;
}

export interface ManifestOptions {
  /** Absolute, links resolved. */
  readonly root: string;
  readonly limits: ManifestLimits;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** A folder to look into. `rules` are made once its names are known, which spares looking for ignore files one by
 * one. */
interface Folder {
  readonly path: string;
  readonly rules: (names: readonly string[]) => FolderRules;
}

/** What a tree holds, near folders first, as the search tools see it: what ignore rules leave out is not in it. Links
 * are not followed. Blocks for at most about `maxWalkMs`; throws nothing, what cannot be read is left out. */
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

/** Adds the files of one folder to `files` and gives its folders. */
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

/** Null where there is no file or link. */
export function readEntry(path: string): ManifestEntry | null {
  const stats = attempt(() => lstatSync(path, { throwIfNoEntry: false }));
  return stats && (stats.isFile() || stats.isSymbolicLink()) ? entryOf(stats) : null;
}

function entryOf({ size, mtimeMs, ctimeMs, ino, mode }: Stats): ManifestEntry {
  return { size, mtimeMs, ctimeMs, ino, mode };
}

/** Null where the file system refuses; such a place is not watched. */
function attempt<T>(read: () => T | undefined): T | null {
  try {
    return read() ?? null;
  } catch {
    return null;
  }
}
