import type { SearchFilters } from '../core/files/search-filters.js';
import type { SearchHit } from '../core/store.js';
import type { Connection } from './connection.js';
import { sqliteCode } from './errors.js';
import { foundAs, foundKinds, isFound } from './migrations.js';
import { resetIndex } from './search-index.js';
import { holdsPhrases, matchesSearch, type SearchQuery, snippetOf } from './search-query.js';

interface HitRow {
  readonly session_id: string;
  readonly seq: number;
  readonly kind: string;
  readonly created_at: number;
  readonly cwd: string;
  readonly title: string | null;
  readonly text: string | null;
  /** The owner of a session that was pulled from another person. */
  readonly owner?: string | null;
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
export const broughtIn = `SELECT session_id FROM events WHERE ${isFound} AND ${foundAs} = '${foundKinds['import']}'`;

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
    sql: `SELECT e.id FROM events e WHERE e.session_id IN (SELECT s.id FROM sessions s WHERE ${sessions.map((one) => one.sql).join(' AND ')})`,
    values: sessions.flatMap(({ values }) => values),
  };
  let [few, fewest]: [Condition | null, number] = [null, fewEvents];
  for (const ids of sessions.length === 0 ? events : [ofSessions, ...events]) {
    const counted = sql<{ readonly count: number }>(`SELECT count(*) AS count FROM (${ids.sql} LIMIT ?)`);
    const count = counted.get([...ids.values, fewest])?.count ?? 0;
    if (count === 0) return 'none';
    if (count < fewest) [few, fewest] = [ids, count];
  }
  return few;
}

const oneOf = (values: readonly string[], sql: string): readonly Condition[] =>
  values.length === 0 ? [] : [{ sql: `(${values.map(() => sql).join(' OR ')})`, values }];

/** Questions for ids that an index answers alone; they let through all that the filters do, and at most the rest of an
 * hour more. */
function indexed({ tools, kinds, after, before }: SearchFilters): readonly Condition[] {
  const [from, to] = [after ?? 0, before ?? Number.MAX_SAFE_INTEGER];
  const hours = [from, to].map((ms) => Math.floor(ms / 3_600_000));
  const ids = (condition: string): string => `SELECT id FROM events WHERE ${isFound} AND ${condition}`;
  const limits = "SELECT id FROM events WHERE kind = 'limit' AND created_at BETWEEN ? AND ?";
  const named = (patterns: readonly string[]): Condition => {
    const fits = patterns.map(() => 'name GLOB ?').join(' OR ');
    return { sql: ids(`${foundAs} IN (SELECT name FROM (${allNames}) WHERE ${fits})`), values: patterns };
  };
  const short = kinds.flatMap((kind) => (foundKinds[kind] === undefined ? [] : [`${foundKinds[kind]}*`]));
  return [
    ...(after === null && before === null
      ? []
      : [
          {
            sql: `${ids(`${foundAs} IN (${allNames}) AND ${hour} BETWEEN ? AND ?`)} UNION ALL ${limits}`,
            values: [...hours, from, to],
          },
        ]),
    ...(short.length === kinds.length && kinds.length > 0 ? [named(short)] : []),
    ...(kinds.length > 0 && kinds.every((kind) => kind === 'limit') ? [{ sql: limits, values: [from, to] }] : []),
    ...(tools.length === 0
      ? []
      : [
          named(
            tools.flatMap((tool) =>
              [foundKinds['tool_call'], foundKinds['tool_result']].map((kind) => `${kind}${tool}`),
            ),
          ),
        ]),
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
