import {
  type AgentWorktree,
  type ChangeData,
  type Event,
  type FolderData,
  knownEvent,
  type KnownEvent,
  type ToolResultData,
} from '../core/event.js';
import type { ChangeCapture, WatchedChange, WatchReport } from '../core/file-changes.js';
import type { Blob, DirectoryMove } from '../core/store.js';
import type { FileChange, RecordedChanges, ToolOutcome } from '../core/tool.js';

/** The changes that one call made to files. */
export interface ChangeSet {
  /** The `seq` of the `tool_result`. */
  readonly seq: number;
  /** `edit(path="a.ts", …)`: the content of the `tool_call`. */
  readonly title: string;
  readonly changes: readonly ChangeData[];
  readonly folders: readonly FolderData[];
  /** The reason why there may be more changes than these. */
  readonly unwatched: string | null;
  /** The `seq` of the `undo` event that is in effect, or null. */
  readonly undoneBy: number | null;
  /** The worktree of a sub-agent that was removed. */
  readonly worktree?: AgentWorktree;
}

type Known = KnownEvent | null;

/** Returns the file changes of an event; null for an event that is not about files. */
interface RecordedFiles {
  readonly changes: readonly ChangeData[];
  readonly folders: readonly FolderData[];
  readonly unwatched: string | null;
  readonly worktree?: AgentWorktree;
}

function filesOf(event: Known): RecordedFiles | null {
  switch (event?.kind) {
    case 'tool_result': {
      const { changes, folders, unwatched } = event.data;
      if (!Array.isArray(changes) && !Array.isArray(folders) && typeof unwatched !== 'string') return null;
      const listed = Array.isArray(changes) ? (changes as readonly ChangeData[]) : [];
      return { changes: listed, folders: foldersOf(listed, folders), unwatched: unwatched ?? null };
    }
    case 'agent':
      return event.data.state === 'discarded' && event.data.worktree
        ? { changes: [], folders: [], unwatched: null, worktree: event.data.worktree }
        : null;
    case 'undo':
    case 'redo':
    case 'restore': {
      const { changes, folders = [], worktree } = event.data;
      return { changes, folders, unwatched: null, ...(worktree ? { worktree } : {}) };
    }
    default:
      return null;
  }
}

const folderMode = 0o040755;

/** Returns the folders of a result. One of an earlier version names with each file only the topmost folder. */
function foldersOf(changes: readonly ChangeData[], folders: readonly FolderData[] | undefined): readonly FolderData[] {
  if (Array.isArray(folders)) return folders;
  const found = new Map<string, FolderData>();
  for (const { path, made_folder: made, gone_folder: gone } of changes) {
    for (const folder of foldersBetween(path, made))
      found.set(folder, { path: folder, before_mode: null, after_mode: folderMode });
    for (const folder of foldersBetween(path, gone))
      found.set(folder, { path: folder, before_mode: folderMode, after_mode: null });
  }
  return [...found.values()];
}

function foldersBetween(path: string, topmost: string | undefined): readonly string[] {
  const folders: string[] = [];
  if (topmost === undefined) return folders;
  for (let at = parentOf(path); at === topmost || at.startsWith(`${topmost}/`); at = parentOf(at)) folders.push(at);
  return folders;
}

function parentOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf('/')));
}

/** Rewrites the recorded paths below a directory that was moved to their new places. Other paths stay. */
export function atPresentPaths(events: readonly Event[], moves: readonly DirectoryMove[]): readonly Event[] {
  if (moves.length === 0) return events;
  return events.map((raw) => {
    const event = knownEvent(raw);
    const files = filesOf(event);
    const since = moves.filter((move) => raw.seq <= move.lastSeq);
    if (event === null || files === null || since.length === 0) return raw;
    const changes = files.changes.map((change) => movedChange(change, since));
    const folders = files.folders.map((folder) => ({ ...folder, path: movedPath(folder.path, since) }));
    return { ...raw, data: { ...event.data, changes, folders } };
  });
}

