import { smallestOf } from '../core/lists.js';
import { isFiltered, type SearchFilters } from '../core/files/search-filters.js';
import type { SearchHit } from '../core/store.js';
import type { Connection } from './connection.js';
import { sqliteCode } from './errors.js';
import { foundAs, foundKinds, isFound } from './migrations.js';

interface HitRow {
  readonly session_id: string;
  readonly seq: number;
  readonly kind: string;
  readonly created_at: number;
  readonly cwd: string;
  readonly title: string | null;
  readonly text: string | null;
  /** Of a session that was pulled from somebody else. */
  readonly owner?: string | null;
}

/** Indexes at most `maxEvents` more events; returns true when more are left.
 * Indexing is never part of an event's commit, so that a commit costs no more.
 * The next run indexes what a kill left out. */
export function indexPending(connection: Connection, maxEvents: number): boolean {
  try {
    return connection.db.transaction(() => indexSome(connection, maxEvents)).immediate();
  } catch (error) {
    if (sqliteCode(error) !== 'SQLITE_CORRUPT_VTAB') throw error;
    resetIndex(connection);
    return true;
  }
}

/** Finds the newest events that hold all terms and that the filters let through.
 * Returns null when the index was damaged: it is empty then. */
export function searchEvents(
  connection: Connection,
  query: SearchQuery,
  limit: number,
  filters: SearchFilters,
): readonly SearchHit[] | null {
  try {
    return findHits(connection, query, limit, filters);
  } catch (error) {
    if (sqliteCode(error) !== 'SQLITE_CORRUPT_VTAB') throw error;
    resetIndex(connection);
    return null;
  }
}

function findHits(
  connection: Connection,
  query: SearchQuery,
  limit: number,
  filters: SearchFilters,
): readonly SearchHit[] {
  const match = query.match === '' ? null : query.match;
  const few = rarest(connection, filters);
  if (few === 'none') return [];
  const by = { filters, few };
  try {
    const found = candidates(connection, { ...by, match, limit: query.phrases.length === 0 ? limit : null });
    return firstHits(found, query, limit, (text) => holdsPhrases(query, text));
  } catch (error) {
    if (!isSplitWord(error)) throw error;
    return firstHits(candidates(connection, { ...by, match: null, limit: null }), query, limit, (text) =>
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
      ...(typeof row.owner === 'string' ? { owner: row.owner } : {}),
      ...snippetOf(query, text),
    });
  }
  return hits;
}

/** The rows to search, newest first. `match` null: all events. `limit` null: no
 * limit. */
interface Candidates {
  readonly match: string | null;
  readonly filters: SearchFilters;
  /** Gives the ids of the only events to look at; null: of all. */
  readonly few: Condition | null;
  readonly limit: number | null;
}

function candidates({ sql }: Connection, { match, filters, few, limit }: Candidates): Iterable<HitRow> {
  const among = few === null ? [] : [{ ...few, sql: `${match === null ? 'e.id' : '+f.rowid'} IN (${few.sql})` }];
  const conditions = [...among, ...conditionsOf(filters)];
  // The order is that of the ids: no other index helps here.
  const events =
    match === null ? 'events e NOT INDEXED' : 'events_fts f CROSS JOIN events e NOT INDEXED ON e.id = f.rowid';
  const where = [...(match === null ? [] : ['events_fts MATCH ?']), ...conditions.map(({ sql: text }) => text)];
  const isSynced = sql("SELECT 1 FROM sqlite_schema WHERE name = 'sync_state'").get() !== undefined;
  const owner = isSynced ? ', (SELECT owner FROM sync_state WHERE session_id = s.id) AS owner' : '';
  return sql<HitRow>(
    `SELECT e.session_id, e.seq, e.kind, e.created_at, s.cwd, s.title, t.text${owner}
     FROM ${events} CROSS JOIN sessions s ON s.id = e.session_id CROSS JOIN search_text t ON t.id = e.id
     ${where.length === 0 ? '' : `WHERE ${where.join(' AND ')}`}
     ORDER BY ${match === null ? 'e.id' : 'f.rowid'} DESC LIMIT ?`,
  ).iterate([...(match === null ? [] : [match]), ...conditions.flatMap(({ values }) => values), limit ?? -1]);
}

interface Condition {
  readonly sql: string;
  readonly values: readonly (string | number)[];
}

const toolName = `CASE e.kind WHEN 'tool_call' THEN json_extract(e.data_json, '$.function.name')
  WHEN 'tool_result' THEN json_extract(e.data_json, '$.name') END`;
