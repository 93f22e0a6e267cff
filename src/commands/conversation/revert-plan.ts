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

/** One file as it should become, and as it must be now for that to be allowed. Hashes are hex SHA-256; null: no
 * file. */
interface Wish {
  readonly path: string;
  readonly want: { readonly sha256: string | null; readonly mode: number | null };
  readonly expect: { readonly sha256: string | null; readonly mode: number | null };
  /** Folders that are empty without the file go, up to this one. */
  readonly madeFolder: string | null;
  /** Why it cannot be, whatever is there now. */
  readonly impossible: string | null;
}

interface Action extends Replacement {
  readonly wish: Wish;
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

/** Where contents come from. */
type ReadBlob = (sha256: string) => Promise<Uint8Array | null>;

export function wishesOf(set: ChangeSet, direction: 'undo' | 'redo'): readonly Wish[] {
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
export function wishAt(events: readonly Event[], path: string, seq: number): Wish | null {
  const want = stateAt(events, path, seq);
  const expect = stateAt(events, path, Number.MAX_SAFE_INTEGER);
  return want && expect ? { path, want, expect, madeFolder: null, impossible: null } : null;
}

/** Files as earlier steps of the same list would leave them. */
export type Ahead = Map<string, PresentState>;

/** What can be done and what cannot, with the reason. Only a file whose contents are what the session left is touched.
 * `ahead` is read and kept up. */
async function planRevert(
  wishes: readonly Wish[],
  readBlob: ReadBlob,
  events: readonly Event[],
  ahead: Ahead,
): Promise<RevertPlan> {
  const actions: Action[] = [];
  const skipped: Skipped[] = [];
  for (const wish of wishes) {
    const now = ahead.get(wish.path) ?? (await presentState(wish.path));
    const step = await planOne(wish, now, readBlob, events);
    if ('reason' in step) skipped.push(step);
    else {
      actions.push(step);
      ahead.set(wish.path, stateAfter(wish, now));
    }
  }
  return { actions, skipped };
}

function stateAfter({ want: { sha256, mode } }: Wish, now: PresentState): PresentState {
  if (sha256 === null) return { is: 'missing' };
  const usual = now.is === 'file' ? now.mode : 0o100644;
  return { is: isLinkMode(mode) ? 'link' : 'file', sha256, mode: mode ?? usual };
}

async function planOne(
  wish: Wish,
  now: PresentState,
  readBlob: ReadBlob,
  events: readonly Event[],
): Promise<Action | Skipped> {
  const { path, want, expect } = wish;
  if (wish.impossible !== null) return { path, reason: wish.impossible };
  if (now.is === 'other') return { path, reason: now.reason };
  if (isLike(now, want)) return { path, reason: 'it is like that already' };
  if (!isLike(now, { sha256: expect.sha256, mode: typeOnly(expect.mode, now) }))
    return { path, reason: whoChanged(now, path, events) };
  const shared = { path, wish, expected: expect.sha256, mode: want.mode, madeFolder: wish.madeFolder };
  if (want.sha256 === null) return { ...shared, what: 'remove', bytes: null };
  if (want.sha256 === expect.sha256) return { ...shared, what: 'mode', bytes: null };
  const bytes = await readBlob(want.sha256);
  return bytes === null ? { path, reason: 'its contents are not in the store' } : { ...shared, what: 'restore', bytes };
}

function isLike(now: PresentState, state: { readonly sha256: string | null; readonly mode: number | null }): boolean {
  if (now.is === 'missing' || now.is === 'other') return now.is === 'missing' && state.sha256 === null;
  return now.sha256 === state.sha256 && (state.mode === null || (now.mode & 0o177777) === (state.mode & 0o177777));
}

/** A mode that the person changed meanwhile does not stand in the way; a file in the place of a link does. */
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
