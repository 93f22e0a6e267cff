import { dirname } from 'node:path';
import type { ExtraDirectory } from '../../core/directories.js';
import type { Sandbox } from '../../core/tool.js';
import type { Guards } from './guards.js';

/** Folders that every confined command of macOS sees read-only. Tools of PATH come beside them. `/private` holds what
 * `/etc`, `/tmp` and `/var` lead to. */
export const macFolders: readonly string[] = [
  '/usr',
  '/bin',
  '/sbin',
  '/System',
  '/Library',
  '/private/etc',
  '/private/var/db/timezone',
  '/private/var/db/dyld',
  '/private/var/select',
  '/Applications/Xcode.app',
];
/** Files that programs read when they start. */
const macFiles: readonly string[] = [
  '/',
  '/private/var/db/xcode_select_link',
  '/private/var/db/DarwinDirectory/local/recordStore.data',
  '/dev/random',
  '/dev/urandom',
  '/dev/autofs_nowait',
];
/** Parts of these folders that are hidden: keys, and the second name of all files of the users. */
const macSecrets: readonly string[] = [
  '/System/Volumes/Data',
  '/Library/Keychains',
  '/private/etc/master.passwd',
  '/private/etc/sudoers',
  '/private/etc/sudoers.d',
  '/private/etc/krb5.keytab',
  '/private/etc/ssl/private',
];
/** Folders that cannot be the workspace. */
const neverWorkspaces = new Set([
  ...['/', '/Users', '/private', '/private/tmp', '/private/var', '/private/var/tmp', '/private/var/folders'],
  ...['/Applications', '/Volumes', '/opt', '/tmp', '/var', '/etc', '/dev', ...macFolders],
]);

/** The rights of one command: the same description from which bubblewrap's arguments are made. Absolute paths without
 * links. */
export interface SeatbeltRights {
  readonly sandbox: Exclude<Sandbox, 'off'>;
  /** The workspace and the added directories, each with what is guarded in it. A directory inside another one comes
   * after it. */
  readonly directories: readonly (ExtraDirectory & { readonly guards: Guards })[];
  /** Tools outside of the system folders, read-only. */
  readonly tools: readonly string[];
  /** Files that this command has to read. */
  readonly shows: readonly string[];
  /** The private folder of the sandbox, which has the home directory and the temporary files. */
  readonly privateFolder: string;
}

/** Returns why this folder cannot be the workspace, or null. */
export function macWorkspaceProblem(workspace: string, home: string): string | null {
  if (workspace === home) return 'the sandbox hides the home directory, so that cannot be the workspace';
  return neverWorkspaces.has(workspace) ? `${workspace} cannot be the workspace of a sandbox` : null;
}

/** Services of the system that programs look up when they start. Left out are the keychain
 * (`com.apple.SecurityServer`), the clipboard (`com.apple.pboard`) and what opens programs outside of the sandbox
 * (`com.apple.coreservices.launchservicesd`). */
const services: readonly string[] = [
  'com.apple.PowerManagement.control',
  'com.apple.bsd.dirhelper',
  'com.apple.logd',
  'com.apple.system.logger',
  'com.apple.system.notification_center',
  'com.apple.system.opendirectoryd.libinfo',
  'com.apple.system.opendirectoryd.membership',
];
/** Facts about the machine. `kern.procargs2` is left out: it shows the environment of other processes. */
const factPrefixes: readonly string[] = [
  'hw.',
  'kern.proc.pgrp.',
  'kern.proc.pid.',
  'machdep.cpu.',
  'net.routetable.',
  'sysctl.',
  'vm.',
];
const facts: readonly string[] = [
  ...['argmax', 'boottime', 'hostname', 'iossupportversion', 'maxfiles', 'maxfilesperproc', 'maxproc', 'ngroups'],
  ...['osproductversion', 'osrelease', 'ostype', 'osvariant_status', 'osversion', 'secure_kernel', 'tcsm_available'],
  ...['tcsm_enable', 'usrstack64', 'version', 'willshutdown'],
].map((name) => `kern.${name}`);

/** Allows what programs need to start at all: no files of users, no network, nothing of other processes. Sources, read
 * 2026-11-29: the policies of Chromium (sandbox/policy/mac/common.sb), Codex (seatbelt_base_policy.sbpl) and Anthropic's
 * sandbox-runtime (macos-sandbox-utils.ts). */