/** The expressions of the index `events_found`, and which events it knows. */
const hour = 'created_at / 3600000';
/** Each name once: the next one is a step in the index. */
const allNames = `WITH RECURSIVE names(name) AS (
  SELECT (SELECT min(${foundAs}) FROM events WHERE ${isFound})
  UNION ALL SELECT (SELECT min(${foundAs}) FROM events WHERE ${isFound} AND ${foundAs} > name)
    FROM names WHERE name IS NOT NULL) SELECT name FROM names`;
/** A call is on a file that its arguments name, a result on one that it changed. */
const callText = `CASE e.kind WHEN 'tool_call' THEN json_extract(e.data_json, '$.function.arguments')
  WHEN 'tool_result' THEN iif(e.id IN (SELECT id FROM events WHERE kind = 'tool_result'
    AND instr(data_json, '"changes"') > 0), json_extract(e.data_json, '$.changes'), NULL) END`;
/** An event of a session says that it was brought in, and from where. */
const broughtIn = `SELECT session_id FROM events WHERE ${isFound} AND ${foundAs} = '${foundKinds['import']}'`;

function cameFrom(from: readonly string[]): Condition {
  const others = from.filter((name) => name !== 'agent');
  const ours = from.includes('agent') ? [`s.id NOT IN (${broughtIn})`] : [];
  const named = others.map(() => `s.id IN (${broughtIn} AND json_extract(data_json, '$.tool') = ?)`);
  return { sql: `(${[...ours, ...named].join(' OR ')})`, values: others };
}

/** Up to so many events are looked at one by one; among more, the newest hits
 * come soon. */
const fewEvents = 10_000;

/** Finds the filter that lets the fewest events through, as a question for their ids, which an index answers. Null:
 * each lets many through. Without it a search that finds little would read the whole record. */
function rarest({ sql }: Connection, filters: SearchFilters): Condition | 'none' | null {
  const { sessions } = conditionsBySource(filters);
  const events = indexed(filters);
  const ofSessions = {
    sql: `e.session_id IN (SELECT s.id FROM sessions s WHERE ${sessions.map((one) => one.sql).join(' AND ')})`,
    values: sessions.flatMap(({ values }) => values),
  };
  let [few, fewest]: [Condition | null, number] = [null, fewEvents];
  for (const one of sessions.length === 0 ? events : [ofSessions, ...events]) {
    const ids = { sql: `SELECT e.id FROM events e WHERE ${one.sql}`, values: one.values };
    const counted = sql<{ readonly count: number }>(`SELECT count(*) AS count FROM (${ids.sql} LIMIT ?)`);
    const count = counted.get([...ids.values, fewest])?.count ?? 0;
    if (count === 0) return 'none';
    if (count < fewest) [few, fewest] = [ids, count];
  }
  return few;
}

const oneOf = (values: readonly string[], sql: string): readonly Condition[] =>
  values.length === 0 ? [] : [{ sql: `(${values.map(() => sql).join(' OR ')})`, values }];

/** Conditions that the index answers alone; they let through all that the
 * filters do, and at most the rest of an hour more. */
function indexed({ tools, kinds, after, before }: SearchFilters): readonly Condition[] {
  const hours = [after ?? 0, before ?? Number.MAX_SAFE_INTEGER].map((ms) => Math.floor(ms / 3_600_000));
  const named = (patterns: readonly string[]): readonly Condition[] => {
    const fits = patterns.map(() => 'name GLOB ?').join(' OR ');
    const sql = `${isFound} AND ${foundAs} IN (SELECT name FROM (${allNames}) WHERE ${fits})`;
    return patterns.length === 0 ? [] : [{ sql, values: patterns }];
  };
  return [
    ...(after === null && before === null
      ? []
      : [{ sql: `${isFound} AND ${foundAs} IN (${allNames}) AND ${hour} BETWEEN ? AND ?`, values: hours }]),
    ...named(kinds.map((kind) => `${foundKinds[kind] ?? ''}*`)),
    ...named(
      tools.flatMap((tool) => [foundKinds['tool_call'], foundKinds['tool_result']].map((kind) => `${kind}${tool}`)),
    ),
  ];
}

