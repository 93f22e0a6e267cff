import { relative } from 'node:path';
import { atPresentPaths, type ChangeSet, changeSets, stateAt } from '../../agent/file-history.js';
import type { ChangeData, Event, EventDraft } from '../../core/event.js';
import type { DirectoryMove } from '../../core/store.js';
import { spelledLine } from '../../core/text.js';
import {
  changeMode,
  isLinkMode,
  presentState,
  type PresentState,
  replaceFile,
  type Replacement,
} from './revert-files.js';

/** The state a file is to get, and the state it must have now. Hashes are hex SHA-256; null: no file. */
interface Goal {
  readonly path: string;
  readonly want: { readonly sha256: string | null; readonly mode: number | null };
  readonly expect: { readonly sha256: string | null; readonly mode: number | null };
  /** Folders that become empty are removed, up to this one. */
  readonly madeFolder: string | null;
  /** The reason it cannot be done, whatever is there now; null where it can. */
  readonly impossible: string | null;
}

interface Action extends Replacement {
  readonly goal: Goal;
  readonly what: 'restore' | 'remove' | 'mode';
}
interface Skipped {
  readonly path: string;
  readonly reason: string;
}
interface RevertPlan {
  readonly actions: readonly Action[];
  readonly skipped: readonly Skipped[];
}

/** Reads contents by their hash; null where the store does not have them. */
type ReadBlob = (sha256: string) => Promise<Uint8Array | null>;

export function goalsOf(set: ChangeSet, direction: 'undo' | 'redo'): readonly Goal[] {
  return set.changes.map((change) => {
    const before = { sha256: change.before, mode: change.before_mode ?? null };
    const after = { sha256: change.after, mode: change.after_mode ?? null };
    return {
      path: change.path,
      madeFolder: (direction === 'undo' ? change.made_folder : change.gone_folder) ?? null,
      impossible: change.captured ? null : `not captured: ${change.reason ?? 'its contents were not kept'}`,
      ...(direction === 'undo' ? { want: before, expect: after } : { want: after, expect: before }),
    };
  });
}

/** The file as it was right after event `seq`, or null where the session never touched it. */
export function goalAt(events: readonly Event[], path: string, seq: number): Goal | null {
  const want = stateAt(events, path, seq);
  const expect = stateAt(events, path, Number.MAX_SAFE_INTEGER);
  return want && expect ? { path, want, expect, madeFolder: null, impossible: null } : null;
}

/** The state of files after the earlier steps of the same list. */
export type Ahead = Map<string, PresentState>;

/** Splits the goals into actions and skipped files, each with the reason. A file is touched only where its contents are
 * what the session left. Updates `ahead`. */
async function planRevert(
  goals: readonly Goal[],
  readBlob: ReadBlob,
  events: readonly Event[],
  ahead: Ahead,
): Promise<RevertPlan> {
  const actions: Action[] = [];
  const skipped: Skipped[] = [];
  for (const goal of goals) {
    const now = ahead.get(goal.path) ?? (await presentState(goal.path));
    const step = await planOne(goal, now, readBlob, events);
    if ('reason' in step) skipped.push(step);
    else {
      actions.push(step);
      ahead.set(goal.path, stateAfter(goal, now));
    }
  }
  return { actions, skipped };
}

function stateAfter({ want: { sha256, mode } }: Goal, now: PresentState): PresentState {
  if (sha256 === null) return { is: 'missing' };
  const usual = now.is === 'file' ? now.mode : 0o100644;
  return { is: isLinkMode(mode) ? 'link' : 'file', sha256, mode: mode ?? usual };
}

async function planOne(
  goal: Goal,
  now: PresentState,
  readBlob: ReadBlob,
  events: readonly Event[],
): Promise<Action | Skipped> {
  const { path, want, expect } = goal;
  if (goal.impossible !== null) return { path, reason: goal.impossible };
  if (now.is === 'other') return { path, reason: now.reason };
  if (isLike(now, want)) return { path, reason: 'it is like that already' };
  if (!isLike(now, { sha256: expect.sha256, mode: typeOnly(expect.mode, now) }))
    return { path, reason: whoChanged(now, path, events) };
  const shared = { path, goal, expected: expect.sha256, mode: want.mode, madeFolder: goal.madeFolder };
  if (want.sha256 === null) return { ...shared, what: 'remove', bytes: null };
  if (want.sha256 === expect.sha256) return { ...shared, what: 'mode', bytes: null };
  const bytes = await readBlob(want.sha256);
  return bytes === null ? { path, reason: 'its contents are not in the store' } : { ...shared, what: 'restore', bytes };
}

