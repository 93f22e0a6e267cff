import {
  accessSync,
  constants,
  existsSync,
  lstatSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  statSync,
} from 'node:fs';
import { join } from 'node:path';
import type { Sandbox } from '../../core/tool.js';
import type { Guards } from './guards.js';
import { isWithin, systemFolders } from './visible-folders.js';

export interface ProfilePlaces {
  /** Absolute, links resolved. The user chose it by starting the program there; a model never does. */
  readonly workspace: string;
  /** The home directory inside, which is empty. */
  readonly home: string;
  /** Tools that lie outside of the system folders, read-only. */
  readonly tools: readonly string[];
}

/** The descriptor on which bubblewrap reads the system call filter. */
export const filterDescriptor = 4;
const privateFolders: readonly string[] = ['/tmp', '/run', '/var/tmp'];
/** Files that only root may read. Root inside the sandbox has no capabilities but owns them. */
const systemSecrets: readonly string[] = [
  '/etc/shadow',
  '/etc/shadow-',
  '/etc/gshadow',
  '/etc/gshadow-',
  '/etc/sudoers',
  '/etc/krb5.keytab',
  '/etc/security/opasswd',
  '/etc/sudoers.d',
  '/etc/ssl/private',
  '/etc/wireguard',
  '/etc/NetworkManager/system-connections',
  '/etc/polkit-1',
];
const neverWorkspaces = new Set(['/', '/home', '/root', '/tmp', '/var', '/var/tmp', '/run', '/boot', ...systemFolders]);

/** Returns why this folder cannot be the workspace of a sandbox, or null. The links of `home` are resolved. */
export function workspaceProblem(workspace: string, home: string): string | null {
  if (workspace === home) return 'the sandbox hides the home directory, so that cannot be the workspace';
  if (neverWorkspaces.has(workspace) || ['/proc', '/sys', '/dev'].some((folder) => isWithin(workspace, folder)))
    return `${workspace} cannot be the workspace of a sandbox`;
  return null;
}

/** Returns the home directory inside. An account without a usable one gets `/tmp`. */
export function homeInside(home: string): string {
  const usable =
    home.startsWith('/') &&
    home !== '/' &&
    ![...systemFolders, ...privateFolders, '/proc', '/sys', '/dev'].some(
      (folder) => home === folder || isWithin(folder, home),
    ) &&
    !['/proc', '/sys', '/dev', ...systemFolders].some((folder) => isWithin(home, folder));
  return usable ? home : '/tmp';
}

/** The abilities of this version of bubblewrap. */
export interface ProfileOptions {
  /** Whether it knows `--disable-userns` (0.8.0 and later). */
  readonly forbidsNested: boolean;
  /** The most bytes of each private folder, or null if bubblewrap cannot limit it (`--size`, 0.7.0 and later). */
  readonly privateBytes: number | null;
}

/** Mounts an empty folder in memory, for this call only. */
function privateFolder(path: string, maxBytes: number | null): readonly string[] {
  return [...(maxBytes === null ? [] : ['--size', String(maxBytes)]), '--tmpfs', path];
}

/** Returns the arguments that are the same for all commands: namespaces of its own, no capabilities, no terminal, the
 * end together with our process, and the file system as a list of what is shown. /proc is read-only, because settings
 * of the whole machine there belong to root, and root inside counts as root without any capability. Files opened
 * through /proc/self/fd are not affected. */
export function fixedArguments(places: ProfilePlaces, options: ProfileOptions): readonly string[] {
  const { home, tools } = places;
  const { forbidsNested, privateBytes } = options;
  return [
    '--unshare-user',
    '--unshare-ipc',
    '--unshare-pid',
    '--unshare-net',
    '--unshare-uts',
    '--unshare-cgroup-try',
    ...(forbidsNested ? ['--disable-userns'] : []),
    '--cap-drop',
    'ALL',
    '--new-session',
    '--die-with-parent',
    '--hostname',
    'sandbox',
    ...systemFolders.flatMap(systemFolder),
    '--proc',
    '/proc',
    '--remount-ro',
    '/proc',
    '--dev',
    '/dev',
    ...privateFolder('/dev/shm', privateBytes),
    '--remount-ro',
    '/dev',
    ...[...privateFolders, ...(home === '/tmp' ? [] : [home])].flatMap((folder) => privateFolder(folder, privateBytes)),
    ...tools.flatMap((folder) => ['--ro-bind', folder, folder]),
    ...hiddenSystemSecrets(),
  ];
}

function systemFolder(path: string): readonly string[] {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (!stat) return [];
  return stat.isSymbolicLink() ? ['--symlink', readlinkSync(path), path] : ['--ro-bind', path, path];
}

function hiddenSystemSecrets(): readonly string[] {
  return [...systemSecrets, ...hostKeys()]
    .filter(isReadable)
    .flatMap((path) => (statSync(path).isDirectory() ? ['--tmpfs', path, '--remount-ro', path] : hide(path)));
}

function hostKeys(): readonly string[] {
  try {
    return readdirSync('/etc/ssh')
      .filter((name) => /^ssh_host_.*_key$/.test(name))
      .map((name) => join('/etc/ssh', name));
  } catch {
    return [];
  }
}

function isReadable(path: string): boolean {
  try {
    accessSync(path, constants.R_OK);
    return existsSync(path) && realpathSync(path) === path;
  } catch {
    return false;
  }
}

/** Covers a path with a device that the mount forbids to open. It covers only paths that exist: bubblewrap would leave
 * an empty file behind on the real disk. */
function hide(path: string): readonly string[] {
  return ['--ro-bind', '/dev/null', path];
}

/** Mounts the workspace and the guards in it, after the fixed part: later mounts cover earlier ones. */
export function workspaceArguments(
  places: ProfilePlaces,
  sandbox: Exclude<Sandbox, 'off'>,
  guards: Guards,
  privateBytes: number | null,
): readonly string[] {
  const { workspace, home } = places;
  const hidden = guards.hidden.flatMap(hide);
  const homeWithin = isWithin(home, workspace) ? privateFolder(home, privateBytes) : [];
  if (sandbox === 'read-only') return ['--ro-bind', workspace, workspace, ...homeWithin, ...hidden];
  return [
    '--bind',
    workspace,
    workspace,
    ...guards.held.flatMap((path) => ['--bind', path, path]),
    ...guards.fixed.flatMap((path) => ['--ro-bind', path, path]),
    ...homeWithin,
    ...hidden,
  ];
}
