import { readdirSync, readlinkSync, realpathSync } from 'node:fs';
import { basename, dirname, isAbsolute, join } from 'node:path';
import { pathStats } from '../../disk/path-stats.js';

/** The paths that a command names, as the kernel resolves the folders on the way to them. */
export interface Named {
  /** Files, folders and what does not exist yet, with the missing folders on the way, and the targets of links. */
  readonly paths: ReadonlySet<string>;
  /** The folders among them that other programs write to as well. What else is in them is not watched. */
  readonly shared: ReadonlySet<string>;
  /** The reasons why there may be more of them. */
  readonly problems: readonly string[];
  /** Returns true if the path is named or is below one that is. */
  holds(path: string): boolean;
  /** Returns true if a path inside of `folder` is named that is this path or holds it. */
  namesInside(folder: string, path: string): boolean;
}

/** More paths than this are not watched by name. */
const maxNamed = 2000;
const maxLinks = 40;

/** Resolves what a command names: absolute paths, wildcards in them. `cwd` is where it starts. Throws nothing. */
export function findNamed(texts: readonly string[], cwd: string, home: string | undefined): Named {
  const found: Found = { paths: new Set(), problems: new Set(), folders: new Map() };
  if (texts.length > maxNamed) found.problems.add(`the command names more than ${maxNamed} paths`);
  for (const text of texts.slice(0, maxNamed)) for (const path of expanded(text, found)) land(path, found, maxLinks);
  const { paths } = found;
  const shared = new Set([...paths].filter((path) => isShared(path, cwd, home)));
  const names = new Set([...paths].map((path) => basename(path)));
  for (const folder of shared) {
    found.problems.add(`other programs write to ${folder} too: only files named in the command were watched there`);
    for (const name of names) land(join(folder, name), found, maxLinks);
  }
  const within = (path: string, isNamed: (at: string) => boolean): boolean => {
    for (let at = path; at !== '/'; at = dirname(at)) if (isNamed(at)) return true;
    return false;
  };
  return {
    paths,
    shared,
    problems: [...found.problems],
    holds: (path) => within(path, (at) => paths.has(at) && (at === path || !shared.has(at))),
    namesInside: (folder, path) => within(path, (at) => at.startsWith(`${folder}/`) && paths.has(at)),
  };
}

const stickyBit = 0o1000;

/** Returns true for folders such as `/tmp`, the home folder, and those around the directory of the session. */
function isShared(path: string, cwd: string, home: string | undefined): boolean {
  if (path === home || path === '/' || cwd.startsWith(`${path}/`)) return true;
  const found = pathStats(path, 'keep');
  return found.kind === 'there' && found.stats.isDirectory() && (found.stats.mode & stickyBit) !== 0;
}

interface Found {
  readonly paths: Set<string>;
  readonly problems: Set<string>;
  /** Folders by the way they were named, with the path that the kernel gives them; null: none can be there. */
  readonly folders: Map<string, string | null>;
}

/** Adds the path, the missing folders on the way, and where it leads to if it is a link. */
function land(text: string, found: Found, linksLeft: number): void {
  const path = landed(text, found);
  if (path === null || linksLeft === 0 || found.paths.has(path)) return;
  if (found.paths.size >= 2 * maxNamed) {
    found.problems.add(`the command names more than ${maxNamed} paths`);
    return;
  }
  found.paths.add(path);
  const stats = pathStats(path, 'keep');
  if (stats.kind !== 'there' || !stats.stats.isSymbolicLink()) return;
  const target = linkTarget(path);
  if (target !== null) land(isAbsolute(target) ? target : join(dirname(path), target), found, linksLeft - 1);
}

function linkTarget(path: string): string | null {
  try {
    return readlinkSync(path);
  } catch {
    return null;
  }
}

/** Returns the path itself, not followed if it is a link, below the folder that the kernel finds. */
function landed(text: string, found: Found): string | null {
  const plain = text.replace(/\/+$/, '') || '/';
  const name = basename(plain);
  if (plain === '/' || name === '.' || name === '..') return landedFolder(plain, found);
  const folder = landedFolder(dirname(plain), found);
  return folder === null ? null : join(folder, name);
}

function landedFolder(folder: string, found: Found): string | null {
  const known = found.folders.get(folder);
  if (known !== undefined) return known;
  const path = resolveFolder(folder, found);
  found.folders.set(folder, path);
  return path;
}

function resolveFolder(folder: string, found: Found): string | null {
  try {
    return realpathSync.native(folder);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'error';
    if (code === 'EACCES' || code === 'EPERM') found.problems.add(`${folder} cannot be read (${code})`);
    if (code !== 'ENOENT' && code !== 'ENOTDIR') return null;
    const name = basename(folder);
    const parent = landedFolder(dirname(folder), found);
    if (parent === null || name === '.' || name === '..') return parent;
    const path = join(parent, name);
    land(path, found, maxLinks);
    return path;
  }
}

/** Returns the path and, if it has wildcards, the names that match; `**` matches the folder in front of it. */
function expanded(text: string, found: Found): readonly string[] {
  if (!/[*?[]/.test(text)) return [text];
  let bases: readonly string[] = ['/'];
  for (const part of text.split('/').filter((name) => name !== '')) {
    if (part === '**') break;
    bases = /[*?[]/.test(part)
      ? bases.flatMap((base) => fitting(base, part))
      : bases.map((base) => `${base === '/' ? '' : base}/${part}`);
    if (bases.length <= maxNamed) continue;
    found.problems.add(`${text} names more than ${maxNamed} paths`);
    bases = bases.slice(0, maxNamed);
  }
  return [text, ...bases];
}

function fitting(folder: string, part: string): readonly string[] {
  const pattern = patternOf(part);
  try {
    return readdirSync(folder)
      .filter((name) => pattern.test(name))
      .map((name) => `${folder === '/' ? '' : folder}/${name}`);
  } catch {
    return []; // no folder, or one that cannot be read: the wildcard fits nothing
  }
}

/** More wildcards in one name than this fit any name, so that no pattern takes long. */
const maxWildcards = 8;

function patternOf(part: string): RegExp {
  if ((part.match(/[*?[]/g) ?? []).length > maxWildcards) return /^/;
  const source = part.replace(/\*+|\?|\[([!^]?)(\]?[^\]]*)\]|[\\^$.|+(){}[\]]/g, (sign, not?: string, set?: string) => {
    if (sign.startsWith('*')) return '.*';
    if (sign === '?') return '.';
    if (set === undefined) return `\\${sign}`;
    return `[${not ? '^' : ''}${set.replace(/[\\\]^]/g, '\\$&')}]`;
  });
  try {
    return new RegExp(`^${source}$`, 's');
  } catch {
    return /^/; // a set that is none, as `[z-a]`
  }
}
