import { groupSize, processesMarked, signalGroup } from './process-group.js';

/** The process groups that one runner has started, and what left them. */
export interface StartedGroups {
  add(groupId: number): void;
  /** Its leader has ended and left so many processes behind. */
  leaderEnded(groupId: number, left: number): void;
  /** Groups with processes in them whose leader has ended. */
  leaderless(): readonly number[];
  /** False where there was nothing to signal, and so nothing is left that could start more. */
  signal(signal: NodeJS.Signals): boolean;
  anyAlive(): boolean;
  clear(): void;
}

/** `marker`: what processes that left their group carry in their environment. */
export function createStartedGroups(marker: string): StartedGroups {
  const groups = new Set<number>();
  const withoutLeader = new Set<number>();
  let any = false;
  const marked = (): readonly number[] => (any ? processesMarked(marker).filter((id) => id !== process.pid) : []);
  return {
    add(groupId) {
      any = true;
      groups.add(groupId);
    },
    leaderEnded(groupId, left) {
      if (left === 0) groups.delete(groupId);
      else withoutLeader.add(groupId);
    },
    leaderless() {
      for (const group of [...withoutLeader].filter((id) => !signalGroup(id, 0))) {
        // forgotten before its number is another's
        withoutLeader.delete(group);
        groups.delete(group);
      }
      return [...withoutLeader];
    },
    signal(signal) {
      const held = [...groups].filter((group) => signalGroup(group, signal));
      const found = marked();
      for (const id of found) signalProcess(id, signal);
      return held.length + found.length > 0;
    },
    anyAlive: () => [...groups].some((group) => groupSize(group) > 0) || marked().length > 0,
    clear() {
      any = false;
      groups.clear();
      withoutLeader.clear();
    },
  };
}

function signalProcess(id: number, signal: NodeJS.Signals): void {
  try {
    process.kill(id, signal);
  } catch {
    /* ended meanwhile */
  }
}
