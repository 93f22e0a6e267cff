import { chmod, lstat, mkdir, rmdir } from 'node:fs/promises';
import { basename, dirname, relative } from 'node:path';
import { atPresentPaths, type ChangeSet, changeSets, stateAt } from '../../kernel/agent/file-history.js';
import type { AgentWorktree, ChangeData, Event, EventDraft, FolderData } from '../../kernel/core/event.js';
import type { DirectoryMove } from '../../kernel/core/store.js';
import { spelledLine } from '../../kernel/core/text.js';
import { removeAgentWorktree, restoreAgentWorktree } from '../../kernel/tools/worktrees/agent-worktree.js';
import {
  folderNames,
  isJoined,
  isLinkMode,
  isOneFile,
  type PresentState,
  presentState,
  replaceFile,
  type Replacement,
} from '../../kernel/tools/changes/replace-file.js';

/** One side of a change to a file. `sha256` (hex) is null where there is no file. */
interface FileState {
  readonly sha256: string | null;
  readonly mode: number | null;
  /** Other paths of the same file (hard links). */
  readonly links: readonly string[];
}

/** The state a file is to get, and the state it must have now. */
interface Goal {
  readonly path: string;
  readonly want: FileState;
  readonly expect: FileState;
  /** The reason it cannot be done, whatever is there now; null where it can. */
  readonly impossible: string | null;
}

/** The same for a folder: modes, null where there is none. */
interface FolderGoal {
  readonly path: string;
  readonly want: number | null;
  readonly expect: number | null;
}

/** One step of a plan. The steps are carried out in their order. */
type Action =
  | ({ readonly what: 'remove' | 'restore' | 'mode'; readonly goal: Goal } & Replacement)
  | {
      readonly what: 'open-folder' | 'remove-folder' | 'make-folder' | 'folder-mode';
      readonly path: string;
      readonly folder: FolderGoal;
    };
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
  const changed = new Set(set.changes.map(({ path }) => path));
  // A name that the call left alone has the file that the others belong to.
  const ordered = (links: readonly string[] = []): readonly string[] =>
    links.toSorted((a, b) => Number(changed.has(a)) - Number(changed.has(b)));
  return set.changes.map((change) => {
    const before = {
      sha256: change.before,
      mode: change.before_mode ?? null,
      links: ordered(change.before_links),
    };
    const after = { sha256: change.after, mode: change.after_mode ?? null, links: ordered(change.after_links) };
    return {
      path: change.path,
      impossible: change.captured ? null : `not captured: ${change.reason ?? 'its contents were not saved'}`,
      ...(direction === 'undo' ? { want: before, expect: after } : { want: after, expect: before }),
    };
  });
}

export function folderGoalsOf(set: ChangeSet, direction: 'undo' | 'redo'): readonly FolderGoal[] {
  return set.folders.map(({ path, before_mode: before, after_mode: after }) =>
    direction === 'undo' ? { path, want: before, expect: after } : { path, want: after, expect: before },
  );
}

/** The file as it was right after event `seq`, or null where the session never touched it. */
export function goalAt(events: readonly Event[], path: string, seq: number): Goal | null {
  const want = stateAt(events, path, seq);
  const expect = stateAt(events, path, Number.MAX_SAFE_INTEGER);
  return want && expect
    ? { path, want: { ...want, links: [] }, expect: { ...expect, links: [] }, impossible: null }
    : null;
}

/** The state of paths after the earlier steps of the same list. */
export type Ahead = Map<string, PresentState>;

/** Puts the goals into an order in which they can be reached: what is in the way goes before what takes its place.
 * A path is touched only where it is what the session left; the others are skipped, each with the reason. Updates
 * `ahead`. */
async function planRevert(
  { goals, folders }: Pick<Revert, 'goals' | 'folders'>,
  readBlob: ReadBlob,
  events: readonly Event[],
  ahead: Ahead,
): Promise<RevertPlan> {
  const actions: Action[] = [];
  const skipped: Skipped[] = [];
  const add = (step: Action | Skipped | null, after: PresentState): void => {
    if (step === null) return;
    if ('reason' in step) skipped.push(step);
    else {
      actions.push(step);
      ahead.set(step.path, after);
    }
  };
  const planFiles = async (some: readonly Goal[]): Promise<void> => {
    for (const goal of some) {
      const now = stateOf(goal.path, ahead);
      add(await planOne(goal, now, readBlob, events), stateAfter(goal, now));
    }
  };
  const shallow = folders.toSorted((a, b) => depthOf(a.path) - depthOf(b.path));
  for (const folder of shallow)
    if (isLocked(folder, ahead)) actions.push({ what: 'open-folder', path: folder.path, folder });
  await planFiles(goals.filter(({ want }) => want.sha256 === null));
  for (const folder of shallow.toReversed())
    if (folder.want === null) add(planRemoval(folder, ahead), { is: 'missing' });
  for (const folder of shallow)
    if (folder.want !== null && folder.expect === null)
      add(planFolder(folder, ahead), { is: 'folder', mode: folder.want, isNew: true });
  await planFiles(goals.filter(({ want }) => want.sha256 !== null));
  for (const folder of shallow.toReversed())
    if (folder.want !== null) add(planMode(folder, ahead), { is: 'folder', mode: folder.want, isNew: false });
  return { actions, skipped };
}

