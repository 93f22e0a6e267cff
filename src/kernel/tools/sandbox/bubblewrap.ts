import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { release, totalmem } from 'node:os';
import { join } from 'node:path';
import type { ExtraDirectory } from '../../core/directories.js';
import type { Confine } from '../process/runner.js';
import type { ConfinedCommand } from '../process/start-child.js';
import {
  filterDescriptor,
  fixedArguments,
  homeInside,
  type ProfileOptions,
  type ProfilePlaces,
  reportDescriptor,
  workspaceArguments,
} from './bubblewrap-profile.js';
import { createGuardScan, type Guards, isWithin, systemFolders, toolFolders } from './guards.js';

export interface SandboxOptions {
  /** The path of bubblewrap, absolute. */
  readonly program: string;
  /** Its version, `0.8.0`. */
  readonly version: string;
  /** Absolute, links resolved. */
  readonly workspace: string;
  /** The directories that the user opened beside it. */
  readonly directories?: () => readonly ExtraDirectory[];
  readonly home: string;
  /** PATH, for tools outside of the system folders. */
  readonly path: string;
  /** Recognises files of the workspace that must be hidden, by their absolute path. `.env*` always is. */
  readonly isSecret: (path: string) => boolean;
  /** The system call filter, or null for none. */
  readonly filter: Uint8Array | null;
  /** Names of further variables that commands keep. */
  readonly passes?: readonly string[];
  /** The limits of each command. Defaults to the limits of custom commands. */
  readonly limits?: SandboxLimits;
}

export interface SandboxLimits {
  readonly maxProcesses: number;
  /** The most memory that one process may write to, or null for no limit of its own. */
  readonly maxDataBytes: number | null;
}

const maxFileBlocks = (2 * 1024 ** 3) / 512;
export const usualLimits: SandboxLimits = { maxProcesses: 512, maxDataBytes: null };

/** Wraps commands so that the kernel confines them: no network, no capabilities, the home directory hidden, and only
 * the workspace and private temporary folders writable (`read-only`: not even these). Everything ends with the
 * command. The profile is made once; each command only checks what changed in the workspace. The result throws if a
 * command would start in a folder that is not shown. */
export function createConfine(options: SandboxOptions): Confine {
  const home = homeInside(options.home);
  const places: ProfilePlaces = {
    workspace: options.workspace,
    home,
    tools: toolFolders(options.path, options.home, options.workspace),
  };
  const profile = profileOptions(options.version);
  const fixed = fixedArguments(places, profile);
  const always = [...systemFolders, ...places.tools];
  const scans = new Map<string, () => Guards>();
  const guardsIn = (workspace: string): Guards => {
    const scan = scans.get(workspace) ?? createGuardScan({ workspace, isSecret: options.isSecret });
    scans.set(workspace, scan);
    return scan();
  };
  const limits = limitScript(options.limits ?? usualLimits);
  const limitFile = process.getuid?.() === 0 ? processLimitFile(usualLimits.maxProcesses) : null;
  const [file, ...before] =
    limitFile === null
      ? ([options.program] as const)
      : (['/bin/sh', '-c', 'echo 0 2>/dev/null >"$0"; exec "$@"', limitFile, options.program] as const);
  return (command, sandbox): ConfinedCommand => {
    const directories = mountedDirectories(options);
    const shown = [...always, ...directories.map(({ path }) => path)];
    const isShown = (path: string): boolean => shown.some((folder) => isWithin(path, folder));
    const needed = [...(command.file.startsWith('/') ? [command.file] : []), ...(command.shows ?? [])];
    if (!isShown(command.cwd) && command.cwd !== '/tmp' && command.cwd !== home)
      throw new Error(`${command.cwd} is hidden in the sandbox, which shows the workspace ${places.workspace}`);
    const guarded = directories.map((one) => ({ ...one, guards: guardsIn(one.path) }));
    const hidden = guarded.flatMap(({ guards }) => guards.hidden);
    const extra = needed.filter((path) => hidden.includes(path) || !isShown(path));
    return {
      file,
      cwd: '/',
      env: sandboxEnvironment(command.env, home, options.passes),
      args: [
        ...before,
        ...fixed,
        ...guarded.flatMap(({ path, readOnly, guards }) => {
          const right = readOnly ? 'read-only' : sandbox;
          return workspaceArguments({ ...places, workspace: path }, right, guards, profile.privateBytes);
        }),
        ...extra.flatMap((path) => ['--ro-bind-try', path, path]),
        ...['--remount-ro', '/'],
        ...(options.filter ? ['--seccomp', String(filterDescriptor)] : []),
        ...['--info-fd', String(reportDescriptor)],
        ...['--chdir', command.cwd],
        '--',
        ...['/bin/sh', '-c', limits, 'sh', command.file],
        ...command.args,
      ],
      reportsNamespace: true,
      ...(options.filter ? { filter: options.filter } : {}),
    };
  };
}

