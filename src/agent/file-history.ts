import { type ChangeData, type Event, knownEvent, type KnownEvent } from '../core/event.js';
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
  /** Why there may be more changes than these. */
  readonly unwatched: string | null;
  /** The `undo` event that stands, or null. */
  readonly undoneBy: number | null;
}

type Known = KnownEvent | null;

/** The changes that an event records; null for an event that is not about files. */
function changesOf(event: Known): readonly ChangeData[] | null {
  switch (event?.kind) {
    case 'tool_result':
      return Array.isArray(event.data.changes) ? event.data.changes : null;
    case 'undo':
    case 'redo':
    case 'restore':
      return event.data.changes;
    default:
      return null;
  }
}

/** Rewrites the recorded paths below a directory that was moved to their new places. Other paths stay. */
export function atPresentPaths(events: readonly Event[], moves: readonly DirectoryMove[]): readonly Event[] {
  if (moves.length === 0) return events;
  return events.map((raw) => {
    const event = knownEvent(raw);
    const changes = changesOf(event);
    const since = moves.filter((move) => raw.seq <= move.lastSeq);
    if (event === null || changes === null || since.length === 0) return raw;
    return { ...raw, data: { ...event.data, changes: changes.map((change) => movedChange(change, since)) } };
  });
}

function movedChange(change: ChangeData, moves: readonly DirectoryMove[]): ChangeData {
  const { path, made_folder: made, gone_folder: gone } = change;
  return {
    ...change,
    path: movedPath(path, moves),
    ...(made === undefined ? {} : { made_folder: movedPath(made, moves) }),
    ...(gone === undefined ? {} : { gone_folder: movedPath(gone, moves) }),
  };
}

function movedPath(path: string, moves: readonly DirectoryMove[]): string {
  return moves.reduce((now, { from, to }) => {
    const isInside = now === from || now.startsWith(`${from}/`);
    return isInside ? to + now.slice(from.length) : now;
  }, path);
}

/** Every call that changed files, in order. Rewinds do not count here: they undo messages, not changes to files. */
export function changeSets(events: readonly Event[]): readonly ChangeSet[] {
  const titles = new Map<string, string>();
  const sets = new Map<number, ChangeSet>();
  for (const raw of events) {
    const event = knownEvent(raw);
    const changes = changesOf(event);
    if (event?.kind === 'tool_call') titles.set(event.data.id, event.content);
    if (event === null || changes === null) continue;
    if (event.kind === 'tool_result') {
      const { tool_call_id, name, unwatched } = event.data;
      sets.set(event.seq, {
        seq: event.seq,
        title: titles.get(tool_call_id) ?? name,
        changes,
        unwatched: unwatched ?? null,
        undoneBy: null,
      });
    } else markUndone(sets, event, changes);
  }
  return [...sets.values()];
}

function markUndone(sets: Map<number, ChangeSet>, event: KnownEvent, changes: readonly ChangeData[]): void {
  if (event.kind !== 'undo' && event.kind !== 'redo') return;
  const set = sets.get(event.data.of_seq);
  if (set && changes.length > 0) sets.set(set.seq, { ...set, undoneBy: event.kind === 'undo' ? event.seq : null });
}

/** The set that an event belongs to; the event may be the result, the call or its start. */
export function changeSetAt(events: readonly Event[], seq: number): ChangeSet | null {
  const sets = changeSets(events);
  const event = events.find((item) => item.seq === seq);
  const known = event ? knownEvent(event) : null;
  const id =
    known?.kind === 'tool_call'
      ? known.data.id
      : known?.kind === 'tool_started' || known?.kind === 'tool_result'
        ? known.data.tool_call_id
        : null;
  if (id === null) return null;
  return sets.find((set) => set.seq >= seq && isResultOf(events, set.seq, id)) ?? null;
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
    const change = changesOf(knownEvent(raw))?.findLast((item) => item.path === path && item.captured);
    if (!change) continue;
    if (raw.seq <= seq) state = { sha256: change.after, mode: change.after_mode ?? null };
    else state ??= { sha256: change.before, mode: change.before_mode ?? null };
  }
  return state;
}