function movedChange(change: ChangeData, moves: readonly DirectoryMove[]): ChangeData {
  const { path, before_links: before, after_links: after } = change;
  return {
    ...change,
    path: movedPath(path, moves),
    ...(before === undefined ? {} : { before_links: before.map((link) => movedPath(link, moves)) }),
    ...(after === undefined ? {} : { after_links: after.map((link) => movedPath(link, moves)) }),
  };
}

function movedPath(path: string, moves: readonly DirectoryMove[]): string {
  return moves.reduce((now, { from, to }) => {
    const isInside = now === from || now.startsWith(`${from}/`);
    return isInside ? to + now.slice(from.length) : now;
  }, path);
}

/** Every call that changed files, or may have where not all could be watched, in order. Rewinds do not count here: they undo messages, not changes to files. */
export function changeSets(events: readonly Event[]): readonly ChangeSet[] {
  const titles = new Map<string, string>();
  const sets = new Map<number, ChangeSet>();
  for (const raw of events) {
    const event = knownEvent(raw);
    const files = filesOf(event);
    if (event?.kind === 'tool_call') titles.set(event.data.id, event.content);
    if (event === null || files === null) continue;
    if (event.kind === 'tool_result') {
      const { tool_call_id, name } = event.data;
      sets.set(event.seq, { seq: event.seq, title: titles.get(tool_call_id) ?? name, ...files, undoneBy: null });
    } else if (event.kind === 'agent') {
      const title = `agent(discard: ${event.data.description})`;
      sets.set(event.seq, { seq: event.seq, title, ...files, undoneBy: null });
    } else if (files.changes.length + files.folders.length > 0 || files.worktree) markUndone(sets, event);
  }
  return [...sets.values()];
}

function markUndone(sets: Map<number, ChangeSet>, event: KnownEvent): void {
  if (event.kind !== 'undo' && event.kind !== 'redo') return;
  const set = sets.get(event.data.of_seq);
  if (set) sets.set(set.seq, { ...set, undoneBy: event.kind === 'undo' ? event.seq : null });
}

/** The set that an event belongs to; the event may be the result, the call or its start. */
export function changeSetAt(events: readonly Event[], seq: number): ChangeSet | null {
  const sets = changeSets(events);
  const event = events.find((item) => item.seq === seq);
  const known = event ? knownEvent(event) : null;
  if (known?.kind === 'agent') return sets.find((set) => set.seq === seq) ?? null;
  const id = known ? callIdOf(known) : null;
  if (id === null) return null;
  return sets.find((set) => set.seq >= seq && isResultOf(events, set.seq, id)) ?? null;
}

/** Returns the id of the call that an event is a part of, or null. */
function callIdOf(event: KnownEvent): string | null {
  if (event.kind === 'tool_call') return event.data.id;
  return event.kind === 'tool_started' || event.kind === 'tool_result' ? event.data.tool_call_id : null;
}

function isResultOf(events: readonly Event[], seq: number, id: string): boolean {
  const event = events.find((item) => item.seq === seq);
  const known = event ? knownEvent(event) : null;
  return known?.kind === 'tool_result' && known.data.tool_call_id === id;
}

/** A file at one moment: the SHA-256 (hex) of its contents and its mode. */
export interface FileMoment {
  readonly sha256: string | null;
  readonly mode: number | null;
}

/** The state of a file right after event `seq`, as the session's calls and undos recorded it; null where none of them
 * touched it. */
export function stateAt(events: readonly Event[], path: string, seq: number): FileMoment | null {
  let state: FileMoment | null = null;
  for (const raw of events) {
    const change = filesOf(knownEvent(raw))?.changes.findLast((item) => item.path === path && item.captured);
    if (!change) continue;
    if (raw.seq <= seq) state = { sha256: change.after, mode: change.after_mode ?? null };
    else state ??= { sha256: change.before, mode: change.before_mode ?? null };
  }
  return state;
}

/** Most changes that one result lists; a command may touch a whole tree. */
const maxListed = 2000;

