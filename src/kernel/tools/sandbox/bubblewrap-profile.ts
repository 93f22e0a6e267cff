import { accessSync, constants, existsSync, readdirSync, readlinkSync, realpathSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { statsAt } from '../../disk/path-stats.js';
import type { Sandbox } from '../../core/tool.js';
import { type Guards, isWithin, systemFolders } from './guards.js';

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
/** The descriptor on which bubblewrap reports the first process of its namespaces. */
export const reportDescriptor = 5;
/** See `ConfinedCommand.waits`. */
export const beginDescriptor = 6;
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
  /** True if it knows `--disable-userns` (0.8.0 and later). */
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
  const stat = statsAt(path, 'keep');
  if (!stat) return [];
  return stat.isSymbolicLink() ? ['--symlink', readlinkSync(path), path] : ['--ro-bind', path, path];
}

/** Returns the mounts that cover the files of the system which only root may read. */
export function hiddenSystemSecrets(): readonly string[] {
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
export function hide(path: string): readonly string[] {
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

/** The numbers of system calls on one machine; -1 if it does not have the call. */
interface CallNumbers {
  readonly audit: number;
  readonly socket: number;
  readonly ioctl: number;
  readonly clone: number;
  readonly unshare: number;
  readonly refused: readonly number[];
  readonly attributes: readonly number[];
}

/** Numbers that are the same on all machines: pidfd_getfd, io_uring (3), the mount interface (8). Source: Linux,
 * asm-generic/unistd.h. */
const shared: readonly number[] = [438, 425, 426, 427, 428, 429, 430, 431, 432, 433, 442, 467];
/** setxattrat, removexattrat. */
const sharedAttributes: readonly number[] = [463, 466];
const clone3 = 435;

/** Order of `refused`: ptrace, process_vm_readv and _writev, kcmp, add_key, request_key, keyctl, bpf, perf_event_open,
 * userfaultfd, mount, umount2, pivot_root, chroot, setns, open_by_handle_at, kexec_load, kexec_file_load, init_, finit_
 * and delete_module, acct, swapon, swapoff, reboot, then what only one machine has (iopl, ioperm, modify_ldt). Order of
 * `attributes`: setxattr, lsetxattr, fsetxattr, removexattr, lremovexattr, fremovexattr. Sources:
 * Linux, arch/x86/entry/syscalls/syscall_64.tbl and asm-generic/unistd.h; audit numbers from linux/audit.h. */
const machines: Readonly<Record<string, CallNumbers>> = {
  x64: {
    audit: 0xc000003e,
    socket: 41,
    ioctl: 16,
    clone: 56,
    unshare: 272,
    refused: [
      101,
      310,
      311,
      312,
      248,
      249,
      250,
      321,
      298,
      323,
      165,
      166,
      155,
      161,
      308,
      304,
      246,
      320,
      175,
      313,
      176,
      163,
      167,
      168,
      169,
      172,
      173,
      154,
      ...shared,
    ],
    attributes: [188, 189, 190, 197, 198, 199, ...sharedAttributes],
  },
  arm64: {
    audit: 0xc00000b7,
    socket: 198,
    ioctl: 29,
    clone: 220,
    unshare: 97,
    refused: [
      117,
      270,
      271,
      272,
      217,
      218,
      219,
      280,
      241,
      282,
      40,
      39,
      41,
      51,
      268,
      265,
      104,
      294,
      105,
      273,
      106,
      89,
      224,
      225,
      142,
      ...shared,
    ],
    attributes: [5, 6, 7, 14, 15, 16, ...sharedAttributes],
  },
};

/** ioctls that type into a terminal: TIOCSTI, TIOCLINUX. */
const typingRequests: readonly number[] = [0x5412, 0x541c];
/** ioctls that set flags of a file: FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR. */
const flagRequests: readonly number[] = [0x4008_6602, 0x401c_5820];
/** AF_UNIX, AF_INET, AF_INET6, AF_NETLINK. A network namespace does not confine the others, above all AF_VSOCK. */
const socketFamilies: readonly number[] = [1, 2, 10, 16];
const newNamespaces = 0x7e02_0000;
const newTimeNamespace = 0x80;

const load = (offset: number): Instruction => [0x20, 0, 0, offset];
const jumpIfEqual = (value: number, whenTrue: number, whenFalse: number): Instruction => [
  0x15,
  whenTrue,
  whenFalse,
  value,
];
const jumpIfAtLeast = (value: number, whenTrue: number, whenFalse: number): Instruction => [
  0x35,
  whenTrue,
  whenFalse,
  value,
];
const jumpIfAnyBit = (bits: number, whenTrue: number, whenFalse: number): Instruction => [
  0x45,
  whenTrue,
  whenFalse,
  bits,
];
const answer = (value: number): Instruction => [0x06, 0, 0, value];
type Instruction = readonly [code: number, whenTrue: number, whenFalse: number, value: number];

const allow = 0x7fff_0000;
const kill = 0x8000_0000;
const fail = (errno: number): number => 0x0005_0000 | errno;
const notPermitted = fail(1);
const noSuchCall = fail(38);
const noSuchFamily = fail(97);
const notSupported = fail(95);
/** Offsets in struct seccomp_data. Only the low half of an argument counts, as it does for the kernel with these calls.
 */
const at = { call: 0, machine: 4, first: 16, second: 24 } as const;

/** Returns a system call filter for bubblewrap's `--seccomp`: an array of struct sock_filter, little-endian. It refuses
 * calls that type into terminals, trace other processes, mount, make namespaces, or reach large and rarely needed
 * parts of the kernel; a call of a foreign machine ends the process. Returns null for an unknown processor. `arch` is
 * a `process.arch`. With `keepsAttributes` it also refuses to set extended attributes and flags of files, which no layer
 * of a rehearsal shows. Source: Linux, Documentation/userspace-api/seccomp_filter.rst. */
export function seccompFilter(arch: string, keepsAttributes = false): Uint8Array | null {
  const numbers = machines[arch];
  if (!numbers) return null;
  const { refused } = numbers;
  const requests = keepsAttributes ? [...typingRequests, ...flagRequests] : typingRequests;
  const attributes = keepsAttributes ? numbers.attributes : [];
  return encoded([
    load(at.machine),
    jumpIfEqual(numbers.audit, 1, 0),
    answer(kill),
    load(at.call),
    jumpIfAtLeast(0x4000_0000, 0, 1),
    answer(noSuchCall),
    jumpIfEqual(clone3, 0, 1),
    answer(noSuchCall), // a filter cannot read its flags in memory; libraries fall back to clone
    ...onArgument(
      numbers.ioctl,
      at.second,
      requests.map((request, index) => jumpIfEqual(request, requests.length - index, 0)),
      [answer(allow), answer(notPermitted)],
    ),
    ...onArgument(numbers.clone, at.first, [jumpIfAnyBit(newNamespaces, 1, 0)], [answer(allow), answer(notPermitted)]),
    ...onArgument(
      numbers.unshare,
      at.first,
      [jumpIfAnyBit(newNamespaces | newTimeNamespace, 1, 0)],
      [answer(allow), answer(notPermitted)],
    ),
    ...onArgument(
      numbers.socket,
      at.first,
      socketFamilies.map((family, index) => jumpIfEqual(family, socketFamilies.length - index, 0)),
      [answer(noSuchFamily), answer(allow)],
    ),
    ...attributes.flatMap((number) => [jumpIfEqual(number, 0, 1), answer(notSupported)]),
    ...refused.map((number, index) => jumpIfEqual(number, refused.length - index, 0)),
    answer(allow),
    answer(notPermitted),
  ]);
}

/** Tests one argument of one call. For every other call, the program continues after the test. */
function onArgument(
  call: number,
  offset: number,
  tests: readonly Instruction[],
  answers: readonly Instruction[],
): readonly Instruction[] {
  const body = [load(offset), ...tests, ...answers];
  return [jumpIfEqual(call, 0, body.length), ...body];
}

function encoded(program: readonly Instruction[]): Uint8Array {
  const bytes = Buffer.alloc(program.length * 8);
  program.forEach(([code, whenTrue, whenFalse, value], index) => {
    bytes.writeUInt16LE(code, index * 8);
    bytes.writeUInt8(whenTrue, index * 8 + 2);
    bytes.writeUInt8(whenFalse, index * 8 + 3);
    bytes.writeUInt32LE(value >>> 0, index * 8 + 4);
  });
  return bytes;
}
