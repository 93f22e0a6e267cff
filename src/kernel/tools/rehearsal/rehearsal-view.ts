import { readdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { statsAt } from '../../disk/path-stats.js';
import type { Confine } from '../process/runner.js';
import type { ConfinedCommand } from '../process/start-child.js';
import { limitLines, processLimitFile, usualLimits } from '../sandbox/bubblewrap.js';
import {
  beginDescriptor,
  filterDescriptor,
  hiddenSystemSecrets,
  hide,
  reportDescriptor,
} from '../sandbox/bubblewrap-profile.js';
import { createGuardScan, isWithin } from '../sandbox/guards.js';
import type { OverlayLayer, Layers } from './overlay-layers.js';

export interface ViewOptions {
  /** The path of bubblewrap. */
  readonly program: string;
  /** The directories where the session works. Absolute, links resolved. */
  readonly workspaces: readonly string[];
  readonly home: string;
  /** Recognises files with secrets by their absolute path. */
  readonly isSecret: (path: string) => boolean;
  readonly filter: Uint8Array | null;
  /** Of the overlays, beside the folders: which of them the kernel takes differs. */
  readonly mountOptions: string;
}

/** Options of overlay mounts, best first. Without `volatile` the end of a rehearsal writes the whole file system to its
 * disk. Kernels that always follow redirects refuse `redirect_dir=off`. */
export const mountOptionsToTry: readonly string[] = [
  'userxattr,redirect_dir=off,metacopy=off,volatile',
  'userxattr,redirect_dir=nofollow,metacopy=off,volatile',
  'userxattr,volatile',
  'userxattr',
];

/** An address for documentation (RFC 5737). A name server on loopback would refuse at once, and the try to reach one
 * would not count as one to reach the network. */
const resolver = 'nameserver 192.0.2.53\n';

/** Returns how a command runs on layers: with everything to see that our own user sees but secrets, with the layers to
 * write to, and without a network, other processes, their sockets, and capabilities. */
export function createView(options: ViewOptions): (layers: Layers) => Confine {
  const { workspaces, isSecret } = options;
  const scans = workspaces.map((workspace) => createGuardScan({ workspace, isSecret }));
  const limitFile = process.getuid?.() === 0 ? processLimitFile(usualLimits.maxProcesses) : null;
  return (layers) =>
    (command): ConfinedCommand => {
      const names = join(layers.folder, 'resolv.conf');
      writeFileSync(names, resolver);
      writeFileSync(leftFile(layers), '');
      const covered = layers.layers.map(({ real }) => real);
      const hidden = [...scans.flatMap((scan) => scan().hidden), ...secretsOfHome(options)];
      const bubblewrap = [
        options.program,
        ...fixedArguments,
        ...hiddenSystemSecrets(),
        ...['--ro-bind', names, resolved('/etc/resolv.conf'), '--bind', leftFile(layers), leftInside],
        ...covered.flatMap((folder) => ['--bind', folder, folder]),
        ...[...hidden, ...socketFiles()].filter((path) => statsAt(path) !== null).flatMap(cover),
        ...(options.filter ? ['--seccomp', String(filterDescriptor)] : []),
        // Its network is watched before it begins: a short command would be over by then.
        ...['--info-fd', String(reportDescriptor), '--block-fd', String(beginDescriptor)],
        ...['--chdir', command.cwd, '--'],
        ...['/bin/sh', '-c', limitLines(usualLimits) + runAndLookBehind, 'sh', command.file, ...command.args],
      ];
      return {
        ...inMounts(mountScript(layers.layers, options.mountOptions, limitFile), bubblewrap),
        env: command.env,
        reportsNamespace: true,
        waits: true,
        ...(options.filter ? { filter: options.filter } : {}),
      };
    };
}

const leftInside = '/run/agent-rehearsal';

/** Returns the file that says what a command left behind, a word on each line: `processes`, `memory` (files in
 * /dev/shm). */
export function leftFile(layers: Layers): string {
  return join(layers.folder, 'left');
}

/** Runs the command and notes what it leaves. Beside this shell the namespace has one more process, which ends those
 * that are left; one that has just ended may still be listed. */
const runAndLookBehind = [
  '"$@"; code=$?',
  'count() { set -- /proc/[0-9]*; [ $# -gt 2 ]; }',
  `if count && sleep 0.05 && count; then echo processes >>${leftInside}; fi`,
  `set -- /dev/shm/* /dev/shm/.[!.]*; { [ -e "$1" ] || [ -e "$2" ]; } && echo memory >>${leftInside}`,
  'exit $code',
].join('\n');

/** A command in a mount namespace of its own, in which `script` has mounted. */
function inMounts(script: string, command: readonly string[]): Pick<ConfinedCommand, 'file' | 'args' | 'cwd'> {
  const isRoot = process.getuid?.() === 0;
  const asUser = isRoot ? [] : ['--map-current-user', '--keep-caps'];
  // Bubblewrap refuses to start with capabilities that it does not know the reason of.
  const dropped = isRoot ? [] : ['setpriv', '--inh-caps=-all', '--ambient-caps=-all', '--'];
  const args = [...asUser, '-m', '--propagation', 'private', '/bin/sh', '-c', script, 'sh', ...dropped, ...command];
  return { file: 'unshare', args, cwd: '/' };
}

/** Mounts each layer over what it covers. The real folder is named by `.`, so that no name in its path is read as a part
 * of the options. */
function mountScript(layers: readonly OverlayLayer[], mountOptions: string, limitFile: string | null): string {
  const mounts = layers.map(
    ({ real, upper, work }) =>
      `cd ${quoted(real)} && mount -t overlay -o ${quoted(`lowerdir=.,upperdir=${upper},workdir=${work},${mountOptions}`)} rehearsal . || exit 125\n`,
  );
  const limit = limitFile === null ? '' : `echo 0 2>/dev/null >${quoted(limitFile)}\n`;
  return `${limit}${mounts.join('')}cd / && exec "$@"`;
}

/** Returns a command that prints the names in folders of the merged view, NUL between paths: the layer alone does not
 * show which entries of a folder it hides. The paths come on descriptor 3, relative to the view, and begin with
 * `./`. */
export function listMerged(layer: OverlayLayer, view: string): Pick<ConfinedCommand, 'file' | 'args' | 'cwd'> {
  const mount = `cd ${quoted(layer.real)} && mount -t overlay -o ${quoted(`lowerdir=${layer.upper}:.,userxattr`)} rehearsal ${quoted(view)} || exit 125\n`;
  const list = 'exec find "$@" -mindepth 1 -maxdepth 1 -print0';
  return inMounts(`${mount}cd ${quoted(view)} && exec "$@" <&3`, ['xargs', '-0', 'sh', '-c', list, 'sh']);
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

const own = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };

const fixedArguments: readonly string[] = [
  ...['--unshare-user', '--uid', String(own.uid), '--gid', String(own.gid), '--disable-userns'],
  ...['--unshare-ipc', '--unshare-pid', '--unshare-net', '--unshare-uts', '--unshare-cgroup-try'],
  ...['--cap-drop', 'ALL', '--new-session', '--die-with-parent'],
  ...['--ro-bind', '/', '/', '--proc', '/proc', '--remount-ro', '/proc'],
  ...['--dev', '/dev', '--tmpfs', '/dev/shm', '--remount-ro', '/dev'],
  ...['--tmpfs', '/run', '--ro-bind-try', '/run/current-system', '/run/current-system', '--tmpfs', '/var/tmp'],
];

function cover(path: string): readonly string[] {
  return statsAt(path)?.isDirectory() === true ? ['--tmpfs', path, '--remount-ro', path] : hide(path);
}

const maxFolders = 300;
const maxDepth = 3;

/** Returns the files with secrets in the hidden folders of the home directory, and the folders that hold nothing else. */
function secretsOfHome(options: ViewOptions): readonly string[] {
  const found: string[] = [];
  const queue = [{ folder: options.home, depth: 0 }];
  for (let index = 0; index < queue.length && index < maxFolders; index++) {
    const { folder, depth } = queue[index] ?? { folder: options.home, depth: maxDepth };
    for (const entry of entriesOf(folder)) {
      const path = join(folder, entry.name);
      const holds = secretsAt(path, entry.isDirectory(), options);
      if (holds === 'secret') found.push(path);
      const isLookedInto = entry.isDirectory() && (depth > 0 || entry.name.startsWith('.')) && !bulky.has(entry.name);
      if (holds === 'unknown' && isLookedInto && depth < maxDepth) queue.push({ folder: path, depth: depth + 1 });
    }
  }
  return found;
}

/** A folder is secret where every name in it is. */
function secretsAt(
  path: string,
  isFolder: boolean,
  { isSecret, workspaces }: ViewOptions,
): 'secret' | 'unknown' | 'none' {
  if (workspaces.some((workspace) => isWithin(workspace, path))) return 'none';
  return isSecret(isFolder ? join(path, 'any-name') : path) ? 'secret' : 'unknown';
}

/** Folders of caches and programs, which hold no secrets and many folders. */
const bulky = new Set(['.cache', '.npm', '.nvm', '.rustup', '.pyenv', '.git', 'node_modules', '.local']);

function entriesOf(folder: string): ReturnType<typeof readEntries> {
  try {
    return readEntries(folder);
  } catch {
    return [];
  }
}

function readEntries(folder: string) {
  return readdirSync(folder, { withFileTypes: true });
}

/** Returns the sockets of other programs that have a path, where they may be seen: a read-only mount does not keep a
 * command from connecting to one. Source: proc(5), /proc/net/unix. */
function socketFiles(): readonly string[] {
  const lines = readFileSync('/proc/net/unix', 'latin1').split('\n').slice(1);
  const paths = lines.flatMap((line) => /^(?:\S+ +){6}\S+ (\/.*)$/.exec(line)?.[1] ?? []);
  return [...new Set(paths)].filter(
    (path) => !['/run', '/tmp', '/var/tmp', '/dev/shm'].some((folder) => isWithin(path, folder)),
  );
}

function resolved(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}
