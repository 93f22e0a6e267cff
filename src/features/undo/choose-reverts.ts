import { addAll } from '../../kernel/core/lists.js';
import { type ChangeSet, changeSetAt, changeSets } from '../../kernel/agent/file-history.js';
import type { Event } from '../../kernel/core/event.js';
import { firstLine, spelledLine } from '../../kernel/core/text.js';
import { counted } from '../../kernel/tools/define-tool.js';
import {
  type Ahead,
  folderGoalsOf,
  goalsOf,
  planLines,
  planOf,
  type Revert,
  type RevertSession,
} from './revert-plan.js';

/** `passed`: later changes that cannot be undone and were skipped. */
export type RevertChoice =
  | { readonly reverts: readonly Revert[]; readonly passed: readonly ChangeSet[] }
  | { readonly problem: string };

/** Chooses the changes that `undo` or `redo` is about: the last one without an argument, every one for `all`, else the
 * one of the call that the event belongs to. Undo goes from the newest to the oldest, redo the other way. */
export function chooseReverts(events: readonly Event[], kind: 'undo' | 'redo', argument: string): RevertChoice {
  const sets =
    kind === 'undo'
      ? changeSets(events)
          .filter((set) => set.undoneBy === null)
          .toReversed()
      : changeSets(events).filter((set) => set.undoneBy !== null);
  if (argument === 'all')
    return sets.some(isCaptured)
      ? { reverts: sets.map((set) => revertOf(set, kind)), passed: [] }
      : nothing(kind, sets);
  if (argument === '') {
    const next =
      kind === 'undo' ? sets.find(isCaptured) : [...sets].sort((a, b) => (b.undoneBy ?? 0) - (a.undoneBy ?? 0))[0];
    return next
      ? { reverts: [revertOf(next, kind)], passed: kind === 'undo' ? sets.slice(0, sets.indexOf(next)) : [] }
      : nothing(kind, sets);
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

/** Chooses every change after event `seq` that has not been undone, the newest first. */
export function revertsAfter(events: readonly Event[], seq: number): readonly Revert[] {
  return changeSets(events)
    .filter((set) => set.seq > seq && set.undoneBy === null)
    .filter((set) => set.worktree !== undefined || set.changes.length + set.folders.length > 0)
    .toReversed()
    .map((set) => revertOf(set, 'undo'));
}

/** Chooses the changes of these events that are undone (`redo`: oldest first) or in effect (`undo`: newest first). */
export function revertsOf(events: readonly Event[], kind: 'undo' | 'redo', seqs: readonly number[]): readonly Revert[] {
  const sets = changeSets(events).filter(
    (set) => seqs.includes(set.seq) && (set.undoneBy === null) === (kind === 'undo'),
  );
  return (kind === 'undo' ? sets.toReversed() : sets).map((set) => revertOf(set, kind));
}

function isCaptured(set: ChangeSet): boolean {
  return set.worktree !== undefined || set.folders.length > 0 || set.changes.some((change) => change.captured);
}

/** Says that nothing can be done, and names what was changed all the same. */
function nothing(kind: 'undo' | 'redo', sets: readonly ChangeSet[]): RevertChoice {
  if (kind === 'redo') return { problem: 'there is nothing undone to redo in this session' };
  return {
    problem:
      sets.length === 0
        ? 'there is no change of files to undo in this session'
        : ['no change of files can be undone in this session:', ...lostLines(sets)].join('\n'),
  };
}

const maxLostSets = 5;
const maxLostFiles = 20;

/** Says of each call what it changed, or may have changed, that cannot be undone. */
function lostLines(sets: readonly ChangeSet[]): readonly string[] {
  const lines = sets.slice(0, maxLostSets).flatMap((set) => {
    const files = set.changes.slice(0, maxLostFiles).map(({ path, what, reason }) => {
      return `  skip    ${spelledLine(path)}: it was ${what}; not captured: ${reason ?? 'its contents were not saved'}`;
    });
    const rest = set.changes.length - files.length;
    return [
      `Event ${set.seq}, ${printable(set.title)}: ` +
        (files.length > 0
          ? 'its changes were seen but not saved; they cannot be undone.'
          : `there may be changes that were not watched: ${set.unwatched}.`),
      ...files,
      ...(rest > 0 ? [`  and ${rest} more`] : []),
      ...(files.length > 0 && set.unwatched !== null ? [`  There may be more: ${set.unwatched}.`] : []),
    ];
  });
  const rest = sets.length - maxLostSets;
  return rest > 0 ? [...lines, `${counted(rest, 'earlier call')} could not be watched or captured as well.`] : lines;
}

function revertOf(set: ChangeSet, kind: 'undo' | 'redo'): Revert {
  return {
    kind,
    ofSeq: set.seq,
    title: firstLine(set.title, 120),
    goals: goalsOf(set, kind),
    folders: folderGoalsOf(set, kind),
    unwatched: set.unwatched,
    ...(set.worktree ? { worktree: set.worktree } : {}),
  };
}

/** The preview of the changes, as lines to print. */
export interface RevertListing {
  readonly lines: readonly string[];
  /** The number of files that would be touched. */
  readonly files: number;
  /** The number of folders that would be made, removed, or given another mode. */
  readonly folders: number;
}

/** Says what would be done, per call: its files, and why some of them stay. */
export async function listReverts(
  session: RevertSession,
  reverts: readonly Revert[],
  passed: readonly ChangeSet[],
): Promise<RevertListing> {
  const lines = [...lostLines(passed)];
  const ahead: Ahead = new Map();
  const files = new Set<string>();
  const folders = new Set<string>();
  for (const revert of reverts) {
    const plan = await planOf(session, revert, ahead);
    for (const action of plan.actions) ('goal' in action ? files : folders).add(action.path);
    lines.push(`${verbs[revert.kind]} event ${revert.ofSeq}, ${printable(revert.title)}:`);
    if (revert.worktree) {
      folders.add(revert.worktree.path);
      lines.push(`  ${revert.kind === 'undo' ? 'make  ' : 'remove'}  ${spelledLine(revert.worktree.path)}/ (worktree)`);
    }
    addAll(lines, planLines(plan, session.cwd));
    if (revert.unwatched !== null) lines.push(`  There may be more: ${revert.unwatched}.`);
  }
  return { lines, files: files.size, folders: folders.size };
}

/** Returns `2 files`; `1 folder` where there is no file. */
export function countedPaths(files: number, folders: number): string {
  return files === 0 && folders > 0 ? counted(folders, 'folder') : counted(files, 'file');
}

const verbs = { undo: 'Undo', redo: 'Redo', restore: 'Restore as of' } as const;

function printable(title: string): string {
  return spelledLine(firstLine(title, 100));
}
