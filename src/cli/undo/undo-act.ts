import { atPresentPaths } from '../../agent/file-history.js';
import type { ChangeData, Event, EventDraft } from '../../core/event.js';
import type { DirectoryMove } from '../../core/store.js';
import { changeMode, replaceFile } from './undo-files.js';
import { planRevert, shownTo, type Action, type Ahead, type RevertPlan, type Skipped, type Wish } from './undo-plan.js';

/** A session as undo needs it: its log, its contents, and where to say what was done. */
export interface RevertDesk {
  readonly cwd: string;
  events(): readonly Event[];
  blob(sha256: string): Promise<Uint8Array | null>;
  append(draft: EventDraft): Promise<unknown>;
}

/** The desk with files where they are now, the session's directory having been moved so. */
export function atPresent(desk: RevertDesk, moves: readonly DirectoryMove[] | undefined): RevertDesk {
  return {
    cwd: desk.cwd,
    events: () => atPresentPaths(desk.events(), moves ?? []),
    blob: (sha256) => desk.blob(sha256),
    append: (draft) => desk.append(draft),
  };
}

/** What is wanted: the kind of event that records it, what it is about, and the files. */
export interface Revert {
  readonly kind: 'undo' | 'redo' | 'restore';
  readonly ofSeq: number;
  readonly title: string;
  readonly wishes: readonly Wish[];
  /** Why there may be more than these. */ readonly unwatched: string | null;
}

export function planOf(desk: RevertDesk, revert: Revert, ahead: Ahead = new Map()): Promise<RevertPlan> {
  return planRevert(revert.wishes, (sha256) => desk.blob(sha256), desk.events(), ahead);
}

/** Does what was planned, as far as it is still allowed, and records it; nothing is recorded where nothing was done. */
export async function act(
  desk: RevertDesk,
  revert: Revert,
): Promise<{ readonly done: readonly ChangeData[]; readonly skipped: readonly Skipped[] }> {
  const plan = await planOf(desk, revert);
  const done: ChangeData[] = [];
  const skipped: Skipped[] = [...plan.skipped];
  for (const action of plan.actions) {
    try {
      if (action.what === 'mode') await changeMode(action);
      else await replaceFile(action);
      done.push(changeOf(action));
    } catch (error) {
      skipped.push({ path: action.path, reason: error instanceof Error ? error.message : String(error) });
    }
  }
  if (done.length > 0)
    await desk.append({
      kind: revert.kind,
      content: note(desk, revert, done),
      data: { of_seq: revert.ofSeq, changes: done, skipped },
    });
  return { done, skipped };
}

function changeOf({ path, wish, mode }: Action): ChangeData {
  const { want, expect } = wish;
  return {
    path,
    what: expect.sha256 === null ? 'created' : want.sha256 === null ? 'deleted' : 'changed',
    before: expect.sha256,
    after: want.sha256,
    captured: true,
    ...(expect.mode === null ? {} : { before_mode: expect.mode }),
    ...(mode === null ? {} : { after_mode: mode }),
  };
}

const maxNamed = 20;

function note(desk: RevertDesk, { kind, ofSeq, title }: Revert, done: readonly ChangeData[]): string {
  const names = done
    .slice(0, maxNamed)
    .map((change) => `${shownTo(desk.cwd, change.path)}${change.after === null ? ' (removed)' : ''}`);
  const rest = done.length > names.length ? ` and ${done.length - names.length} more` : '';
  const what =
    kind === 'restore'
      ? `brought files back to what they were at event ${ofSeq}`
      : `${kind === 'undo' ? 'undid' : 'redid'} what ${title} did to files (event ${ofSeq})`;
  return `[Note: the user ${what}: ${names.join(', ')}${rest}]`;
}