const base = [
  '(version 1)\n(deny default)\n(allow process-exec)\n(allow process-fork)\n',
  ...['process-info*', 'signal', 'mach-priv-task-port'].map((name) => `(allow ${name} (target same-sandbox))\n`),
  ...['mach-host*', 'iokit-get-properties', 'user-preference-read', 'ipc-posix-sem', 'ipc-posix-shm', 'pseudo-tty'].map(
    (name) => `(allow ${name})\n`,
  ),
  '(allow iokit-open (iokit-registry-entry-class "RootDomainUserClient"))\n',
  '(allow system-socket (require-all (socket-domain AF_SYSTEM) (socket-protocol 2)))\n',
  '(allow system-socket (socket-domain AF_UNIX))\n',
  rule(
    'allow mach-lookup',
    services.map((name) => `(global-name "${name}")`),
  ),
  rule('allow sysctl-read', [
    ...factPrefixes.map((name) => `(sysctl-name-prefix "${name}")`),
    ...[...facts, 'machdep.ptrauth_enabled', 'security.mac.lockdown_mode_state'].map(
      (name) => `(sysctl-name "${name}")`,
    ),
  ]),
  '(allow sysctl-write (sysctl-name "kern.grade_cputype") (sysctl-name "kern.tcsm_enable"))\n',
  // Each folder above a shown file is looked at on the way to it.
  '(allow file-read-metadata (vnode-type DIRECTORY))\n',
  '(allow file-read-metadata (literal "/etc") (literal "/tmp") (literal "/var") (subpath "/dev"))\n',
  rule('allow file-read* file-write-data file-ioctl', ['null', 'zero', 'dtracehelper', 'ptmx'].map(device)),
  '(allow file-read-data file-write-data (subpath "/dev/fd"))\n',
  '(allow file-read* file-write* file-ioctl (require-all (regex #"^/dev/ttys[0-9]+$") (extension "com.apple.sandbox.pty")))\n',
].join('');

function device(name: string): string {
  return `(literal "/dev/${name}")`;
}

/** Returns the profile of one command in the language of sandbox(7). The last rule that matches decides. Throws if a path
 * cannot be written in it. */
export function seatbeltProfile(rights: SeatbeltRights): string {
  const { sandbox, directories, tools, shows, privateFolder } = rights;
  const read = [...macFolders, ...tools, ...shows].map(subpath);
  const hidden = [...macSecrets.map(subpath), '(regex #"^/private/etc/ssh/ssh_host_.*_key$")'];
  return [
    base,
    rule('allow file-read* file-map-executable', [...read, ...macFiles.map(literal)]),
    rule('deny file-read-data file-write*', hidden),
    rule('allow file-read* file-write* file-map-executable', [subpath(privateFolder)]),
    ...sockets(privateFolder),
    ...directories.flatMap((one) => directoryRules(one, one.readOnly ? 'read-only' : sandbox)),
    ...extraRules(directories, shows),
  ].join('');
}

function directoryRules(
  { path, guards }: SeatbeltRights['directories'][number],
  right: SeatbeltRights['sandbox'],
): readonly string[] {
  const hidden = rule('deny file-read* file-write*', guards.hidden.map(literal));
  if (right === 'read-only')
    return [
      rule('allow file-read* file-map-executable', [subpath(path)]),
      // An added directory may be inside one that is writable.
      rule('deny file-write*', [subpath(path)]),
      hidden,
    ];
  return [
    rule('allow file-read* file-write* file-map-executable', [subpath(path)]),
    ...sockets(path),
    rule('deny file-write*', guards.fixed.map(subpath)),
    // Moving a folder away would take the guarded files in it along.
    rule('deny file-write-unlink', [...guards.held, ...ancestors(path)].map(literal)),
    hidden,
  ];
}

/** A file that this command has to read is shown although it is hidden from others. */
function extraRules(directories: SeatbeltRights['directories'], shows: readonly string[]): readonly string[] {
  const hidden = new Set(directories.flatMap(({ guards }) => guards.hidden));
  return [rule('allow file-read*', shows.filter((path) => hidden.has(path)).map(literal))];
}

/** Sockets of the file system, as tests and build servers make them. There is no network, not even to this machine. */
function sockets(folder: string): readonly string[] {
  return [
    rule('allow network-bind', [`(local unix-socket ${subpath(folder)})`]),
    rule('allow network-outbound', [`(remote unix-socket ${subpath(folder)})`]),
  ];
}

function ancestors(path: string): readonly string[] {
  const above = dirname(path);
  return above === path ? [] : [path, ...ancestors(above)];
}

function rule(head: string, filters: readonly string[]): string {
  return filters.length === 0 ? '' : `(${head}\n  ${filters.join('\n  ')})\n`;
}

const subpath = (path: string): string => `(subpath ${quoted(path)})`;
const literal = (path: string): string => `(literal ${quoted(path)})`;

function quoted(path: string): string {
  if (/[\u0000-\u001f\u007f]/.test(path)) throw new Error(`the sandbox cannot show ${JSON.stringify(path)}`);
  return `"${path.replace(/["\\]/g, '\\$&')}"`;
}
