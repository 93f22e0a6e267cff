import { changeSetAt, changeSets, type ChangeSet } from '../../agent/file-history.js';
import type { Event } from '../../core/event.js';
import { firstLine } from '../../core/text.js';
import type { Revert } from './undo-act.js';
import { wishesOf } from './undo-plan.js';

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
