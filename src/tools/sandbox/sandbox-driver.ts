import { release, totalmem } from 'node:os';
import type { Command } from '../command.js';
import type { Confine } from '../process.js';
import { sandboxEnvironment } from './sandbox-environment.js';
import { isWithin, systemFolders, toolFolders } from './sandbox-folders.js';
import { createGuardScan } from './sandbox-guards.js';
import { processLimitFile } from './sandbox-process-limit.js';
import {
  filterDescriptor,
  fixedArguments,
  homeInside,
  workspaceArguments,
  type ProfileOptions,
  type ProfilePlaces,
} from './sandbox-profile.js';

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
