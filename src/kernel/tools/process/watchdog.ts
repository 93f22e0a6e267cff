import { addAll } from '../../core/lists.js';
import { listProcesses, markedIn, relatedIn } from '../../disk/bsd-processes.js';
import { closeSync, openSync, readdirSync, readFileSync, readlinkSync, readSync } from 'node:fs';
import type { Readable, Writable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';

/** A small shell that runs while we run commands. When its input ends without a word, our process was killed (`kill
 * -9`, out of memory), and it ends everything that we had started. It also makes the named pipes that Node cannot
 * make. */
export interface Watchdog {
  start(): void;
  /** Makes the named pipes `0` and `1` in `folder`. Returns whether it succeeded. */
  makePipes(folder: string): Promise<boolean>;
  /** Sends it all groups that still have processes. It finds what left them by the marker and, without /proc, by the
   * parents. */
  tell(groups: Pick<StartedGroups, 'running' | 'leaderless'>): void;
  /** Ends it, when there is nothing left to do. The signal is sent before this returns. */
  stop(): Promise<void>;
}

/** A shell that was started with pipes for its standard input and output. */
export interface HelperShell {
  readonly stdin?: Writable | null;
  readonly stdout?: Readable | null;
  kill(signal: NodeJS.Signals): boolean;
  ref(): void;
  unref(): void;
  on(event: 'exit' | 'error', listener: () => void): unknown;
}

/** The process groups that one runner has started, and the processes that left them. */
export interface StartedGroups {
  add(groupId: number): void;
  /** Reports that the leader of a group has ended. The group is forgotten with its last process, because its number can
   * be used again. */
  leaderEnded(groupId: number): void;
  /** Returns the groups that still have processes although their leader has ended. */
  leaderless(): readonly number[];
  /** Returns the groups whose leader has not ended. */
  running(): readonly number[];
  signal(signal: NodeJS.Signals): void;
  /** Returns how many processes are alive, including those that left their group. */
  size(): number;
  clear(): void;
}

/** `marker` is a variable in the environment of all processes (`name=value`), by which those that left their group are
 * found. */
export function createStartedGroups(marker: string): StartedGroups {
  const groups = new Set<number>();
  const withoutLeader = new Set<number>();
  let any = false;
  const marked = (): readonly number[] => (any ? processesMarked(marker).filter((id) => id !== process.pid) : []);
  /** Returns the groups' processes and those that left them; where `ps` fails, the leaders of the groups. */
  let known: ReadonlySet<number> = new Set();
  const listed = (): readonly number[] => {
    const table = any ? listProcesses() : [];
    if (table === null) return [...groups].filter((id) => signalGroup(id, 0));
    known = new Set(relatedIn(table, { marker, groups, known }));
    return [...known];
  };
  const live = (): readonly number[] =>
    process.platform === 'linux' ? [...[...groups].flatMap(groupMembers), ...marked()] : listed();
  const leaderless = (): readonly number[] => {
    for (const group of [...withoutLeader].filter((id) => !signalGroup(id, 0))) {
      withoutLeader.delete(group);
      groups.delete(group);
    }
    return [...withoutLeader];
  };
  return {
    add(groupId) {
      any = true;
      groups.add(groupId);
    },
    leaderEnded(groupId) {
      withoutLeader.add(groupId);
      leaderless();
    },
    leaderless,
    running: () => [...groups].filter((id) => !withoutLeader.has(id)),
    signal(signal) {
      leaderless();
      // Without /proc, the parents lead to what has left the groups, so they are looked at while they live.
      const others = process.platform === 'linux' ? null : listed();
      for (const group of groups) signalGroup(group, signal);
      for (const id of others ?? marked()) signalProcess(id, signal);
    },
    size: () => new Set(live()).size,
    clear() {
      any = false;
      known = new Set();
      groups.clear();
      withoutLeader.clear();
    },
  };
}

const killTries = 50;
const pollMs = 20;

/** Returns whether all processes are gone, at once or within `ms`. */
export async function goneWithin(groups: Pick<StartedGroups, 'size'>, ms: number): Promise<boolean> {
  // By the clock: a look at all processes may take longer than the pause between two looks.
  for (const endMs = performance.now() + ms; performance.now() < endMs;) {
    if (groups.size() === 0) return true;
    await delay(pollMs);
  }
  return groups.size() === 0;
}

/** Kills until nothing is left: a process may start others while it is being killed. */
export async function killAll(groups: StartedGroups): Promise<void> {
  for (let tries = 0; tries < killTries && groups.size() > 0; tries++) {
    groups.signal('SIGKILL');
    await delay(pollMs);
  }
}

function signalProcess(id: number, signal: NodeJS.Signals): void {
  try {
    process.kill(id, signal);
  } catch {
    /* ended meanwhile */
  }
}

/** The size of most environments. */
const environmentBytes = 65_536;

/** Signals a whole process group. Returns false if the group does not exist. */
export function signalGroup(groupId: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(-groupId, signal);
    return true;
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}

/** Returns how many processes of a group are alive. */
export function groupSize(groupId: number): number {
  return groupMembers(groupId).length;
}

/** Returns whether every process of a PID namespace is gone. Its first process is reaped, or becomes a zombie, only after
 * all others. Source: pid_namespaces(7), "The namespace init process". */
export function isNamespaceGone(leader: number): boolean {
  const fields = statFields(leader);
  return fields === null || fields.state === 'Z' || fields.state === 'X';
}

/** Returns the live processes of a group, without zombies. If neither /proc nor `ps` names them, it returns the leader
 * if the group can be signalled. */
function groupMembers(groupId: number): readonly number[] {
  if (!signalGroup(groupId, 0)) return [];
  if (process.platform !== 'linux') {
    const members = listProcesses()?.filter((one) => !one.isZombie && one.groupId === groupId);
    return members?.map(({ id }) => id) ?? [groupId];
  }
  return processIds().filter((id) => {
    const fields = statFields(id);
    return fields !== null && fields.state !== 'Z' && fields.groupId === groupId;
  });
}

/** Returns the processes that were started with `marker` in their environment, including those that left their group.
 * macOS does not show the environment of its own programs. */
export function processesMarked(marker: string): readonly number[] {
  if (process.platform !== 'linux') return markedIn(listProcesses() ?? [], marker);
  const buffer = Buffer.allocUnsafe(environmentBytes);
  return processIds().filter((id) => {
    try {
      return holdsEntry(environmentOf(id, buffer), marker);
    } catch {
      return false; // ended meanwhile, or another user's
    }
  });
}

/** Returns how many processes with `marker` in their environment began after process `leader` and are not in its group:
 * they have left that of their command (`setsid`, daemons). Process ids grow, so older ones are not looked at. Linux
 * only: elsewhere a look at all processes would take longer than most commands. */
export function strayCount(marker: string, leader: number): number {
  if (process.platform !== 'linux') return 0;
  const buffer = Buffer.allocUnsafe(environmentBytes);
  return processIds().filter((id) => {
    const fields = id > leader ? statFields(id) : null;
    if (fields === null || fields.state === 'Z' || fields.groupId === leader) return false;
    try {
      return holdsEntry(environmentOf(id, buffer), marker);
    } catch {
      return false; // ended meanwhile, or another user's
    }
  }).length;
}

/** Returns how many bytes of memory the processes hold that were started with `marker` in a separate PID namespace,
 * together with all others of that namespace. Shared pages count once for each. Linux only. Source: proc(5). */
export function confinedMemoryBytes(marker: string): number {
  const own = pidNamespace('self');
  const spaces = new Set(processesMarked(marker).map((id) => pidNamespace(String(id))));
  spaces.delete(own);
  spaces.delete(null);
  if (spaces.size === 0) return 0;
  return processIds()
    .filter((id) => spaces.has(pidNamespace(String(id))))
    .reduce((sum, id) => sum + residentBytes(id), 0);
}

function pidNamespace(id: string): string | null {
  try {
    return readlinkSync(`/proc/${id}/ns/pid`);
  } catch {
    return null; // ended meanwhile, or another user's
  }
}

function residentBytes(id: number): number {
  try {
    const [, kilobytes = '0'] = /^VmRSS:\s*(\d+) kB$/m.exec(readFileSync(`/proc/${id}/status`, 'latin1')) ?? [];
    return Number(kilobytes) * 1024;
  } catch {
    return 0;
  }
}

/** Reads into `buffer`, or again into a larger one if that is too small. */
function environmentOf(id: number, buffer: Buffer): Buffer {
  const path = `/proc/${id}/environ`;
  const file = openSync(path, 'r');
  try {
    const length = readSync(file, buffer);
    return length < buffer.length ? buffer.subarray(0, length) : readFileSync(path);
  } finally {
    closeSync(file);
  }
}

/** Entries of an environment end with NUL. */
function holdsEntry(environment: Buffer, entry: string): boolean {
  return environment.includes(`\0${entry}\0`) || environment.indexOf(`${entry}\0`) === 0;
}

function processIds(): readonly number[] {
  try {
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .map(Number);
  } catch {
    return [];
  }
}

/** Source: proc(5), /proc/PID/stat; the command in parentheses may hold anything. */
function statFields(id: number): { readonly state: string; readonly groupId: number } | null {
  try {
    const text = readFileSync(`/proc/${id}/stat`, 'latin1');
    const [state = '', , group = ''] = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return { state, groupId: Number(group) };
  } catch {
    return null;
  }
}

/** Signals the processes in the sandbox that process `pid` has made, without the two processes of bubblewrap itself: if
 * one of them ends, everything inside is killed at once. */
export function signalConfined(pid: number, signal: NodeJS.Signals): void {
  const children = childrenByParent();
  const inside: number[] = (children.get(pid) ?? []).flatMap((keeper) => children.get(keeper) ?? []);
  for (let index = 0; index < inside.length; index++) addAll(inside, children.get(inside[index] ?? 0) ?? []);
  if (inside.length === 0) signalGroup(pid, signal);
  for (const id of inside) {
    try {
      process.kill(id, signal);
    } catch {
      /* ended meanwhile */
    }
  }
}

/** Source: proc(5), /proc/PID/stat; the command in parentheses may hold anything. */
function childrenByParent(): ReadonlyMap<number, readonly number[]> {
  const children = new Map<number, number[]>();
  for (const name of readdirSync('/proc').filter((entry) => /^\d+$/.test(entry))) {
    try {
      const text = readFileSync(`/proc/${name}/stat`, 'latin1');
      const parent = Number(text.slice(text.lastIndexOf(')') + 2).split(' ')[1]);
      children.set(parent, [...(children.get(parent) ?? []), Number(name)]);
    } catch {
      /* ended meanwhile */
    }
  }
  return children;
}
