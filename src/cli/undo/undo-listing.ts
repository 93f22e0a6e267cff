import type { ChangeSet } from '../../agent/file-history.js';
import { firstLine, spelledLine } from '../../core/text.js';
import { planOf, type Revert, type RevertDesk } from './undo-act.js';
import { type Ahead, planLines } from './undo-plan.js';

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
