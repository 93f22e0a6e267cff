import { type ChangeSet, changeSetAt, changeSets } from '../../agent/file-history.js';
import type { Event } from '../../core/event.js';
import { firstLine, spelledLine } from '../../core/text.js';
import { type Ahead, planLines, planOf, type Revert, type RevertDesk, wishesOf } from './revert-plan.js';

/** `passed`: later changes that cannot be undone and were passed over. */
export type Choice =
  | { readonly reverts: readonly Revert[]; readonly passed: readonly ChangeSet[] }
  | { readonly problem: string };

/** What `undo` or `redo` is about: nothing given is the last change, `all` is every one, else the call that event
 * belongs to. Undo goes from the newest to the oldest, redo the other way. */
export function chooseReverts(events: readonly Event[], kind: 'undo' | 'redo', argument: string): Choice {
  const sets =
    kind === 'undo'
      ? changeSets(events)
          .filter((set) => set.undoneBy === null)
          .toReversed()
      : changeSets(events).filter((set) => set.undoneBy !== null);
  if (argument === 'all')
    return sets.length === 0 ? nothing(kind) : { reverts: sets.map((set) => revertOf(set, kind)), passed: [] };
  if (argument === '') {
    const next =
      kind === 'undo' ? sets.find(isCaptured) : [...sets].sort((a, b) => (b.undoneBy ?? 0) - (a.undoneBy ?? 0))[0];
    return next
      ? { reverts: [revertOf(next, kind)], passed: kind === 'undo' ? sets.slice(0, sets.indexOf(next)) : [] }
      : nothing(kind);
  }
  const seq = Number(argument);
  if (!Number.isInteger(seq) || seq < 1)
    return {
      problem: `\`${argument}\` is not the number of an event; give one, or nothing for the last change, or all`,
    };
  const set = changeSetAt(events, seq);
  return set
    ? { reverts: [revertOf(set, kind)], passed: [] }
    : { problem: `event ${seq} is not of a call that changed files` };
}

function isCaptured(set: ChangeSet): boolean {
  return set.changes.some((change) => change.captured);
}

function nothing(kind: 'undo' | 'redo'): Choice {
  return {
    problem:
      kind === 'undo'
        ? 'there is no change of files to undo in this session'
        : 'there is nothing undone to redo in this session',
  };
}

function revertOf(set: ChangeSet, kind: 'undo' | 'redo'): Revert {
  return {
    kind,
    ofSeq: set.seq,
    title: firstLine(set.title, 120),
    wishes: wishesOf(set, kind),
    unwatched: set.unwatched,
  };
}

export interface Listing {
  readonly lines: readonly string[];
  /** Files that would be touched. */ readonly files: number;
}

/** What would be done, before anything is: per call its files, those that stay with the reason. */
export async function listReverts(
  desk: RevertDesk,
  reverts: readonly Revert[],
  passed: readonly ChangeSet[],
): Promise<Listing> {
  const lines = passed.map(
    (set) => `Event ${set.seq}, ${printable(set.title)}: what it changed was seen but not captured; it stays.`,
  );
  const ahead: Ahead = new Map();
  const touched = new Set<string>();
  for (const revert of reverts) {
    const plan = await planOf(desk, revert, ahead);
    for (const action of plan.actions) touched.add(action.path);
    lines.push(
      `${verbs[revert.kind]} event ${revert.ofSeq}, ${printable(revert.title)}:`,
      ...planLines(plan, desk.cwd),
      ...(revert.unwatched === null ? [] : [`  There may be more: ${revert.unwatched}.`]),
    );
  }
  return { lines, files: touched.size };
}

const verbs = { undo: 'Undo', redo: 'Redo', restore: 'Restore as of' } as const;

function printable(title: string): string {
  return spelledLine(firstLine(title, 100));
}
