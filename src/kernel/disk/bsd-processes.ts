/** Facts about processes where there is no /proc (macOS), from ps(1), sysctl(8) and ioreg(8). Each call starts a program
 * and waits for it. */

/** One process as `ps` lists it. */
export interface ListedProcess {
  readonly id: number;
  readonly parentId: number;
  readonly groupId: number;
  readonly isZombie: boolean;
  /** Its arguments, followed by its environment. macOS leaves out the environment of its own programs (/bin/sleep). */
  readonly line: string;
}

/** A header that is empty ends the argument, so each field is an option of its own. */
const listed = ['pid=', 'ppid=', 'pgid=', 'stat=', 'command='].flatMap((field) => ['-o', field]);
const longestMs = 5_000;
const maxBytes = 64 * 1024 * 1024;
const folders = '/usr/bin:/bin:/usr/sbin:/sbin';

/** Returns all processes, or null if `ps` cannot be used. Source: ps(1) of macOS, `-E`; adv_cmds, ps/print.c. */
export function listProcesses(): readonly ListedProcess[] | null {
  const text = output('ps', ['-axwwE', ...listed]);
  if (text === null) return null;
  return text.split('\n').flatMap((line) => {
    const [, id, parentId, groupId, state = '', rest = ''] =
      /^\s*(\d+)\s+(\d+)\s+(\d+)\s+(\S+)\s?(.*)$/.exec(line) ?? [];
    if (id === undefined) return [];
    const numbers = { id: Number(id), parentId: Number(parentId), groupId: Number(groupId) };
    return [{ ...numbers, isZombie: state.startsWith('Z'), line: rest }];
  });
}

/** Returns the live processes with `marker` (`name=value`) in an environment that the system shows. */
export function markedIn(table: readonly ListedProcess[], marker: string): readonly number[] {
  return table.filter((one) => !one.isZombie && isMarked(one, marker)).map(({ id }) => id);
}

function isMarked({ line }: ListedProcess, marker: string): boolean {
  return ` ${line} `.includes(` ${marker} `);
}

export interface Relatives {
  readonly marker: string;
  readonly groups: ReadonlySet<number>;
  /** Processes that were found before. Their parents may have ended since. */
  readonly known: ReadonlySet<number>;
}

/** Returns the live processes of the groups, those with the marker in their environment, those that are known, and all
 * that these have started. Our own process is left out. */
export function relatedIn(table: readonly ListedProcess[], { marker, groups, known }: Relatives): readonly number[] {
  const live = table.filter(({ id, isZombie }) => !isZombie && id !== process.pid);
  const roots = live.filter((one) => groups.has(one.groupId) || known.has(one.id) || isMarked(one, marker));
  const found = new Set(roots.map(({ id }) => id));
  for (let before = -1; before < found.size;) {
    before = found.size;
    for (const { id, parentId } of live) if (found.has(parentId)) found.add(id);
  }
  return [...found];
}

/** Returns when a process began, to the second, in a form that does not depend on the time zone. Null: there is no such
 * process; `dead`: it is a zombie. Source: ps(1) of macOS, `lstart`. */
export function startedAt(pid: number): string | null {
  const text = output('ps', ['-o', 'stat=', '-o', 'lstart=', '-p', String(pid)])?.trim() ?? '';
  const [, state = '', started = ''] = /^(\S+)\s+(.+)$/.exec(text) ?? [];
  if (started === '') return null;
  return state.startsWith('Z') ? 'dead' : started;
}

/** Returns the name of this boot and of this machine, `<boot> mac:<machine>`; null if the boot is not known. Neither
 * depends on the clock or on the name of the host. Source: xnu, bsd/kern/kern_sysctl.c, `kern.bootsessionuuid`. */
export function bootAndMachine(): string | null {
  const boot = /^[\dA-F-]{36}$/im.exec(output('sysctl', ['-n', 'kern.bootsessionuuid']) ?? '')?.[0];
  if (boot === undefined) return null;
  const platform = output('ioreg', ['-rd1', '-c', 'IOPlatformExpertDevice']) ?? '';
  return `${boot} ${machinePrefix}${/"IOPlatformUUID" = "([^"]+)"/.exec(platform)?.[1] ?? ''}`;
}

/** Precedes the name of a machine that is the same after each boot. */
export const machinePrefix = 'mac:';

function output(file: string, args: readonly string[]): string | null {
  const { spawnSync } = process.getBuiltinModule('node:child_process');
  const { status, stdout } = spawnSync(file, args, {
    env: { PATH: `${process.env['PATH'] ?? ''}:${folders}`, LC_ALL: 'C', TZ: 'UTC0' },
    encoding: 'latin1',
    stdio: ['ignore', 'pipe', 'ignore'],
    timeout: longestMs,
    maxBuffer: maxBytes,
  });
  return status === 0 ? stdout : null;
}