function isLike(now: PresentState, state: { readonly sha256: string | null; readonly mode: number | null }): boolean {
  if (now.is === 'missing' || now.is === 'other') return now.is === 'missing' && state.sha256 === null;
  return now.sha256 === state.sha256 && (state.mode === null || (now.mode & 0o177777) === (state.mode & 0o177777));
}

/** A mode that the person changed does not block a revert; a file in the place of a link does. */
function typeOnly(mode: number | null, now: PresentState): number | null {
  if (mode === null || (now.is !== 'file' && now.is !== 'link')) return null;
  return isLinkMode(mode) === (now.is === 'link') ? now.mode : mode;
}

function whoChanged(now: PresentState, path: string, events: readonly Event[]): string {
  const sha256 = now.is === 'file' || now.is === 'link' ? now.sha256 : null;
  const made = changeSets(events).findLast((set) =>
    set.changes.some((change: ChangeData) => change.path === path && change.captured && change.after === sha256),
  );
  return made && made.undoneBy === null
    ? `it is as event ${made.seq} left it (${made.title}); undo that first`
    : 'it was changed since by something else';
}

/** The plan as a list for a person; paths relative to `cwd` where they are inside it. */
export function planLines(plan: RevertPlan, cwd: string): readonly string[] {
  const words = { restore: 'write ', remove: 'remove', mode: 'mode  ' } as const;
  return [
    ...plan.actions.map(({ path, what }) => `  ${words[what]}  ${shownTo(cwd, path)}`),
    ...plan.skipped.map(({ path, reason }) => `  leave   ${shownTo(cwd, path)}: ${reason}`),
  ];
}

/** A path as a list shows it: relative where it is inside `cwd`, hidden characters spelt out. */
function shownTo(cwd: string, path: string): string {
  const inside = relative(cwd, path);
  return spelledLine(inside === '' || inside.startsWith('..') ? path : inside);
}

/** The parts of a session that undo needs: its log, the contents of files, and a way to record what was done. */
export interface RevertSession {
  readonly cwd: string;
  events(): readonly Event[];
  blob(sha256: string): Promise<Uint8Array | null>;
  append(draft: EventDraft): Promise<unknown>;
}

/** The same session, with paths adapted to the moves of its directory. */
export function atPresent(session: RevertSession, moves: readonly DirectoryMove[] | undefined): RevertSession {
  return {
    cwd: session.cwd,
    events: () => atPresentPaths(session.events(), moves ?? []),
    blob: (sha256) => session.blob(sha256),
    append: (draft) => session.append(draft),
  };
}

/** One change to revert: the kind of event that records it, the event it is about, and its files. */
export interface Revert {
  readonly kind: 'undo' | 'redo' | 'restore';
  readonly ofSeq: number;
  readonly title: string;
  readonly goals: readonly Goal[];
  /** The reason there may be more changes than these; null where there are none. */ readonly unwatched: string | null;
}

export function planOf(session: RevertSession, revert: Revert, ahead: Ahead = new Map()): Promise<RevertPlan> {
  return planRevert(revert.goals, (sha256) => session.blob(sha256), session.events(), ahead);
}

/** Carries out the plan as far as it is still allowed and records it. Records nothing where nothing was done. */
export async function act(
  session: RevertSession,
  revert: Revert,
): Promise<{ readonly done: readonly ChangeData[]; readonly skipped: readonly Skipped[] }> {
  const plan = await planOf(session, revert);
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
    await session.append({
      kind: revert.kind,
      content: note(session, revert, done),
      data: { of_seq: revert.ofSeq, changes: done, skipped },
    });
  return { done, skipped };
}

function changeOf({ path, goal, mode }: Action): ChangeData {
  const { want, expect } = goal;
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

function note(session: RevertSession, { kind, ofSeq, title }: Revert, done: readonly ChangeData[]): string {
  const names = done
    .slice(0, maxNamed)
    .map((change) => `${shownTo(session.cwd, change.path)}${change.after === null ? ' (removed)' : ''}`);
  const rest = done.length > names.length ? ` and ${done.length - names.length} more` : '';
  const what =
    kind === 'restore'
      ? `brought files back to what they were at event ${ofSeq}`
      : `${kind === 'undo' ? 'undid' : 'redid'} what ${title} did to files (event ${ofSeq})`;
  return `[Note: the user ${what}: ${names.join(', ')}${rest}]`;
}