/** Returns the workspace and the added directories. Later mounts cover earlier ones, so a directory inside another one
 * comes after it. */
export function mountedDirectories({
  workspace,
  directories,
}: Pick<SandboxOptions, 'workspace' | 'directories'>): readonly ExtraDirectory[] {
  return [{ path: workspace, readOnly: false }, ...(directories?.() ?? [])].toSorted(
    (a, b) => a.path.length - b.path.length,
  );
}

/** There are five private folders. A program that fills all of them leaves more than a third of the memory. */
function profileOptions(version: string): ProfileOptions {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const isAtLeast = (wanted: number): boolean => major > 0 || minor >= wanted;
  const limit = process.constrainedMemory();
  const memoryBytes = limit > 0 ? Math.min(totalmem(), limit) : totalmem();
  return { forbidsNested: isAtLeast(8), privateBytes: isAtLeast(7) ? Math.floor(memoryBytes / 8) : null };
}

/** Returns a script that sets the limits inside the sandbox. From Linux 5.14 on, the number of processes is counted in
 * the new user namespace; before, it is counted for the whole user. Shells spell the option differently. */
function limitScript(limits: SandboxLimits): string {
  return `${limitLines(limits)}exec "$@"`;
}

/** Returns the commands that set the limits. */
export function limitLines({ maxProcesses, maxDataBytes }: SandboxLimits): string {
  const [major = 0, minor = 0] = release().split('.').map(Number);
  // macOS counts the processes of the whole user.
  const processes =
    process.platform === 'linux' && (major > 5 || (major === 5 && minor >= 14))
      ? `ulimit -u ${maxProcesses} 2>/dev/null || ulimit -p ${maxProcesses} 2>/dev/null; `
      : '';
  const data = maxDataBytes === null ? '' : `ulimit -d ${Math.floor(maxDataBytes / 1024)} 2>/dev/null; `;
  return `ulimit -c 0 2>/dev/null; ulimit -f ${maxFileBlocks} 2>/dev/null; ${data}${processes}`;
}

/** The variables that a confined command gets: where things are, the language, and what keeps programs from asking.
 * Everything else stays outside, above all keys, tokens and sockets. */
const passedVariables = new Set([
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
  'AGENT_SESSION_ID',
]);

/** Returns the environment inside. `home` and `temporary` are the folders inside, `passes` names variables beside the
 * usual ones. */
export function sandboxEnvironment(
  env: Readonly<Record<string, string>>,
  home: string,
  passes: readonly string[] = [],
  temporary = '/tmp',
): Readonly<Record<string, string>> {
  const isPassed = (name: string): boolean =>
    passedVariables.has(name) || name.startsWith('LC_') || passes.includes(name);
  const entries = Object.entries(env).filter(([name]) => isPassed(name));
  return { ...Object.fromEntries(entries), HOME: home, TMPDIR: temporary };
}

const folderName = 'agent-sandbox';

/** Limits the processes of root by a control group, because the kernel does not count them against `ulimit -u`. All our
 * sandboxes share one group, which stays when they are gone. Returns the file by which a process joins, or null if no
 * control group can be made (most containers). Source: Linux, Documentation/admin-guide/cgroup-v2.rst, "PID". */
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

/** Returns our own group below the root of the controller. Source: cgroups(7), /proc/PID/cgroup. */
function ownGroup(): string {
  try {
    return /^\d+:pids:(.*)$/m.exec(readFileSync('/proc/self/cgroup', 'utf8'))?.[1] ?? '';
  } catch {
    return '';
  }
}