function depthOf(path: string): number {
  return path.split('/').length;
}

const ownerRights = 0o700;

/** Returns true for a folder whose present mode keeps its owner from changing what is in it. */
function isLocked({ path, want, expect }: FolderGoal, ahead: Ahead): boolean {
  const now = stateOf(path, ahead);
  return (want ?? expect) !== null && now.is === 'folder' && (now.mode & ownerRights) !== ownerRights;
}

function planRemoval(folder: FolderGoal, ahead: Ahead): Action | Skipped | null {
  const { path } = folder;
  const now = stateOf(path, ahead);
  if (now.is !== 'folder') return now.is === 'other' ? { path, reason: now.reason } : null;
  const left = namesLeft(path, ahead);
  return left === null || left.length > 0
    ? { path, reason: left === null ? 'it cannot be read' : `it is not empty: ${someOf(left)}` }
    : { what: 'remove-folder', path, folder };
}

/** Returns what will be in the folder after the steps so far; null where it cannot be read. */
function namesLeft(folder: string, ahead: Ahead): readonly string[] | null {
  const there = folderNames(folder);
  const planned = [...ahead].filter(([path]) => dirname(path) === folder);
  const names = new Set(there ?? []);
  for (const [path, state] of planned) {
    if (state.is === 'missing') names.delete(basename(path));
    else names.add(basename(path));
  }
  return there === null && planned.length === 0 ? null : [...names];
}

const maxShownNames = 3;

function someOf(names: readonly string[]): string {
  const rest = names.length - maxShownNames;
  return `${names.slice(0, maxShownNames).map(spelledLine).join(', ')}${rest > 0 ? ` and ${rest} more` : ''}`;
}

function planFolder(folder: FolderGoal, ahead: Ahead): Action | Skipped | null {
  const { path } = folder;
  const now = stateOf(path, ahead);
  if (now.is === 'folder') return null;
  if (now.is === 'missing') return { what: 'make-folder', path, folder };
  return { path, reason: now.is === 'other' ? now.reason : 'a file is in its place' };
}

function planMode(folder: FolderGoal, ahead: Ahead): Action | Skipped | null {
  const { path, want, expect } = folder;
  const now = stateOf(path, ahead);
  if (now.is !== 'folder') return expect === null ? null : { path, reason: 'it is not a folder now' };
  const isDone = want === null || (now.mode & permissions) === (want & permissions);
  return isDone && !isLocked(folder, ahead) ? null : { what: 'folder-mode', path, folder };
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
  const isSame = want.sha256 === expect.sha256;
  const isSplit = isSame && want.links.length === 0 && expect.links.some((other) => isOneFile(path, other));
  const reason = whyLeft(goal, now, isSplit, events);
  if (reason !== null) return { path, reason };
  const shared = { path, goal, expected: expect.sha256, mode: want.mode, links: want.links, bytes: null };
  if (want.sha256 === null) return { ...shared, what: 'remove' };
  if (now.is === 'other' || (isSame && !isSplit && isJoined(path, want.links))) return { ...shared, what: 'mode' };
  const bytes = await readBlob(want.sha256);
  return bytes === null ? { path, reason: 'its contents are not in the store' } : { ...shared, what: 'restore', bytes };
}

/** Returns why the path is left as it is; null where the goal can be reached. */
function whyLeft(goal: Goal, now: PresentState, isSplit: boolean, events: readonly Event[]): string | null {
  const { path, want, expect, impossible } = goal;
  if (impossible !== null) return impossible;
  // A file that cannot be read may get back the mode by which it can.
  if (now.is === 'other') {
    const isModeOnly = now.mode !== null && want.sha256 === expect.sha256 && now.mode === expect.mode;
    return isModeOnly ? null : now.reason;
  }
  const isDone = isLike(now, want);
  if (isDone && !isSplit && isJoined(path, want.links)) return 'it is already like that';
  if (isDone || isLike(now, { sha256: expect.sha256, mode: typeOnly(expect.mode, now) })) return null;
  return whoChanged(now, path, events);
}

