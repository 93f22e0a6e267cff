import { type Dirent, readdirSync, realpathSync } from 'node:fs';
import { basename, join } from 'node:path';
import { statsAt } from '../disk/path-stats.js';

/** The source of a file of instructions. `claude-code`: the user's own folder of that program. */
export type FileOrigin = 'project' | 'user' | 'program' | 'option' | 'claude-code' | `plugin:${string}`;

/** A folder that may hold files of instructions. `root`: what lies outside of it is left out, also behind links; null
 * for the user's own folders. */
export interface SearchedFolder {
  readonly folder: string;
  readonly origin: FileOrigin;
  readonly root: string | null;
  /** Set for a plugin: its name precedes the names of what is in the folder, as in `plugin:name`. */
  readonly prefix?: string;
  /** Texts to replace in its files, by what they replace: `${CLAUDE_PLUGIN_ROOT}`. */
  readonly variables?: Readonly<Record<string, string>>;
}

/** A file that is not used, and the reason as a sentence without its subject. */
export interface LeftOutFile {
  readonly name: string;
  readonly path: string;
  readonly origin: FileOrigin;
  readonly reason: string;
}

/** Returns the name of what was found in a folder, with the plugin that it belongs to. */
export function nameIn({ prefix }: SearchedFolder, name: string): string {
  return prefix === undefined ? name : `${prefix}:${name}`;
}

/** Replaces the variables of a place in a text of one of its files. */
export function withVariables({ variables = {} }: Pick<SearchedFolder, 'variables'>, text: string): string {
  return Object.entries(variables).reduce((filled, [name, value]) => filled.replaceAll(name, () => value), text);
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
  if (place.prefix !== undefined) {
    // A plugin may name a single file, or the folder of a single skill.
    const name = basename(place.folder);
    const path = take({ path: place.folder, name, isFolder: statsAt(place.folder)?.isDirectory() === true });
    if (path !== null) return [{ path, name, place }];
  }
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