/** The conditions on the session of an event and on the event itself. */
function conditionsBySource(filters: SearchFilters): Readonly<Record<'sessions' | 'events', readonly Condition[]>> {
  const { tools, kinds, from, session, after, before, cwd } = filters;
  const named = 'substr(s.id, 1, length(?)) = ? COLLATE NOCASE OR instr(lower(s.title), lower(?)) > 0';
  const time = {
    sql: 'e.created_at >= ? AND e.created_at < ?',
    values: [after ?? 0, before ?? Number.MAX_SAFE_INTEGER],
  };
  return {
    sessions: [
      ...(cwd === null ? [] : [{ sql: 's.cwd = ?', values: [cwd] }]),
      ...(session === null ? [] : [{ sql: `(${named})`, values: [session, session, session] }]),
      ...(from.length === 0 ? [] : [cameFrom(from)]),
    ],
    events: [
      ...(after === null && before === null ? [] : [time]),
      ...oneOf(kinds, 'e.kind = ?'),
      ...oneOf(tools, `e.kind IN ('tool_call', 'tool_result') AND ${toolName} GLOB ?`),
    ],
  };
}

/** The conditions that each event must meet, cheap ones first. */
function conditionsOf(filters: SearchFilters): readonly Condition[] {
  const { sessions, events } = conditionsBySource(filters);
  // JSON escapes the quotes and backslashes of a path.
  const paths = filters.files.map((file) => JSON.stringify(file).slice(1, -1));
  return [...sessions, ...events, ...oneOf(paths, `instr(${callText}, ?) > 0`)];
}

/** True for SQLite's error about a word that it splits: it takes some letters of
 * few scripts for gaps, and the parts would be a phrase, which this index does
 * not support. */
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
  /** The terms; `open`: the last word is a beginning. */
  readonly terms: readonly { readonly words: readonly string[]; readonly open: boolean }[];
  /** Finds each of the terms in a folded text. */
  readonly patterns: readonly RegExp[];
  /** The patterns of several words, whose order the index does not know. */
  readonly phrases: readonly RegExp[];
}

const letters = '\\p{L}\\p{N}';
/** Combining accents; the index ignores them. Source: SQLite, fts5_unicode2.c,
 * `sqlite3Fts5UnicodeIsdiacritic`. */
const accents = '\\u0300-\\u0331';
const accent = new RegExp(`[${accents}]`, 'g');
const anyWord = new RegExp(`[${letters}]+`, 'gu');
const maxSnippet = 160;
const leading = 50;

/** The words of a search; with filters and no word it finds every event. Null
 * where there is nothing to look for. */
export function searchOf(text: string, filters: SearchFilters): SearchQuery | null {
  const anything: SearchQuery = {
    match: '',
    terms: [],
    patterns: [],
    phrases: [],
  };
  return parseSearch(text) ?? (text.trim() === '' && isFiltered(filters) ? anything : null);
}

/** Returns null for a text of punctuation alone. Letter case and accents do not
 * count. */
function parseSearch(text: string): SearchQuery | null {
  const terms = [...text.matchAll(/"([^"]*)"?|(\S+)/g)]
    .map((found) => ({ words: foldedWords(found[1] ?? found[2] ?? ''), open: found[2]?.endsWith('*') === true }))
    .filter((term) => term.words.length > 0)
    .map(({ words, open }) => ({
      words,
      open,
      match: words.map((word) => `"${word}"`).join(' ') + (open ? ' *' : ''),
      pattern: termPattern(words, open),
      isPhrase: words.length > 1,
    }));
  if (terms.length === 0) return null;
  return {
    match: terms.map(({ match }) => match).join(' '),
    terms,
    patterns: terms.map(({ pattern }) => pattern),
    phrases: terms.filter(({ isPhrase }) => isPhrase).map(({ pattern }) => pattern),
  };
}

/** The words of a text as a search compares them: small letters without accents. */
export function foldedWords(text: string): readonly string[] {
  return fold(text).replace(accent, '').match(anyWord) ?? [];
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
export function holdsPhrases({ phrases }: SearchQuery, text: string): boolean {
  return phrases.length === 0 || areIn(phrases, text);
}

function areIn(patterns: readonly RegExp[], text: string): boolean {
  const folded = fold(text);
  return patterns.every((pattern) => folded.search(pattern) >= 0);
}

/** Returns the text around the first hit, on one line, with the places of all
 * terms in it. */
export function snippetOf(
  { patterns }: SearchQuery,
  text: string,
): { readonly snippet: string; readonly matches: readonly (readonly [number, number])[] } {
  const folded = fold(text);
  const first = smallestOf(
    patterns.map((pattern) => folded.search(pattern)).filter((at) => at >= 0),
    text.length,
  );
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

/** Returns small letters without accents, in the same length, so that places in
 * it are places in `text`. */
function fold(text: string): string {
  return text.replace(/[A-Z\x80-\uffff]/g, (char) => {
    const plain = char.normalize('NFD').charAt(0).toLowerCase();
    return plain.length === 1 ? plain : char;
  });
}