/** The changes that a `tool_result` records, and the contents that go to the store with it. */
export interface CapturedChanges {
  readonly changes: readonly ChangeData[];
  readonly folders: readonly FolderData[];
  readonly blobs: readonly Blob[];
  readonly unwatched?: string;
}

/** Returns the changes to files by a session from the first of these events to the last, one change for each file. */
export function netChanges(events: readonly Event[]): RecordedChanges {
  const net = new Map<string, ChangeData>();
  const sets = changeSets(events).filter(({ undoneBy }) => undoneBy === null);
  for (const change of sets.flatMap(({ changes }) => changes)) {
    const first = net.get(change.path);
    net.set(change.path, first ? joinChanges(first, change) : change);
  }
  const changes = [...net.values()].filter(
    (change) =>
      !change.captured ||
      change.before !== change.after ||
      change.before_mode !== change.after_mode ||
      !sameLinks(change.before_links, change.after_links),
  );
  const folders = netFolders(sets.flatMap((set) => set.folders));
  const reasons = new Set(sets.flatMap((set) => set.unwatched ?? []));
  const unwatched = reasons.size > 0 ? [...reasons].join('; ') : undefined;
  return { changes, ...(folders.length > 0 ? { folders } : {}), ...(unwatched ? { unwatched } : {}) };
}

/** Returns the fields of a result that has these changes. What is empty is left out. */
export function changesData(
  recorded: RecordedChanges | undefined,
): Pick<ToolResultData, 'changes' | 'folders' | 'unwatched'> {
  const { changes = [], folders = [], unwatched } = recorded ?? {};
  return {
    ...(changes.length > 0 ? { changes } : {}),
    ...(folders.length > 0 ? { folders } : {}),
    ...(unwatched === undefined ? {} : { unwatched }),
  };
}

function netFolders(changes: readonly FolderData[]): readonly FolderData[] {
  const net = new Map<string, FolderData>();
  for (const change of changes) {
    const before = net.get(change.path)?.before_mode;
    net.set(change.path, before === undefined ? change : { ...change, before_mode: before });
  }
  return [...net.values()].filter((change) => change.before_mode !== change.after_mode);
}

function joinChanges(first: ChangeData, last: ChangeData): ChangeData {
  const { path, before, before_mode: beforeMode, before_links: beforeLinks } = first;
  const { after, after_mode: afterMode, after_links: afterLinks } = last;
  const lost = [first, last].find(({ captured }) => !captured);
  const isGone = last.what === 'deleted';
  return {
    path,
    what: isGone ? 'deleted' : first.what === 'created' ? 'created' : 'changed',
    before,
    after,
    captured: lost === undefined,
    ...(lost?.reason === undefined ? {} : { reason: lost.reason }),
    ...modes(beforeMode, afterMode),
    ...hardLinks(beforeLinks, afterLinks),
  };
}

/** Joins the changes that a tool reported with those that were seen in the working tree, for the log. Where both name a
 * file, the report of the tool counts. */
export function captureChanges(
  capture: ChangeCapture,
  { changes: reported = [], recorded = { changes: [] } }: Pick<ToolOutcome, 'changes' | 'recorded'>,
  seen: WatchReport,
): CapturedChanges {
  const known = new Set([...reported, ...recorded.changes].map((change) => change.path));
  const all: readonly WatchedChange[] = [
    ...reported.map((change) => ({ captured: true, ...change }) as const),
    ...seen.changes.filter((change) => !known.has(change.path)),
  ];
  const listed = all.slice(0, maxListed);
  const blobs = new Map<string, Blob>();
  const changes = listed.map((change) => (change.captured ? capturedChange(capture, change, blobs) : detected(change)));
  const stored = recorded.changes.slice(0, maxListed - listed.length);
  const left = all.length + recorded.changes.length - listed.length - stored.length;
  const folders = netFolders([...(recorded.folders ?? []), ...seen.folders]);
  const leftFolders = Math.max(0, folders.length - maxListed);
  const reasons = [
    ...(left > 0 ? [`${left} more files changed and are not listed`] : []),
    ...(leftFolders > 0 ? [`${leftFolders} more folders changed and are not listed`] : []),
    ...(seen.unwatched === undefined ? [] : [seen.unwatched]),
    ...(recorded.unwatched === undefined ? [] : [recorded.unwatched]),
  ];
  const unwatched = reasons.length > 0 ? reasons.join('; ') : undefined;
  return {
    changes: [...changes.filter((change) => change !== null), ...stored],
    folders: folders.slice(0, maxListed),
    blobs: [...blobs.values()],
    ...(unwatched === undefined ? {} : { unwatched }),
  };
}

