import { closeSync, openSync, readdirSync, readFileSync, readSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

/** The process groups that one runner has started, and the processes that left them. */
export interface StartedGroups {
  add(groupId: number): void;
  /** Tells that the leader of a group has ended. The group is forgotten with its last process, because its number can
   * be used again. */
  leaderEnded(groupId: number): void;
  /** Returns the groups that still have processes although their leader has ended. */
  leaderless(): readonly number[];
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
    signal(signal) {
      leaderless();
      for (const group of groups) signalGroup(group, signal);
      for (const id of marked()) signalProcess(id, signal);
    },
    size: () => new Set([...[...groups].flatMap(groupMembers), ...marked()]).size,
    clear() {
      any = false;
      groups.clear();
      withoutLeader.clear();
    },
  };
}

const killTries = 50;
const pollMs = 20;

/** Returns whether all processes are gone, at once or within `ms`. */
export async function goneWithin(groups: StartedGroups, ms: number): Promise<boolean> {
  for (let waitedMs = 0; waitedMs < ms; waitedMs += pollMs) {
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

/** Returns the live processes of a group, without zombies. Without /proc, it returns the leader if the group can be
 * signalled. */
function groupMembers(groupId: number): readonly number[] {
  if (!signalGroup(groupId, 0)) return [];
  if (process.platform !== 'linux') return [groupId];
  return processIds().filter((id) => {
    const fields = statFields(id);
    return fields !== null && fields.state !== 'Z' && fields.groupId === groupId;
  });
}

/** Returns the processes that were started with `marker` in their environment, including those that left their group.
 * Linux only. */
export function processesMarked(marker: string): readonly number[] {
  if (process.platform !== 'linux') return [];
  const buffer = Buffer.allocUnsafe(environmentBytes);
  return processIds().filter((id) => {
    try {
      return holdsEntry(environmentOf(id, buffer), marker);
    } catch {
      return false; // ended meanwhile, or another user's
    }
  });
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
  for (let index = 0; index < inside.length; index++) inside.push(...(children.get(inside[index] ?? 0) ?? []));
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
