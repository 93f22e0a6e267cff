import type { SearchHit } from '../core/store.js';
import type { Connection } from './connection.js';
import { holdsPhrases, matchesSearch, snippetOf, type SearchQuery } from './search-query.js';
import { sqliteCode } from './store-error.js';

interface HitRow {
  readonly session_id: string;
  readonly seq: number;
  readonly kind: string;
  readonly created_at: number;
  readonly cwd: string;
  readonly title: string | null;
  readonly text: string | null;
}

/** Brings the full-text index up to date with at most `maxEvents` more events; true where there are more. The index
 * follows the events and is never part of their commit, so that a commit costs no more; what a kill leaves out the next
 * run takes up. */
export function indexPending(connection: Connection, maxEvents: number): boolean {
  try {
    return connection.db.transaction(() => indexSome(connection, maxEvents)).immediate();
  } catch (error) {
    if (sqliteCode(error) !== 'SQLITE_CORRUPT_VTAB') throw error;
    resetIndex(connection);
    return true;
  }
}

/** The newest events that hold all terms, of the sessions of `cwd` where it is given. Null where the index was damaged:
 * it is empty then. */
export function searchEvents(
  connection: Connection,
  query: SearchQuery,
  limit: number,
  cwd?: string,
): readonly SearchHit[] | null {
  try {
    return findHits(connection, query, limit, cwd);
  } catch (error) {
    if (sqliteCode(error) !== 'SQLITE_CORRUPT_VTAB') throw error;
    resetIndex(connection);
    return null;
  }
}

function findHits(connection: Connection, query: SearchQuery, limit: number, cwd?: string): readonly SearchHit[] {
  try {
    const found = candidates(connection, { match: query.match, cwd, limit: query.phrases.length === 0 ? limit : null });
    return firstHits(found, query, limit, (text) => holdsPhrases(query, text));
  } catch (error) {
    if (!isSplitWord(error)) throw error;
    return firstHits(candidates(connection, { match: null, cwd, limit: null }), query, limit, (text) =>
      matchesSearch(query, text),
    );
  }
}

function firstHits(
  rows: Iterable<HitRow>,
  query: SearchQuery,
  limit: number,
  holds: (text: string) => boolean,
): readonly SearchHit[] {
  const hits: SearchHit[] = [];
  for (const row of rows) {
    const text = row.text ?? '';
    if (hits.length === limit) break;
    if (!holds(text)) continue;
    hits.push({
      sessionId: row.session_id,
      seq: row.seq,
      kind: row.kind,
      createdAt: row.created_at,
      cwd: row.cwd,
      title: row.title,
      ...snippetOf(query, text),
    });
  }
  return hits;
}

/** What to look through, newest first. Null: no match asks for every event, no limit for all of them. */
interface Candidates {
  readonly match: string | null;
  readonly cwd: string | undefined;
  readonly limit: number | null;
}

function candidates({ sql }: Connection, { match, cwd, limit }: Candidates): Iterable<HitRow> {
  const from = match === null ? 'events e' : 'events_fts f CROSS JOIN events e ON e.id = f.rowid';
  const where = [...(match === null ? [] : ['events_fts MATCH ?']), ...(cwd === undefined ? [] : ['s.cwd = ?'])];
  return sql<HitRow>(
    `SELECT e.session_id, e.seq, e.kind, e.created_at, s.cwd, s.title, t.text
     FROM ${from} CROSS JOIN sessions s ON s.id = e.session_id CROSS JOIN search_text t ON t.id = e.id
     ${where.length === 0 ? '' : `WHERE ${where.join(' AND ')}`} ORDER BY ${match === null ? 'e.id' : 'f.rowid'} DESC LIMIT ?`,
  ).iterate(...(match === null ? [] : [match]), ...(cwd === undefined ? [] : [cwd]), limit ?? -1);
}

/** SQLite takes some letters of few scripts for gaps; what a word falls into would be a phrase, of which the index does
 * not know. */
function isSplitWord(error: unknown): boolean {
  return error instanceof Error && error.message.includes('phrase queries are not supported');
}

/** Empties the index, which is then built anew from the events. */
function resetIndex({ db, sql }: Connection): void {
  db.transaction(() => {
    sql("INSERT INTO events_fts(events_fts) VALUES ('delete-all')").run();
    sql('DELETE FROM search_stale').run();
    sql('UPDATE search_state SET indexed_to = 0').run();
  }).immediate();
}

function indexSome({ sql }: Connection, maxEvents: number): boolean {
  const done = sql<{ readonly indexed_to: number }>('SELECT indexed_to FROM search_state').get()?.indexed_to ?? 0;
  if (sql('SELECT 1 FROM search_stale LIMIT 1').get() !== undefined) {
    sql('DELETE FROM events_fts WHERE rowid IN (SELECT id FROM search_stale)').run();
    sql(
      'INSERT INTO events_fts(rowid, text) SELECT id, text FROM search_text WHERE id IN (SELECT id FROM search_stale WHERE id <= ?)',
    ).run(done);
    sql('DELETE FROM search_stale').run();
  }
  const last =
    sql<{ readonly last: number | null }>(
      'SELECT max(id) AS last FROM (SELECT id FROM events WHERE id > ? ORDER BY id LIMIT ?)',
    ).get(done, maxEvents)?.last ?? null;
  if (last === null) return false;
  sql('INSERT INTO events_fts(rowid, text) SELECT id, text FROM search_text WHERE id > ? AND id <= ?').run(done, last);
  sql('UPDATE search_state SET indexed_to = ?').run(last);
  return sql('SELECT 1 FROM events WHERE id > ? LIMIT 1').get(last) !== undefined;
}