const permissions = 0o7777;

function isLike(now: PresentState, state: { readonly sha256: string | null; readonly mode: number | null }): boolean {
  if (now.is !== 'file' && now.is !== 'link') return now.is === 'missing' && state.sha256 === null;
  return now.sha256 === state.sha256 && (state.mode === null || (now.mode & 0o177777) === (state.mode & 0o177777));
}

/** A mode that the user changed does not block a revert; a file in the place of a link does. */
function typeOnly(mode: number | null, now: PresentState): number | null {
  if (mode === null || (now.is !== 'file' && now.is !== 'link')) return null;
  return isLinkMode(mode) === (now.is === 'link') ? now.mode : mode;
}

function whoChanged(now: PresentState, path: string, events: readonly Event[]): string {
  if (now.is === 'folder') return 'it is a folder now';
  const sha256 = now.is === 'file' || now.is === 'link' ? now.sha256 : null;
  const made = changeSets(events).findLast((set) =>
    set.changes.some((change: ChangeData) => change.path === path && change.captured && change.after === sha256),
  );
  return made && made.undoneBy === null
    ? `it is as event ${made.seq} left it (${made.title}); undo that first`
    : 'another program has changed it since';
}

const words: Readonly<Record<Action['what'], string | null>> = {
  restore: 'write ',
  remove: 'remove',
  mode: 'mode  ',
  'open-folder': null,
  'remove-folder': 'remove',
  'make-folder': 'make  ',
  'folder-mode': 'mode  ',
};

/** Returns the plan as a list for a reader; paths relative to `cwd` where they are inside it. */
export function planLines({ actions, skipped }: RevertPlan, cwd: string): readonly string[] {
  const lines = actions.flatMap((action) => {
    const word = words[action.what];
    const isDone = action.what === 'folder-mode' && action.folder.expect === null;
    return word === null || isDone ? [] : [`  ${word}  ${shownTo(cwd, action.path)}${'folder' in action ? '/' : ''}`];
  });
  return [...lines, ...skippedLines(skipped, cwd)];
}

/** Returns one line for each path that is left as it is. */
export function skippedLines(skipped: readonly Skipped[], cwd: string): readonly string[] {
  return skipped.map(({ path, reason }) => `  skip    ${shownTo(cwd, path)}: ${reason}`);
}

/** A path as a list shows it: relative where it is inside `cwd`, hidden characters spelt out. */
function shownTo(cwd: string, path: string): string {
  const inside = relative(cwd, path);
  return spelledLine(inside === '' || inside.startsWith('..') ? path : inside);
}

/** The parts of a session that undo needs: its log, the contents of files, and a way to record what was done. */
export interface RevertSession {
  readonly cwd: string;
  /** The environment that git gets; absent where nothing is carried out. */
  readonly env?: NodeJS.ProcessEnv;
  events(): readonly Event[];
  blob(sha256: string): Promise<Uint8Array | null>;
  append(draft: EventDraft): Promise<unknown>;
}

/** The same session, with paths adapted to the moves of its directory. `env`: of the program. */
export function atPresent(
  session: RevertSession,
  moves: readonly DirectoryMove[] | undefined,
  env: NodeJS.ProcessEnv,
): RevertSession {
  return {
    cwd: session.cwd,
    env,
    events: () => atPresentPaths(session.events(), moves ?? []),
    blob: (sha256) => session.blob(sha256),
    append: (draft) => session.append(draft),
  };
}

/** One change to revert: the kind of event that records it, the event it is about, its files and folders. */
export interface Revert {
  readonly kind: 'undo' | 'redo' | 'restore';
  readonly ofSeq: number;
  readonly title: string;
  readonly goals: readonly Goal[];
  readonly folders: readonly FolderGoal[];
  /** The reason there may be more changes than these; null where there are none. */ readonly unwatched: string | null;
  /** The worktree of a sub-agent that was discarded. */
  readonly worktree?: AgentWorktree;
}

export function planOf(session: RevertSession, revert: Revert, ahead: Ahead = new Map()): Promise<RevertPlan> {
  return planRevert(revert, (sha256) => session.blob(sha256), session.events(), ahead);
}

/** The outcome of the changes that were applied. */
export interface Reverted {
  readonly done: readonly ChangeData[];
  readonly folders: readonly FolderData[];
  readonly skipped: readonly Skipped[];
}

