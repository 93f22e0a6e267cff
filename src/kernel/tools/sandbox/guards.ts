import { type Dirent, existsSync, realpathSync, statSync } from 'node:fs';
import { basename, delimiter, dirname, isAbsolute, join } from 'node:path';
import {
  createFolderScan,
  type ObeyedPlace,
  obeyedPlaces,
  pathsAt,
  placesOfRepository,
  repositoryOf,
  type RepositoryPlace,
} from '../changes/auto-run-files.js';
import { statsAt } from '../../disk/path-stats.js';

/** The parts of the workspace that are not simply writable. Absolute paths that exist, parents before children. */
export interface Guards {
  /** Files that cannot be read. */
  readonly hidden: readonly string[];
  /** Files and folders that cannot be written. */
  readonly fixed: readonly string[];
  /** Folders that cannot be moved, so that the hidden and fixed files below them stay in place. */
  readonly held: readonly string[];
}

export interface GuardOptions {
  readonly workspace: string;
  /** Recognises files with secrets by their absolute path. `.env*` always counts. */
  readonly isSecret: (path: string) => boolean;
}

interface Found {
  readonly secrets: readonly string[];
  readonly places: readonly ObeyedPlace[];
  readonly repositories: readonly RepositoryPlace[];
}

const maxHidden = 200;

/** Returns a function that finds what must be guarded in the workspace. It throws if there are more secret files than
 * can be hidden. */
export function createGuardScan(options: GuardOptions): () => Guards {
  const { workspace } = options;
  const scan = createFolderScan(workspace, (path, entries): Found => ({
    secrets: secretsIn(path, entries, options),
    places: path === workspace ? obeyedPlaces(path, entries) : [],
    repositories: repositoryOf(path, entries).filter(({ kind }) => kind !== 'itself' || path === workspace),
  }));
  return () => {
    const folders = [...scan().values()];
    const hidden = folders.flatMap((folder) => folder.secrets);
    if (hidden.length > maxHidden)
      throw new Error(
        `the workspace has more than ${maxHidden} secret files, and the sandbox cannot hide them all; narrow fs.deny`,
      );
    const places = folders.flatMap((folder) => [...folder.places, ...folder.repositories.flatMap(placesOfRepository)]);
    const obeyed = places.filter(({ everyday }) => !everyday).flatMap(pathsAt);
    const fixed = obeyed.filter((path) => isPlain(path) && !hidden.includes(path));
    return { hidden, fixed, held: heldFolders([...hidden, ...fixed], workspace) };
  };
}

function secretsIn(path: string, entries: readonly Dirent[], { isSecret, workspace }: GuardOptions): readonly string[] {
  const isSecretName = (name: string): boolean => isEnvironmentFile(name) || isSecret(join(path, name));
  const named = entries.filter(({ name }) => isSecretName(name));
  return named.flatMap((entry) => {
    const file = join(path, entry.name);
    if (entry.isSymbolicLink()) return linked(file, workspace);
    return entry.isFile() ? [file] : [];
  });
}

/** Returns true for `.env`, `.env.local` and `.envrc`, but not for examples that are meant to be read. */
function isEnvironmentFile(name: string): boolean {
  return name.startsWith('.env') && !/\.(?:example|sample|template|dist|defaults)$/.test(name);
}

/** Returns the target of a link, because a link itself cannot be covered. A target outside of the workspace is hidden
 * anyway. */
function linked(path: string, workspace: string): readonly string[] {
  try {
    const target = realpathSync(path);
    return isWithin(target, workspace) && statSync(target).isFile() ? [target] : [];
  } catch {
    return [];
  }
}

function isPlain(path: string): boolean {
  const stat = statsAt(path, 'keep');
  return stat !== null && (stat.isDirectory() || stat.isFile());
}

function heldFolders(paths: readonly string[], workspace: string): readonly string[] {
  const held = new Set<string>();
  for (const path of paths)
    for (let at = dirname(path); at !== workspace && isWithin(at, workspace); at = dirname(at)) held.add(at);
  return [...held].toSorted((a, b) => a.length - b.length);
}

/** Folders that every confined command sees read-only. */
export const systemFolders: readonly string[] = [
  '/usr',
  '/etc',
  '/bin',
  '/sbin',
  '/lib',
  '/lib32',
  '/lib64',
  '/libx32',
];
/** Folders in which some distributions keep the targets of the folders above. */
const packageStores: readonly string[] = ['/nix/store', '/gnu/store', '/run/current-system/sw'];
/** Folders that hold tools and other files. Only the named part of them is shown. */
const mixedFolders: readonly string[] = [
  '.local',
  '.cargo',
  '.config',
  '.cache',
  '.local/share',
  '.local/state',
  '.ssh',
  '.aws',
  '.gnupg',
  '.kube',
  '.docker',
];
/** Folders that tools in these folders need, relative to the home directory. */
const companions: Readonly<Record<string, readonly string[]>> = {
  '.cargo/bin': ['.rustup'],
  '.local/bin': ['.local/lib', '.local/pipx', '.local/share/pipx', '.local/share/uv/tools', '.local/share/uv/python'],
};
const maxFolders = 32;

/** Returns true for `folder` itself and for everything below it. Absolute paths. */
export function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith('/') ? folder : `${folder}/`);
}

/** Returns the folders of tools that PATH names outside of the system folders (nvm, pyenv, cargo, /opt), shortest
 * first. They are shown read-only. A folder called `bin` brings along its neighbours, such as `lib`. A folder that
 * contains the workspace or the home directory is never shown whole. */
export function toolFolders(path: string, home: string, workspace: string): readonly string[] {
  const named = path
    .split(delimiter)
    .filter((folder) => isAbsolute(folder) && !isWithin(folder, workspace) && existsSync(folder));
  const folders = named
    .flatMap((folder) => [folder, realpathSync(folder)])
    .flatMap((folder) => {
      const own = (companions[folder.slice(home.length + 1)] ?? []).map((name) => join(home, name));
      return [wholeTool(folder, home, workspace), ...(isWithin(folder, home) ? own : [])];
    });
  const shown = [...new Set([...packageStores, ...folders])]
    .filter((folder) => existsSync(folder) && mayShow(folder, home, workspace))
    .toSorted((a, b) => a.length - b.length);
  return shown
    .filter((folder, index) => !shown.slice(0, index).some((earlier) => isWithin(folder, earlier)))
    .slice(0, maxFolders);
}

function mayShow(folder: string, home: string, workspace: string): boolean {
  return (
    !systemFolders.some((system) => isWithin(folder, system)) &&
    !['/proc', '/sys', '/dev'].some((kernel) => isWithin(folder, kernel)) &&
    !isWithin(home, folder) &&
    !isWithin(workspace, folder)
  );
}

function wholeTool(folder: string, home: string, workspace: string): string {
  const parent = dirname(folder);
  const alone =
    !/^(?:s?bin|shims|condabin)$/.test(basename(folder)) ||
    parent === '/' ||
    isWithin(home, parent) ||
    isWithin(workspace, parent) ||
    mixedFolders.some((name) => parent === join(home, name)) ||
    !['lib', 'libexec', 'versions', 'share', 'conda-meta'].some((name) => existsSync(join(parent, name)));
  return alone ? folder : parent;
}