function capturedChange(capture: ChangeCapture, change: FileChange, blobs: Map<string, Blob>): ChangeData | null {
  const { path, beforeMode, afterMode, beforeLinks, afterLinks } = change;
  const before = change.before === null ? null : capture.hash(change.before);
  const after = change.after === null ? null : capture.hash(change.after);
  const isRelinked = !sameLinks(beforeLinks, afterLinks);
  if (before === after && beforeMode === afterMode && !isRelinked) return null;
  if (before !== after || isRelinked) for (const bytes of [change.before, change.after]) addBlob(capture, bytes, blobs);
  const what = before === null ? 'created' : after === null ? 'deleted' : 'changed';
  return {
    path,
    what,
    before,
    after,
    ...captureFacts(change.before, capture),
    ...modes(beforeMode, afterMode),
    ...hardLinks(beforeLinks, afterLinks),
  };
}

function captureFacts(before: Uint8Array | null, capture: ChangeCapture): Pick<ChangeData, 'captured' | 'reason'> {
  const reason = before === null ? null : refusal(capture, before);
  return reason === null ? { captured: true } : { captured: false, reason };
}

function refusal({ maxBlobBytes, holdsSecret }: ChangeCapture, bytes: Uint8Array): string | null {
  if (bytes.byteLength > maxBlobBytes) return `it had more than ${maxBlobBytes} bytes`;
  return holdsSecret?.(bytes) ? 'it contained a key' : null;
}

function addBlob(capture: ChangeCapture, bytes: Uint8Array | null, blobs: Map<string, Blob>): void {
  if (bytes === null || refusal(capture, bytes) !== null) return;
  const sha256 = capture.hash(bytes);
  blobs.set(sha256, { sha256, bytes });
}

function detected(change: Extract<WatchedChange, { captured: false }>): ChangeData {
  const { path, what, reason, beforeMode, afterMode } = change;
  return { path, what, before: null, after: null, captured: false, reason, ...modes(beforeMode, afterMode) };
}

function modes(before: number | undefined, after: number | undefined): Pick<ChangeData, 'before_mode' | 'after_mode'> {
  return {
    ...(before === undefined ? {} : { before_mode: before }),
    ...(after === undefined ? {} : { after_mode: after }),
  };
}

function sameLinks(before: readonly string[] = [], after: readonly string[] = []): boolean {
  return before.length === after.length && before.every((path) => after.includes(path));
}

function hardLinks(
  before: readonly string[] | undefined,
  after: readonly string[] | undefined,
): Pick<ChangeData, 'before_links' | 'after_links'> {
  return {
    ...(before === undefined ? {} : { before_links: before }),
    ...(after === undefined ? {} : { after_links: after }),
  };
}

/** Takes from an event the last known state of files: of all that a result names, and of those that an undo or redo
 * changed and that were known before. */
export function noteFiles(files: Map<string, string | null>, raw: Event): void {
  // Most events say nothing of files.
  const event =
    raw.kind === 'tool_result' || raw.kind === 'undo' || raw.kind === 'redo' || raw.kind === 'restore'
      ? knownEvent(raw)
      : null;
  switch (event?.kind) {
    case 'tool_result':
      for (const file of event.data.files ?? []) files.set(file.path, file.sha256);
      return;
    case 'undo':
    case 'redo':
    case 'restore':
      for (const change of event.data.changes) if (files.has(change.path)) files.set(change.path, change.after);
      return;
    default:
  }
}