/** Most changes that one result lists; a command may touch a whole tree. */
const maxListed = 500;

/** The changes that a `tool_result` records, and the contents that go to the store with it. */
export interface CapturedChanges {
  readonly changes: readonly ChangeData[];
  readonly blobs: readonly Blob[];
  readonly unwatched?: string;
}

/** What a session did to files from the first of these events to the last, one change for each file. */
export function netChanges(events: readonly Event[]): RecordedChanges {
  const net = new Map<string, ChangeData>();
  const sets = changeSets(events).filter(({ undoneBy }) => undoneBy === null);
  for (const change of sets.flatMap(({ changes }) => changes)) {
    const first = net.get(change.path);
    net.set(change.path, first ? joined(first, change) : change);
  }
  const changes = [...net.values()].filter(
    (change) => !change.captured || change.before !== change.after || change.before_mode !== change.after_mode,
  );
  const unwatched = sets.find((set) => set.unwatched !== null)?.unwatched;
  return { changes, ...(unwatched ? { unwatched } : {}) };
}

function joined(first: ChangeData, last: ChangeData): ChangeData {
  const { path, before, before_mode: beforeMode, made_folder: made } = first;
  const { after, after_mode: afterMode, gone_folder: gone } = last;
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
    ...(made === undefined ? {} : { made_folder: made }),
    ...(gone === undefined ? {} : { gone_folder: gone }),
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
  const changes = listed.map((change) =>
    change.captured ? capturedChange(capture, change, blobs, seen) : detected(change),
  );
  const stored = recorded.changes.slice(0, maxListed - listed.length);
  const left = all.length + recorded.changes.length - listed.length - stored.length;
  const why = seen.unwatched ?? recorded.unwatched;
  const unwatched = left > 0 ? `${left} more files changed and are not listed` : why;
  return {
    changes: [...changes.filter((change) => change !== null), ...stored],
    blobs: [...blobs.values()],
    ...(unwatched === undefined ? {} : { unwatched }),
  };
}

function capturedChange(
  capture: ChangeCapture,
  change: FileChange,
  blobs: Map<string, Blob>,
  seen: WatchReport,
): ChangeData | null {
  const { path, beforeMode, afterMode } = change;
  const before = change.before === null ? null : capture.hash(change.before);
  const after = change.after === null ? null : capture.hash(change.after);
  if (before === after && beforeMode === afterMode) return null;
  if (before !== after) for (const bytes of [change.before, change.after]) addBlob(capture, bytes, blobs);
  const what = before === null ? 'created' : after === null ? 'deleted' : 'changed';
  return {
    path,
    what,
    before,
    after,
    ...captureFacts(change.before, capture),
    ...modes(beforeMode, afterMode),
    ...folders(path, what, seen),
  };
}

function folders(
  path: string,
  what: ChangeData['what'],
  { madeFolders, goneFolders }: WatchReport,
): Pick<ChangeData, 'made_folder' | 'gone_folder'> {
  const holds = (folder: string): boolean => path.startsWith(`${folder}/`);
  const made = what === 'created' ? madeFolders.find(holds) : undefined;
  const gone = what === 'deleted' ? goneFolders.find(holds) : undefined;
  return { ...(made === undefined ? {} : { made_folder: made }), ...(gone === undefined ? {} : { gone_folder: gone }) };
}

function captureFacts(before: Uint8Array | null, capture: ChangeCapture): Pick<ChangeData, 'captured' | 'reason'> {
  const reason = before === null ? null : refusal(capture, before);
  return reason === null ? { captured: true } : { captured: false, reason };
}

function refusal({ maxBlobBytes, holdsSecret }: ChangeCapture, bytes: Uint8Array): string | null {
  if (bytes.byteLength > maxBlobBytes) return `it had more than ${maxBlobBytes} bytes`;
  return holdsSecret?.(bytes) ? 'it held a key' : null;
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
      if (event.data.success) for (const file of event.data.files ?? []) files.set(file.path, file.sha256);
      return;
    case 'undo':
    case 'redo':
    case 'restore':
      for (const change of event.data.changes) if (files.has(change.path)) files.set(change.path, change.after);
      return;
    default:
  }
}
