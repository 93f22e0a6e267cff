import { existsSync, realpathSync } from 'node:fs';
import { basename, delimiter, dirname, isAbsolute, join } from 'node:path';

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
