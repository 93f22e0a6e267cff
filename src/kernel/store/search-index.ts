import type { Connection } from './connection.js';
import { sqliteCode } from './errors.js';

/** More events than these that are not indexed, as of an old database or a large import, are indexed from the newest to
 * the oldest, while a search finds what is indexed so far. */
const backlogEvents = 20_000;
/** `behind`: new or changed events are not indexed yet. `gap`: only old events of a backlog are not. */
export type IndexStep = 'done' | 'behind' | 'gap';

interface SearchState {
  readonly indexed_to: number;
  readonly gap_from: number;
  readonly gap_to: number;
}

/** Indexes at most `maxEvents` more events. Indexing is never part of an event's commit, so that a commit costs no more.
 * The next run indexes what a kill left out. */
export function indexPending(connection: Connection, maxEvents: number): IndexStep {
  try {
    return connection.db.transaction(() => indexSome(connection, maxEvents)).immediate();
  } catch (error) {
    if (sqliteCode(error) !== 'SQLITE_CORRUPT_VTAB') throw error;
    resetIndex(connection);
    return 'behind';
  }
}

/** Returns true when no event waits to be indexed; it changes nothing. */
export function isIndexed(connection: Connection): boolean {
  return !hasGap(searchState(connection)) && !isBehind(connection);
}

function isBehind({ sql }: Connection): boolean {
  const { indexed_to: to } = searchState({ sql });
  const isNew = sql('SELECT 1 FROM events WHERE id > ? LIMIT 1').get(to) !== undefined;
  return isNew || sql('SELECT 1 FROM search_stale LIMIT 1').get() !== undefined;
}

/** The share of the events that a search covers, from 0 to 1. Fewer than `backlogEvents` are indexed before a search. */
export function indexedShare({ sql }: Connection): number {
  const state = searchState({ sql });
  const last = sql<{ readonly last: number | null }>('SELECT max(id) AS last FROM events').get()?.last ?? 0;
  const gap = hasGap(state) ? state.gap_to - state.gap_from - 1 : 0;
  const behind = Math.max(0, last - state.indexed_to);
  const missing = gap + (behind > backlogEvents ? behind : 0);
  return last === 0 ? 1 : Math.max(0, 1 - missing / last);
}

function searchState({ sql }: Pick<Connection, 'sql'>): SearchState {
  const state = sql<SearchState>('SELECT indexed_to, gap_from, gap_to FROM search_state').get();
  return state ?? { indexed_to: 0, gap_from: 0, gap_to: 0 };
}

function hasGap({ gap_from: from, gap_to: to }: SearchState): boolean {
  return to > from + 1;
}

/** Empties the index; it is rebuilt from the events. */
export function resetIndex({ db, sql }: Connection): void {
  db.transaction(() => {
    sql("INSERT INTO events_fts(events_fts) VALUES ('delete-all')").run();
    sql('DELETE FROM search_stale').run();
    sql('UPDATE search_state SET indexed_to = 0, gap_from = 0, gap_to = 0').run();
  }).immediate();
}

function indexSome(connection: Connection, maxEvents: number): IndexStep {
  const { sql } = connection;
  const state = stateWithGap(connection);
  const isStaleLeft = indexStale(connection, state, maxEvents);
  const last =
    sql<{ readonly last: number | null }>(
      'SELECT max(id) AS last FROM (SELECT id FROM events WHERE id > ? ORDER BY id LIMIT ?)',
    ).get(state.indexed_to, maxEvents)?.last ?? null;
  if (last !== null) indexRange(connection, state.indexed_to, last);
  if (last !== null) sql('UPDATE search_state SET indexed_to = ?').run(last);
  else if (hasGap(state)) indexGap(connection, state, maxEvents);
  if (isStaleLeft || isBehind(connection)) return 'behind';
  return hasGap(searchState(connection)) ? 'gap' : 'done';
}

/** A gap ends where the index ends: ids of events that were deleted at the end are given to new events. */
function stateWithGap({ sql }: Connection): SearchState {
  const state = searchState({ sql });
  const gapTo = Math.min(state.gap_to, state.indexed_to + 1);
  const last = sql<{ readonly last: number | null }>('SELECT max(id) AS last FROM events').get()?.last ?? 0;
  const isBacklog = last - state.indexed_to > backlogEvents && gapTo <= state.gap_from + 1;
  const next = isBacklog
    ? { ...state, indexed_to: last, gap_from: state.indexed_to, gap_to: last + 1 }
    : { ...state, gap_to: gapTo };
  if (next.gap_to !== state.gap_to)
    sql('UPDATE search_state SET indexed_to = ?, gap_from = ?, gap_to = ?').run(
      next.indexed_to,
      next.gap_from,
      next.gap_to,
    );
  return next;
}

/** Updates the index for events that were changed or deleted; returns true when more of them are left. */
function indexStale({ sql }: Connection, state: SearchState, maxEvents: number): boolean {
  const ids = sql<{ readonly id: number }>('SELECT id FROM search_stale LIMIT ?').all(maxEvents);
  for (const { id } of ids) {
    sql('DELETE FROM events_fts WHERE rowid = ?').run(id);
    const isInIndex = id <= state.indexed_to && !(id > state.gap_from && id < state.gap_to);
    if (isInIndex) sql('INSERT INTO events_fts(rowid, text) SELECT id, text FROM search_text WHERE id = ?').run(id);
    sql('DELETE FROM search_stale WHERE id = ?').run(id);
  }
  return ids.length === maxEvents;
}

/** Indexes the events with ids above `after` up to `last`. */
function indexRange({ sql }: Connection, after: number, last: number): void {
  sql('INSERT INTO events_fts(rowid, text) SELECT id, text FROM search_text WHERE id > ? AND id <= ?').run(after, last);
}

/** Indexes the newest events of the gap. */
function indexGap(connection: Connection, { gap_from: from, gap_to: to }: SearchState, maxEvents: number): void {
  const first =
    connection
      .sql<{ readonly first: number | null }>(
        'SELECT min(id) AS first FROM (SELECT id FROM events WHERE id > ? AND id < ? ORDER BY id DESC LIMIT ?)',
      )
      .get(from, to, maxEvents)?.first ?? null;
  if (first !== null) indexRange(connection, first - 1, to - 1);
  const rest = first === null ? 0 : first;
  connection
    .sql('UPDATE search_state SET gap_from = iif(? > gap_from + 1, gap_from, 0), gap_to = iif(? > gap_from + 1, ?, 0)')
    .run(rest, rest, rest);
}
