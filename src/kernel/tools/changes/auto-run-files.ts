import { addAll } from '../../core/lists.js';
import { type Dirent, readdirSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { statsAt } from '../../disk/path-stats.js';
import { obeyedInProjects, obeyedInRepositories, parseSettings } from '../../core/files/executable-config.js';
import { readBoundedText } from '../../disk/bounded-file.js';

const maxEntries = 1000;
const maxRepositories = 200;

/** A place that a program obeys, whether or not a file is there. */
export interface ObeyedPlace {
  /** Absolute. The last name may hold a `*`. */
  readonly path: string;
  readonly everyday: boolean;
}

/** The place of a folder's repository: in the folder (`.git`), elsewhere (`.git` is a file), or the folder itself. */
export interface RepositoryPlace {
  readonly path: string;
  readonly kind: 'inside' | 'elsewhere' | 'itself';
}

/** Returns the places in a folder with these entries that programs obey, without its repository. */
export function obeyedPlaces(folder: string, entries: readonly Dirent[]): readonly ObeyedPlace[] {
  return entries.flatMap(({ name }) => {
    const places = plainNames.get(name) ?? wildNames.filter(({ first }) => nameTest(first)(name));
    return places.map(({ rest, everyday }) => ({ path: join(folder, name, rest), everyday }));
  });
}

interface FirstName {
  readonly first: string;
  readonly rest: string;
  readonly everyday: boolean;
}

const firstNames: readonly FirstName[] = obeyedInProjects.map(({ path, everyday }) => {
  const [first = '', ...rest] = path.replace(/\/$/, '').split('/');
  return { first, rest: rest.join('/'), everyday: everyday === true };
});
const plainNames = new Map<string, readonly FirstName[]>();
for (const item of firstNames.filter(({ first }) => !first.includes('*'))) {
  plainNames.set(item.first, [...(plainNames.get(item.first) ?? []), item]);
}
const wildNames = firstNames.filter(({ first }) => first.includes('*'));

function nameTest(pattern: string): (name: string) => boolean {
  const parts = pattern.split('*').map((part) => part.replace(/[.+?^$()[\]{}|\\]/g, '\\$&'));
  const expression = new RegExp(`^${parts.join('.*')}$`, 's');
  return (name) => expression.test(name);
}

/** Returns the paths of a place: its own, or those that match now if it has a `*`. */
export function pathsAt({ path }: ObeyedPlace): readonly string[] {
  const last = basename(path);
  if (!last.includes('*')) return [path];
  return namesIn(dirname(path))
    .filter(nameTest(last))
    .map((name) => join(dirname(path), name));
}

/** Returns the repository of a folder with these entries, as git would find it. */
export function repositoryOf(folder: string, entries: readonly Dirent[]): readonly RepositoryPlace[] {
  const git = entries.find(({ name }) => name === '.git');
  if (git !== undefined) return [{ path: join(folder, '.git'), kind: git.isDirectory() ? 'inside' : 'elsewhere' }];
  const has = (wanted: string): boolean => entries.some(({ name }) => name === wanted);
  return has('HEAD') && (has('objects') || has('commondir')) ? [{ path: folder, kind: 'itself' }] : [];
}

const placesInRepository = obeyedInRepositories.map(({ path, everyday }) => ({
  path: path.replace(/\/$/, ''),
  everyday: everyday === true,
}));

/** Returns the places in a repository, its submodules and its work trees that git obeys. */
export function placesOfRepository({ path, kind }: RepositoryPlace): readonly ObeyedPlace[] {
  if (kind === 'elsewhere') return [{ path, everyday: false }];
  const workTrees = namesIn(join(path, 'worktrees')).map((name) => join(path, 'worktrees', name));
  const own = [path, ...workTrees, ...submodules(path)].flatMap((folder) =>
    placesInRepository.map(({ path: name, everyday }) => ({ path: join(folder, name), everyday })),
  );
  return [...own, ...namedPlaces(path, kind === 'inside' ? dirname(path) : path)];
}

/** Returns the places in the work tree that the settings of a repository name: a folder of hooks, more settings. */
function namedPlaces(repository: string, workTree: string): readonly ObeyedPlace[] {
  const source = readBoundedText(join(repository, 'config'), {
    maxBytes: 1_048_576,
    longer: 'refuse',
    links: 'follow',
  });
  const named = (parseSettings(source ?? '') ?? []).flatMap(({ key, value }) => {
    if (value === null || value === '') return [];
    if (key === 'core.hookspath') return [resolve(workTree, value)];
    return /^include(?:if\.[^]*)?\.path$/.test(key) ? [resolve(repository, value)] : [];
  });
  return named.filter((path) => path.startsWith(`${workTree}/`)).map((path) => ({ path, everyday: false }));
}

/** Names that show a repository. One is enough, because a command that removed the others must not lift the protection.
 */
const repositoryNames = new Set(['HEAD', 'config', 'config.worktree', 'commondir']);

/** Returns the repositories of submodules. The name of a submodule may contain slashes, and a submodule may have
 * submodules. */
function submodules(repository: string): readonly string[] {
  const found: string[] = [];
  const queue = below(join(repository, 'modules'));
  for (let index = 0; index < queue.length && index < maxRepositories; index++) {
    const folder = queue[index] ?? '';
    const isRepository = namesIn(folder).some((name) => repositoryNames.has(name));
    if (isRepository) found.push(folder);
    addAll(queue, below(isRepository ? join(folder, 'modules') : folder));
  }
  return found;
}

function below(folder: string): string[] {
  return namesIn(folder).map((name) => join(folder, name));
}

/** Compares the files of a workspace that programs obey. The first call looks, and the function that it returns looks
 * again and returns what is new or changed: relative paths in order. It does nothing in the home directory, where
 * programs, ours too, write such files all the time. */
export function createAutoRunWatch(): (workspace: string) => () => readonly string[] {
  const scans = new Map<string, () => ReadonlyMap<string, Found>>();
  return (workspace) => {
    if (workspace === homedir()) return () => [];
    const scan = scans.get(workspace) ?? createFolderScan(workspace, examineFolder);
    scans.set(workspace, scan);
    const before = look(workspace, scan());
    return () => {
      const changed = [...look(workspace, scan())].filter(([path, state]) => before.get(path) !== state);
      return changed.map(([path]) => path).toSorted();
    };
  };
}

interface Found {
  readonly places: readonly ObeyedPlace[];
  readonly repositories: readonly RepositoryPlace[];
}

function examineFolder(folder: string, entries: readonly Dirent[]): Found {
  return { places: obeyedPlaces(folder, entries), repositories: repositoryOf(folder, entries) };
}

function look(workspace: string, folders: ReadonlyMap<string, Found>): ReadonlyMap<string, string> {
  const states = new Map<string, string>();
  for (const { places, repositories } of folders.values()) {
    const all = [...repositories.flatMap(placesOfRepository), ...places];
    for (const path of all.flatMap(pathsAt)) visit(path, workspace, states);
  }
  return states;
}

function visit(path: string, workspace: string, states: Map<string, string>): void {
  const stats = statsAt(path, 'keep');
  if (!stats || states.size >= maxEntries) return;
  if (!stats.isDirectory()) {
    states.set(path.slice(workspace.length + 1), `${stats.ino} ${stats.size} ${stats.mtimeMs} ${stats.ctimeMs}`);
    return;
  }
  for (const name of namesIn(path)) if (!name.endsWith('.sample')) visit(join(path, name), workspace, states);
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

const skippedFolders = new Set(['node_modules', '.git']);
const maxFolders = 1000;
/** A folder that changed this shortly before it was read may change again with the same time stamp. */
const settleMs = 50;

type Read<T> = (path: string, entries: readonly Dirent[]) => T;

interface Folder<T> {
  readonly changedAt: number;
  readonly settled: boolean;
  readonly folders: readonly string[];
  readonly found: T;
}

/** Returns a function that reads the folders of `root`, breadth first and up to 1,000, without `node_modules` and
 * `.git`. `read` extracts what the caller needs of each. The first call reads all folders; later ones read those that
 * changed (by the change time of the kernel, which no program can set). Folders that cannot be read are left out. */
export function createFolderScan<T>(root: string, read: Read<T>): () => ReadonlyMap<string, T> {
  let known = new Map<string, Folder<T>>();
  return () => {
    const seen = new Map<string, Folder<T>>();
    const queue = [root];
    for (let index = 0; index < queue.length && seen.size < maxFolders; index++) {
      const path = queue[index] ?? '';
      const folder = readFolder(path, known.get(path), read);
      if (!folder) continue;
      seen.set(path, folder);
      addAll(queue, folder.folders);
    }
    known = seen;
    return new Map([...seen].map(([path, folder]) => [path, folder.found]));
  };
}

function readFolder<T>(path: string, known: Folder<T> | undefined, read: Read<T>): Folder<T> | null {
  const now = Date.now();
  try {
    const stat = statSync(path);
    if (!stat.isDirectory()) return null;
    if (known?.settled && known.changedAt === stat.ctimeMs) return known;
    const entries = readdirSync(path, { withFileTypes: true });
    const inner = entries.filter((entry) => entry.isDirectory() && !skippedFolders.has(entry.name));
    const folders = inner.map((entry) => join(path, entry.name));
    return { found: read(path, entries), folders, changedAt: stat.ctimeMs, settled: now - stat.ctimeMs > settleMs };
  } catch {
    return null; // gone, or not readable for us and for a command
  }
}
