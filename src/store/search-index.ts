import type { SearchHit } from '../core/store.js';
import type { Connection } from './connection.js';
import { sqliteCode } from './errors.js';

interface HitRow {
  readonly session_id: string;
  readonly seq: number;
  readonly kind: string;
  readonly created_at: number;
  readonly cwd: string;
  readonly title: string | null;
  readonly text: string | null;
}

/** Indexes at most `maxEvents` more events; returns true when more are left. Indexing is never part of an event's
 * commit, so that a commit costs no more. The next run indexes what a kill left out. */
export function indexPending(connection: Connection, maxEvents: number): boolean {
  try {
    return connection.db.transaction(() => indexSome(connection, maxEvents)).immediate();
  } catch (error) {
    if (sqliteCode(error) !== 'SQLITE_CORRUPT_VTAB') throw error;
    resetIndex(connection);
    return true;
  }
}

/** Finds the newest events that hold all terms, in the sessions of `cwd` when it is given. Returns null when the index
 * was damaged: it is empty then. */
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

/** The rows to search, newest first. `match` null: all events. `limit` null: no limit. */
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
     ${where.length === 0 ? '' : `WHERE ${where.join(' AND ')}`}
     ORDER BY ${match === null ? 'e.id' : 'f.rowid'} DESC LIMIT ?`,
  ).iterate(...(match === null ? [] : [match]), ...(cwd === undefined ? [] : [cwd]), limit ?? -1);
}

/** True for SQLite's error about a word that it splits: it takes some letters of few scripts for gaps, and the parts
 * would be a phrase, which this index does not support. */
function isSplitWord(error: unknown): boolean {
  return error instanceof Error && error.message.includes('phrase queries are not supported');
}

/** Empties the index; it is rebuilt from the events. */
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
      `INSERT INTO events_fts(rowid, text) SELECT id, text FROM search_text
       WHERE id IN (SELECT id FROM search_stale WHERE id <= ?)`,
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

/** A search: words that must all occur, "phrases", and beginnings* of words. */
export interface SearchQuery {
  /** The words of all terms, for FTS5's MATCH. */
  readonly match: string;
  /** Finds each of the terms in a folded text. */
  readonly patterns: readonly RegExp[];
  /** The patterns of several words, whose order the index does not know. */
  readonly phrases: readonly RegExp[];
}

const letters = '\\p{L}\\p{N}';
/** Combining accents; the index ignores them. Source: SQLite, fts5_unicode2.c, `sqlite3Fts5UnicodeIsdiacritic`. */
const accents = '\\u0300-\\u0331';
const accent = new RegExp(`[${accents}]`, 'g');
const maxSnippet = 160;
const leading = 50;

/** Returns null for a text of punctuation alone. Letter case and accents do not count. */
export function parseSearch(text: string): SearchQuery | null {
  const terms = [...text.matchAll(/"([^"]*)"?|(\S+)/g)]
    .map((found) => ({
      words:
        fold(found[1] ?? found[2] ?? '')
          .replace(accent, '')
          .match(new RegExp(`[${letters}]+`, 'gu')) ?? [],
      open: found[2]?.endsWith('*') === true,
    }))
    .filter((term) => term.words.length > 0)
    .map(({ words, open }) => ({
      match: words.map((word) => `"${word}"`).join(' ') + (open ? ' *' : ''),
      pattern: termPattern(words, open),
      isPhrase: words.length > 1,
    }));
  if (terms.length === 0) return null;
  return {
    match: terms.map(({ match }) => match).join(' '),
    patterns: terms.map(({ pattern }) => pattern),
    phrases: terms.filter(({ isPhrase }) => isPhrase).map(({ pattern }) => pattern),
  };
}

function termPattern(words: readonly string[], open: boolean): RegExp {
  const spelled = words.map((word) => [...word].map((letter) => `${letter}[${accents}]*`).join(''));
  return new RegExp(
    `(?<![${letters}])${spelled.join(`[^${letters}]+`)}${open ? '' : `(?![${letters}${accents}])`}`,
    'gu',
  );
}

/** True when all terms occur. */
export function matchesSearch({ patterns }: SearchQuery, text: string): boolean {
  return areIn(patterns, text);
}

/** True when the text holds all phrases; it is known to hold their words. */
function holdsPhrases({ phrases }: SearchQuery, text: string): boolean {
  return phrases.length === 0 || areIn(phrases, text);
}

function areIn(patterns: readonly RegExp[], text: string): boolean {
  const folded = fold(text);
  return patterns.every((pattern) => folded.search(pattern) >= 0);
}

/** Returns the text around the first hit, on one line, with the places of all terms in it. */
export function snippetOf(
  { patterns }: SearchQuery,
  text: string,
): { readonly snippet: string; readonly matches: readonly (readonly [number, number])[] } {
  const folded = fold(text);
  const first = Math.min(...patterns.map((pattern) => folded.search(pattern)).filter((at) => at >= 0), text.length);
  const start = first <= leading || first === text.length ? 0 : first - leading;
  const cut = text
    .slice(start, start + maxSnippet)
    .toWellFormed()
    .replace(/\s+/g, ' ')
    .trim();
  const snippet = `${start > 0 ? '…' : ''}${cut}${start + maxSnippet < text.length ? '…' : ''}`;
  const shown = fold(snippet);
  const matches = patterns.flatMap((pattern) =>
    [...shown.matchAll(pattern)].map((found): readonly [number, number] => [
      found.index,
      found.index + found[0].length,
    ]),
  );
  return { snippet, matches: matches.sort((one, other) => one[0] - other[0]) };
}

/** Returns small letters without accents, in the same length, so that places in it are places in `text`. */
function fold(text: string): string {
  return text.replace(/[A-Z\x80-\uffff]/g, (char) => {
    const plain = char.normalize('NFD').charAt(0).toLowerCase();
    return plain.length === 1 ? plain : char;
  });
}