/** Carries out the plan as far as it is still allowed and records it. Records nothing where nothing was done. */
export async function act(session: RevertSession, revert: Revert): Promise<Reverted> {
  const plan = await planOf(session, revert);
  const done: ChangeData[] = [];
  const folders: FolderData[] = [];
  const skipped: Skipped[] = [...plan.skipped];
  if (revert.worktree) return await actOnWorktree(session, revert, revert.worktree);
  for (const action of plan.actions) {
    try {
      await carryOut(action);
      if ('goal' in action) done.push(changeOf(action.goal));
      else if (action.what !== 'open-folder' && !folders.some(({ path }) => path === action.path))
        folders.push(folderOf(action.folder));
    } catch (error) {
      skipped.push({ path: action.path, reason: error instanceof Error ? error.message : String(error) });
    }
  }
  if (done.length + folders.length > 0)
    await session.append({
      kind: revert.kind,
      content: note(session, revert, [...done, ...folders]),
      data: { of_seq: revert.ofSeq, changes: done, ...(folders.length > 0 ? { folders } : {}), skipped },
    });
  return { done, folders, skipped };
}

/** Makes the worktree of a discarded sub-agent again, or removes it again, and records it. */
async function actOnWorktree(session: RevertSession, revert: Revert, worktree: AgentWorktree): Promise<Reverted> {
  const at = { cwd: session.cwd, env: session.env ?? {} };
  const { path } = worktree;
  try {
    await (revert.kind === 'undo' ? restoreAgentWorktree(at, worktree) : removeAgentWorktree(at, worktree));
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return { done: [], folders: [], skipped: [{ path, reason }] };
  }
  const folder: FolderData = { path, before_mode: null, after_mode: null };
  const changed = { ...folder, after_mode: revert.kind === 'undo' ? 0o040755 : null };
  await session.append({
    kind: revert.kind,
    content: note(session, revert, [changed]),
    data: { of_seq: revert.ofSeq, changes: [], skipped: [], worktree },
  });
  return { done: [], folders: [folder], skipped: [] };
}

async function carryOut(action: Action): Promise<void> {
  switch (action.what) {
    case 'mode':
    case 'folder-mode': {
      const mode = 'goal' in action ? action.mode : action.folder.want;
      if (mode !== null) await chmod(action.path, mode & permissions);
      return;
    }
    case 'remove':
    case 'restore':
      await replaceFile(action);
      return;
    case 'open-folder':
      await chmod(action.path, (await lstat(action.path)).mode | ownerRights);
      return;
    case 'remove-folder':
      await rmdir(action.path);
      return;
    case 'make-folder':
      await mkdir(action.path);
      await chmod(action.path, ownerRights | ((action.folder.want ?? 0) & permissions));
      return;
    default:
      action satisfies never;
  }
}

function changeOf({ path, want, expect }: Goal): ChangeData {
  return {
    path,
    what: expect.sha256 === null ? 'created' : want.sha256 === null ? 'deleted' : 'changed',
    before: expect.sha256,
    after: want.sha256,
    captured: true,
    ...(expect.mode === null ? {} : { before_mode: expect.mode }),
    ...(want.mode === null ? {} : { after_mode: want.mode }),
    ...(expect.links.length === 0 ? {} : { before_links: expect.links }),
    ...(want.links.length === 0 ? {} : { after_links: want.links }),
  };
}

function folderOf({ path, want, expect }: FolderGoal): FolderData {
  return { path, before_mode: expect, after_mode: want };
}

const maxNamed = 20;

function note(
  session: RevertSession,
  { kind, ofSeq, title }: Revert,
  done: readonly (ChangeData | FolderData)[],
): string {
  const names = done.slice(0, maxNamed).map((change) => {
    const isGone = 'after' in change ? change.after === null : change.after_mode === null;
    return `${shownTo(session.cwd, change.path)}${isGone ? ' (removed)' : ''}`;
  });
  const rest = done.length > names.length ? ` and ${done.length - names.length} more` : '';
  const what =
    kind === 'restore'
      ? `brought files back to what they were at event ${ofSeq}`
      : `${kind === 'undo' ? 'undid' : 'redid'} what ${title} did to files (event ${ofSeq})`;
  return `[Note: the user ${what}: ${names.join(', ')}${rest}]`;
}

/** Returns the state of a path after the steps in `ahead`. */
function stateOf(path: string, ahead: Ahead): PresentState {
  const planned = ahead.get(path);
  if (planned) return planned;
  for (let at = dirname(path); at !== dirname(at); at = dirname(at)) {
    const above = ahead.get(at);
    if (above && (above.is !== 'folder' || above.isNew)) return { is: 'missing' };
  }
  return presentState(path);
}
