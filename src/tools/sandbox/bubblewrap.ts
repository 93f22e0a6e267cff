import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { release, totalmem } from 'node:os';
import { join } from 'node:path';
import type { Confine } from '../process/runner.js';
import type { Command } from '../process/start-child.js';
import {
  filterDescriptor,
  fixedArguments,
  homeInside,
  type ProfileOptions,
  type ProfilePlaces,
  workspaceArguments,
} from './bubblewrap-profile.js';
import { createGuardScan } from './guards.js';
import { isWithin, systemFolders, toolFolders } from './visible-folders.js';

export interface SandboxOptions {
  /** Where bubblewrap is, absolute. */
  readonly program: string;
  /** Its version, `0.8.0`. */
  readonly version: string;
  /** Absolute, links resolved. */
  readonly workspace: string;
  readonly home: string;
  /** PATH, for tools outside of the system folders. */
  readonly path: string;
  /** Whether a file of the workspace, by its absolute path, is to be hidden; `.env*` always is. */
  readonly isSecret: (path: string) => boolean;
  /** The system call filter, or null for none. */
  readonly filter: Uint8Array | null;
}

const maxFileBlocks = (2 * 1024 ** 3) / 512;
const maxProcesses = 512;

/** Wraps commands so that the kernel holds them: no network, the home directory hidden, nothing but the workspace
 * (`read-only`: nothing at all) and private temporary folders writable, no capabilities, everything gone when the
 * command ends. The profile is made once; a command costs only a look at what changed in the workspace. The result
 * throws where a command would start in a folder that is not shown. */
export function createConfine(options: SandboxOptions): Confine {
  const home = homeInside(options.home);
  const places: ProfilePlaces = {
    workspace: options.workspace,
    home,
    tools: toolFolders(options.path, options.home, options.workspace),
  };
  const profile = profileOptions(options.version);
  const fixed = fixedArguments(places, profile);
  const shown = [...systemFolders, ...places.tools, places.workspace];
  const isShown = (path: string): boolean => shown.some((folder) => isWithin(path, folder));
  const scan = createGuardScan({ workspace: places.workspace, isSecret: options.isSecret });
  const limits = limitScript();
  const limitFile = process.getuid?.() === 0 ? processLimitFile(maxProcesses) : null;
  const [file, ...before] =
    limitFile === null
      ? ([options.program] as const)
      : (['/bin/sh', '-c', 'echo 0 2>/dev/null >"$0"; exec "$@"', limitFile, options.program] as const);
  return (command, sandbox): Command => {
    const needed = [...(command.file.startsWith('/') ? [command.file] : []), ...(command.shows ?? [])];
    if (!isShown(command.cwd) && command.cwd !== '/tmp' && command.cwd !== home)
      throw new Error(`${command.cwd} is hidden in the sandbox, which shows the workspace ${places.workspace}`);
    const guards = scan();
    const extra = needed.filter((path) => guards.hidden.includes(path) || !isShown(path));
    return {
      file,
      cwd: '/',
      env: sandboxEnvironment(command.env, home),
      args: [
        ...before,
        ...fixed,
        ...workspaceArguments(places, sandbox, guards, profile.privateBytes),
        ...extra.flatMap((path) => ['--ro-bind-try', path, path]),
        '--remount-ro',
        '/',
        ...(options.filter ? ['--seccomp', String(filterDescriptor)] : []),
        '--chdir',
        command.cwd,
        '--',
        '/bin/sh',
        '-c',
        limits,
        'sh',
        command.file,
        ...command.args,
      ],
      ...(options.filter ? { filter: options.filter } : {}),
    };
  };
}

/** There are five private folders, and a program that fills all of them leaves more than a third of the memory. */
function profileOptions(version: string): ProfileOptions {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const isAtLeast = (wanted: number): boolean => major > 0 || minor >= wanted;
  const limit = process.constrainedMemory();
  const memoryBytes = limit > 0 ? Math.min(totalmem(), limit) : totalmem();
  return { forbidsNested: isAtLeast(8), privateBytes: isAtLeast(7) ? Math.floor(memoryBytes / 8) : null };
}

/** Limits are set inside: the count of processes is that of the new user namespace from Linux 5.14 on, and one of the
 * whole user before. Shells spell it differently. */
