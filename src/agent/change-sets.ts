import { knownEvent, type ChangeData, type Event, type KnownEvent } from '../core/event.js';
import type { DirectoryMove } from '../core/store.js';

/** What one call did to files. */
export interface ChangeSet {
  /** Of the `tool_result`. */
  readonly seq: number;
  /** `file_edit(path="a.ts", …)`. */
  readonly title: string;
  readonly changes: readonly ChangeData[];
  /** Why there may be more changes than these. */
  readonly unwatched: string | null;
  /** The `undo` event that stands, or null. */
  readonly undoneBy: number | null;
}

type Known = KnownEvent | null;

/** What an event did to files; null for an event that is not about files. */
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

/** The events with the paths that changed files have now: what was recorded below a directory that was moved is below
 * its new path. Paths outside of it stay. */
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

/** Every call that changed files, in order. Rewinds do not count here: they are about what was said, not about what was
 * done. */
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

/** The set that an event belongs to: its result, its call, or its start. */
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

export interface FileMoment {
  readonly sha256: string | null;
  readonly mode: number | null;
}

/** What a file was right after event `seq`, by what the session's own calls and undos did to it; null where none of
 * them touched it. */
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
