import { type Dirent, readdirSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { statsAt } from '../disk/path-stats.js';

/** A folder that may hold files of instructions. `root`: what lies outside of it is left out, also behind links; null
 * for the user's own folders. */
export interface SearchedFolder {
  readonly folder: string;
  readonly origin: 'project' | 'user' | 'program';
  readonly root: string | null;
}

export interface FoundFile {
  /** As it was found. */
  readonly path: string;
  /** Below the folder of its place, with `/`. */
  readonly name: string;
  readonly place: SearchedFolder;
}

export interface FoundPath {
  readonly path: string;
  readonly name: string;
  readonly isFolder: boolean;
}

const maxDepth = 3;
const maxFolders = 2000;

/** Walks the folder of a place by name, at most three folders deep and at most 2,000 of them. An entry for which `take`
 * returns a path is taken and not entered. */
export function filesIn(place: SearchedFolder, take: (entry: FoundPath) => string | null): readonly FoundFile[] {
  const found: FoundFile[] = [];
  const folders: (FoundPath & { readonly depth: number })[] = [
    { path: place.folder, name: '', isFolder: true, depth: 0 },
  ];
  for (let index = 0; index < Math.min(folders.length, maxFolders); index++) {
    const folder = folders[index];
    for (const entry of folder ? entriesOf(folder, place) : []) {
      const path = take(entry);
      if (path !== null) found.push({ path, name: entry.name, place });
      else if (entry.isFolder && folder && folder.depth < maxDepth) folders.push({ ...entry, depth: folder.depth + 1 });
    }
  }
  return found;
}

function entriesOf(
  { path: folder, name: above }: FoundPath,
  { root, folder: top }: SearchedFolder,
): readonly FoundPath[] {
  if (folder === top && root !== null && !isInside(folder, root)) return [];
  return readEntries(folder)
    .toSorted((one, other) => (one.name < other.name ? -1 : 1))
    .flatMap((entry) => {
      const path = join(folder, entry.name);
      const name = above === '' ? entry.name : `${above}/${entry.name}`;
      if (!entry.isSymbolicLink()) return [{ path, name, isFolder: entry.isDirectory() }];
      if (root !== null && !isInside(path, root)) return [];
      return [{ path, name, isFolder: statsAt(path)?.isDirectory() === true }];
    });
}

function readEntries(folder: string): readonly Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return [];
  }
}

/** Returns true if a path leads below `root`. `root` must have its links resolved. */
function isInside(path: string, root: string): boolean {
  try {
    const landed = realpathSync(path);
    return landed === root || landed.startsWith(root.endsWith('/') ? root : `${root}/`);
  } catch {
    return false;
  }
}
