import { lstatSync, readlinkSync, realpathSync } from 'node:fs';
import { chmod, lstat, mkdir, rmdir, symlink, unlink } from 'node:fs/promises';
import { dirname, relative } from 'node:path';
import { atPresentPaths, type ChangeSet, changeSets, stateAt } from '../../agent/file-history.js';
import type { ChangeData, Event, EventDraft } from '../../core/event.js';
import type { DirectoryMove } from '../../core/store.js';
import { spelledLine } from '../../core/text.js';
import { beforeWrite, sha256Of, writeWhole } from '../../tools/files/atomic-write.js';

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

/** The present state of a path. `mode` is `st_mode`, type included. `other`: a folder, a device, or an unreadable
 * file. */
type PresentState =
  | { readonly is: 'missing' }
  | { readonly is: 'file' | 'link'; readonly sha256: string; readonly mode: number }
  | { readonly is: 'other'; readonly reason: string };

const typeMask = 0o170000;
const linkType = 0o120000;

function isLinkMode(mode: number | null | undefined): boolean {
  return mode !== null && mode !== undefined && (mode & typeMask) === linkType;
}

/** Looks at the path itself. It follows no link, and no folder that has become a link. */
async function presentState(path: string): Promise<PresentState> {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (!stats) return { is: 'missing' };
  if (realpathSync(dirname(path)) !== dirname(path)) return { is: 'other', reason: 'its folder is a link now' };
  if (stats.isSymbolicLink())
    return { is: 'link', sha256: sha256Of(readlinkSync(path, { encoding: 'buffer' })), mode: stats.mode };
  if (!stats.isFile()) return { is: 'other', reason: 'it is not a file now' };
  try {
    const { sha256 } = await beforeWrite(path, path);
    return sha256 === null ? { is: 'missing' } : { is: 'file', sha256, mode: stats.mode };
  } catch (error) {
    return { is: 'other', reason: `it cannot be read (${error instanceof Error ? error.message : String(error)})` };
  }
}

/** The new state of a path. `bytes` is the target for a link; null: no file. `mode` null: the mode of the present file,
 * or the usual one. */
interface Replacement {
  readonly path: string;
  /** The hash the path must have right before it is replaced; null: no file. */
  readonly expected: string | null;
  readonly bytes: Uint8Array | null;
  readonly mode: number | null;
  /** Folders that become empty are removed, up to this one. */
  readonly madeFolder: string | null;
}

/** Gives the path its new state; a file is replaced atomically. Throws the system's error, or an error that says that
 * something else changed the file. */
export async function replaceFile({ path, expected, bytes, mode, madeFolder }: Replacement): Promise<void> {
  const now = await expectedState(path, expected);
  if (bytes === null) {
    if (now.is !== 'missing') await unlink(path);
    if (madeFolder !== null) await removeEmpty(dirname(path), madeFolder);
    return;
  }
  if (now.is === 'link' || (now.is === 'file' && isLinkMode(mode))) await unlink(path);
  if (isLinkMode(mode)) {
    await mkdir(dirname(path), { recursive: true });
    await symlink(Buffer.from(bytes), path);
    return;
  }
  const before = await beforeWrite(path, path);
  if (before.sha256 !== sha256Of(bytes)) await writeWhole(before, bytes, path);
  if (mode !== null && ((await lstat(path)).mode & 0o7777) !== (mode & 0o7777)) await chmod(path, mode & 0o7777);
}

async function expectedState(path: string, expected: string | null): Promise<PresentState> {
  const now = await presentState(path);
  const sha256 = now.is === 'file' || now.is === 'link' ? now.sha256 : null;
  if (now.is === 'other' || sha256 !== expected) throw new Error('it was changed just now by something else');
  return now;
}

/** Throws the system's error. */
async function changeMode({ path, mode }: Pick<Replacement, 'path' | 'mode'>): Promise<void> {
  if (mode !== null) await chmod(path, mode & 0o7777);
}

/** Removes empty folders from `folder` up to `topmost`. */
async function removeEmpty(folder: string, topmost: string): Promise<void> {
  for (let at = folder; at === topmost || at.startsWith(`${topmost}/`); at = dirname(at)) {
    try {
      await rmdir(at);
    } catch {
      return;
    }
  }
}
