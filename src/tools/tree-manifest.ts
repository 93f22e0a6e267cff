import { lstatSync, readdirSync, type Stats } from 'node:fs';
import { join } from 'node:path';
import { folderRules, globalIgnoreText, type CreateIgnore, type FolderRules } from './ignore-rules.js';

/** A file or link as its entry shows it. */
export interface ManifestEntry { readonly size: number; readonly mtimeMs: number; readonly ctimeMs: number; readonly ino: number; readonly mode: number }

export interface Manifest {
  /** Files and links by absolute path. */
  readonly files: ReadonlyMap<string, ManifestEntry>;
  /** Folders that were found; `listed` is false where there was no time to look inside. */
  readonly folders: ReadonlyMap<string, { readonly listed: boolean }>;
  readonly complete: boolean;
  /** When the walk began, Unix ms. */
  readonly atMs: number;
}

export interface ManifestLimits { readonly maxEntries: number; readonly maxWalkMs: number }

export interface ManifestOptions {
  /** Absolute, links resolved. */
  readonly root: string;
  readonly limits: ManifestLimits;
  readonly createIgnore: CreateIgnore;
  readonly env: Readonly<Record<string, string | undefined>>;
}

interface Folder { readonly path: string; readonly rules: FolderRules }

/** What a tree holds, near folders first, as the search tools see it: what ignore rules leave out is not in it. Links are not followed.
 *  Blocks for at most about `maxWalkMs`; throws nothing, what cannot be read is left out. */
export function readManifest({ root, limits, createIgnore, env }: ManifestOptions): Manifest {
  const atMs = Date.now();
  const endsAt = performance.now() + limits.maxWalkMs;
  const files = new Map<string, ManifestEntry>();
  const folders = new Map([[root, { listed: false }]]);
  const queue: Folder[] = [{ path: root, rules: folderRules(root, createIgnore, globalIgnoreText(env)) }];
  let complete = true;
  for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
    if (performance.now() > endsAt || files.size >= limits.maxEntries) { complete = false; break; }
    folders.set(next.path, { listed: true });
    for (const { path, rules, stats } of entriesOf(next)) {
      if (stats.isDirectory()) {
        folders.set(path, { listed: false });
        queue.push({ path, rules: rules() });
      } else if (stats.isFile() || stats.isSymbolicLink()) files.set(path, entryOf(stats));
    }
  }
  return { files, folders, complete, atMs };
}

/** Null where there is no file or link. */
export function readEntry(path: string): ManifestEntry | null {
  const stats = attempt(() => lstatSync(path, { throwIfNoEntry: false }));
  return stats && (stats.isFile() || stats.isSymbolicLink()) ? entryOf(stats) : null;
}

function entryOf({ size, mtimeMs, ctimeMs, ino, mode }: Stats): ManifestEntry {
  return { size, mtimeMs, ctimeMs, ino, mode };
}

function entriesOf({ path: folder, rules }: Folder): readonly { readonly path: string; readonly rules: () => FolderRules; readonly stats: Stats }[] {
  const found = attempt(() => readdirSync(folder, { withFileTypes: true })) ?? [];
  return found.flatMap((entry) => {
    if (rules.skips(entry.name, entry.isDirectory())) return [];
    const path = join(folder, entry.name);
    const stats = attempt(() => lstatSync(path, { throwIfNoEntry: false }));
    return stats ? [{ path, stats, rules: () => rules.inside(entry.name) }] : [];
  });
}

/** Null where the file system refuses; such a place is not watched. */
function attempt<T>(read: () => T | undefined): T | null {
  try {
    return read() ?? null;
  } catch {
    return null;
  }
}