function limitScript(): string {
  const [major = 0, minor = 0] = release().split('.').map(Number);
  const processes =
    major > 5 || (major === 5 && minor >= 14)
      ? `ulimit -u ${maxProcesses} 2>/dev/null || ulimit -p ${maxProcesses} 2>/dev/null; `
      : '';
  return `ulimit -c 0 2>/dev/null; ulimit -f ${maxFileBlocks} 2>/dev/null; ${processes}exec "$@"`;
}

/** What a confined command gets to see of our environment: where things are, in which language, and what keeps programs
 * from asking. Everything else, keys, tokens and sockets above all, stays outside because nobody named it. */
const kept = new Set([
  'PATH',
  'HOME',
  'USER',
  'LOGNAME',
  'SHELL',
  'LANG',
  'LANGUAGE',
  'TZ',
  'TERM',
  'COLUMNS',
  'LINES',
  'NO_COLOR',
  'FORCE_COLOR',
  'CLICOLOR',
  'CI',
  'SOURCE_DATE_EPOCH',
  'MAKEFLAGS',
  'PAGER',
  'MANPAGER',
  'GIT_PAGER',
  'SYSTEMD_PAGER',
  'GH_PAGER',
  'LESS',
  'GIT_TERMINAL_PROMPT',
  'GIT_EDITOR',
  'GIT_SEQUENCE_EDITOR',
  'EDITOR',
  'VISUAL',
  'SSH_ASKPASS',
  'SUDO_ASKPASS',
  'GIT_ASKPASS',
  'GCM_INTERACTIVE',
  'DEBIAN_FRONTEND',
  'PIP_NO_INPUT',
  'NODE_ENV',
  'NVM_DIR',
  'NVM_BIN',
  'VOLTA_HOME',
  'BUN_INSTALL',
  'GOPATH',
  'GOROOT',
  'GOFLAGS',
  'CARGO_HOME',
  'RUSTUP_HOME',
  'RUSTUP_TOOLCHAIN',
  'JAVA_HOME',
  'PYENV_ROOT',
  'PYENV_VERSION',
  'VIRTUAL_ENV',
  'CONDA_PREFIX',
  'PYTHONUNBUFFERED',
  'PYTHONDONTWRITEBYTECODE',
  'PYTHONUTF8',
  'RBENV_ROOT',
  'GEM_HOME',
  'ASDF_DIR',
  'ASDF_DATA_DIR',
]);

/** The environment inside, by the list above. `home` is the home directory inside. */
export function sandboxEnvironment(
  env: Readonly<Record<string, string>>,
  home: string,
): Readonly<Record<string, string>> {
  const entries = Object.entries(env).filter(([name]) => kept.has(name) || name.startsWith('LC_'));
  return { ...Object.fromEntries(entries), HOME: home, TMPDIR: '/tmp' };
}

const folderName = 'agent-sandbox';

/** The kernel does not count root's processes against `ulimit -u`, so as root a control group does it: one for all our
 * sandboxes, which stays when they are gone. Gives the file that a process joins by, or null where no control group can
 * be made (most containers). Source: Linux, Documentation/admin-guide/cgroup-v2.rst, "PID". */
export function processLimitFile(maxProcesses: number): string | null {
  const bases = ['/sys/fs/cgroup', join('/sys/fs/cgroup/pids', ownGroup())];
  return (
    bases
      .filter((base) => existsSync(join(base, 'cgroup.procs')))
      .map((base) => limited(join(base, folderName), maxProcesses))
      .find((file) => file !== null) ?? null
  );
}

function limited(folder: string, maxProcesses: number): string | null {
  try {
    mkdirSync(folder, { recursive: true });
    try {
      writeFileSync(join(folder, 'pids.max'), String(maxProcesses), { flag: 'r+' });
      return join(folder, 'cgroup.procs');
    } catch {
      rmdirSync(folder); // no such controller here
      return null;
    }
  } catch {
    return null;
  }
}

/** Our own group below the controller's root. Source: cgroups(7), /proc/PID/cgroup. */
function ownGroup(): string {
  try {
    return /^\d+:pids:(.*)$/m.exec(readFileSync('/proc/self/cgroup', 'utf8'))?.[1] ?? '';
  } catch {
    return '';
  }
}
