import { parseJson } from '../core/json.js';
import { existsSync, realpathSync } from 'node:fs';
import { readdir, rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { isRecord } from '../core/json.js';
import type { KeptMessage, QueuedMessage } from '../core/session-port.js';
import {
  type DirectoryMove,
  type LeaseHolder,
  maxMatches,
  type SessionChange,
  type SessionEnd,
  type SessionEnds,
  type SessionMatch,
  type SessionRow,
  type SessionScope,
  type SessionSummary,
} from '../core/store.js';
import { firstLine, nearest, utf8Bytes, wellFormed } from '../core/text.js';
import { readBoundedText } from '../disk/bounded-file.js';
import type { Connection } from './connection.js';
import { sqliteCode, StoreError } from './errors.js';
import { noSession, rowLimit } from './event-rows.js';
import { isAlive } from './lease.js';
import { isOriginal } from './migrations.js';

export interface StoredSession {
  readonly id: string;
  readonly parent_id: string | null;
  readonly cwd: string;
  readonly title: string | null;
  readonly provider: string | null;
  readonly model: string | null;
  readonly created_at: number;
  readonly updated_at: number;
  readonly dir_id: string | null;
  readonly api: string | null;
  readonly base_url: string | null;
  readonly moves: string | null;
  readonly kind: string | null;
  readonly parent_call_id: string | null;
}
interface StoredSummary extends StoredSession {
  readonly prompt: string | null;
  readonly events: number;
  readonly cost_usd: number | null;
}

/** Longest `prompt` of a summary, in UTF-16 units. */
const maxPrompt = 200;

const columns =
  'id, parent_id, cwd, title, provider, model, created_at, updated_at, dir_id, api, base_url, moves, ' +
  'kind, parent_call_id';
/** Their parents stand for them. */
const noAgents = "s.kind IS NOT 'agent'";
/** Event ids show which session was written to last: the clock may have been set back. */
const lastEvent = '(SELECT e.id FROM events e WHERE e.session_id = s.id ORDER BY e.seq DESC LIMIT 1)';
const newestByNumber = 'ORDER BY last_event DESC NULLS LAST, updated_at DESC, id DESC';
/** Sessions of other machines come late: what is pulled last need not be the newest. */
const newestByClock = 'ORDER BY updated_at DESC, last_event DESC, id DESC';

function hasTable({ sql }: Connection, name: 'task_runs' | 'sync_state'): boolean {
  return sql('SELECT 1 FROM sqlite_schema WHERE name = ?').get(name) !== undefined;
}

function newestOrder(connection: Connection): string {
  return hasTable(connection, 'sync_state') ? newestByClock : newestByNumber;
}

/** Throws a StoreError `exists` when a different session has the id. */
export function insertSession({ sql }: Connection, row: SessionRow): void {
  try {
    sql(`INSERT INTO sessions (${columns}) VALUES (${columns.replaceAll(/\w+/g, '?')})`).run(sessionValues(row));
  } catch (error) {
    if (sqliteCode(error) !== 'SQLITE_CONSTRAINT_PRIMARYKEY') throw error;
    const same = sql(
      `SELECT 1 FROM sessions WHERE ${columns
        .split(', ')
        .map((name) => `${name} IS ?`)
        .join(' AND ')}`,
    ).get(sessionValues(row));
    if (same === undefined) throw sessionExists(row.id, error);
  }
}

/** A commit that syncs everything before it. It has to change a page: without a change there is no sync. */
export function touchSession({ sql }: Connection, id: string, nowMs: number): void {
  sql('UPDATE sessions SET updated_at = max(?, updated_at + 1) WHERE id = ?').run(nowMs, id);
}

export function inUse(id: string, holder: LeaseHolder): StoreError {
  return new StoreError(
    'in_use',
    `Session ${id} is in use by process ${holder.pid} on ${holder.host}`,
    'Exit that program first.',
  );
}

export function sessionExists(id: string, cause?: unknown): StoreError {
  return new StoreError('exists', `Session ${id} already exists`, 'Run: agent sessions list', cause);
}

export function readSession({ sql }: Connection, id: string): SessionRow | null {
  const row = sql<StoredSession>(`SELECT ${columns} FROM sessions WHERE id = ?`).get(id);
  return row ? sessionOfRow(row) : null;
}

/** Sessions whose id starts with `prefix`, at most `max`. */
export function sessionsByPrefix({ sql }: Connection, prefix: string, max: number): readonly SessionRow[] {
  const rows = sql<StoredSession>(
    `SELECT ${columns} FROM sessions WHERE id >= ? AND id < ? ORDER BY id DESC LIMIT ?`,
  ).all(prefix, `${prefix}\u{10ffff}`, max);
  return rows.map(sessionOfRow);
}

/** Sessions with this title; case does not count. SQLite knows the case of ASCII only. */
export function sessionsByTitle({ sql }: Connection, title: string): readonly SessionRow[] {
  const isAscii = utf8Bytes(title) === title.length;
  const statement = sql<StoredSession>(
    `SELECT ${columns} FROM sessions
     WHERE ${isAscii ? 'title = ? COLLATE NOCASE' : 'title IS NOT NULL'} ORDER BY id DESC`,
  );
  const rows = isAscii
    ? statement.all(title)
    : statement.all().filter((row) => row.title?.toLowerCase() === title.toLowerCase());
  return rows.map(sessionOfRow);
}

/** The sessions written to last, newest first. */
export function recentSessions(connection: Connection, limit: number): readonly SessionRow[] {
  const rows = connection.sql<StoredSession>(
    `SELECT ${columns}, ${lastEvent} AS last_event FROM sessions s ${newestOrder(connection)} LIMIT ?`,
  );
  return rows.all(rowLimit(limit)).map(sessionOfRow);
}

/** Returns the session written to last of those with this directory, by its path or by its id, whatever its path was.
 * It leaves out runs of tasks that the user has not continued, and sessions of colleagues, which are continued only by
 * name. */
export function newestSession(connection: Connection, by: 'cwd' | 'dir_id', directory: string): SessionRow | null {
  const notATask = hasTable(connection, 'task_runs') ? notTheRunOfATask : '';
  const own = hasTable(connection, 'sync_state') ? oneOfTheirOwn : '';
  const row = connection
    .sql<StoredSession>(
      `SELECT ${columns}, ${lastEvent} AS last_event FROM sessions s
       WHERE s.${by} = ? AND s.kind IS NULL ${notATask} ${own} ${newestOrder(connection)} LIMIT 1`,
    )
    .get(directory);
  return row ? sessionOfRow(row) : null;
}

const notTheRunOfATask = `AND (s.id NOT IN (SELECT session_id FROM task_runs WHERE session_id IS NOT NULL)
  OR (SELECT count(*) FROM events WHERE session_id = s.id AND kind = 'user') > 1)`;

const oneOfTheirOwn = 'AND s.id NOT IN (SELECT session_id FROM sync_state WHERE owner IS NOT NULL)';

export function relocateSessions({ sql }: Connection, directoryId: string, from: string, to: string): void {
  const [before, now] = [wellFormed(from), wellFormed(to)];
  const lastSeq = 'coalesce((SELECT max(seq) FROM events WHERE session_id = sessions.id), 0)';
  const move = `json_object('from', ?, 'to', ?, 'last_seq', ${lastSeq})`;
  sql(`UPDATE sessions SET cwd = ?, moves = json_insert(iif(json_valid(moves), moves, '[]'), '$[#]', ${move})
      WHERE dir_id = ? AND cwd = ?`).run(now, before, now, directoryId, before);
}

export function countSessions({ sql }: Connection, cwd?: string, agentsToo = false): number {
  const statement = sql<{ readonly count: number }>(
    `SELECT count(*) AS count FROM sessions s ${buildWhere(cwd, agentsToo)}`,
  );
  return (cwd === undefined ? statement.get() : statement.get(cwd))?.count ?? 0;
}

function buildWhere(cwd: string | undefined, agentsToo: boolean): string {
  const conditions = [...(cwd === undefined ? [] : ['s.cwd = ?']), ...(agentsToo ? [] : [noAgents])];
  return conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`;
}

export function sessionsOfAgents({ sql }: Connection, parentId: string): readonly SessionRow[] {
  const statement = sql<StoredSession>(
    `SELECT ${columns} FROM sessions WHERE parent_id = ? AND kind = 'agent' ORDER BY created_at, id`,
  );
  return statement.all(parentId).map(sessionOfRow);
}

/** Removes a session, its agents' among them. */
export function removeSession({ sql }: Connection, id: string): void {
  sql("DELETE FROM sessions WHERE id = ? OR (parent_id = ? AND kind = 'agent')").run(id, id);
}

/** The ids of the sessions of a listing, newest first. */
export function listedIds(connection: Connection, limit: number, scope: SessionScope): readonly string[] {
  const { cwd, agentsToo = false, before } = scope;
  const conditions = [
    ...(cwd === undefined ? [] : ['s.cwd = ?']),
    ...(agentsToo ? [] : [noAgents]),
    ...(before === undefined ? [] : ['s.updated_at < ?']),
  ];
  const where = conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`;
  return connection
    .sql<{ readonly id: string }>(
      `SELECT s.id, ${lastEvent} AS last_event, s.updated_at FROM sessions s ${where} ${newestOrder(connection)} LIMIT ?`,
    )
    .all([...(cwd === undefined ? [] : [cwd]), ...(before === undefined ? [] : [before]), rowLimit(limit)])
    .map(({ id }) => id);
}

/** The ids of all sessions, in their order. */
export function sessionIds({ sql }: Connection): readonly string[] {
  return sql<{ readonly id: string }>('SELECT id FROM sessions ORDER BY id')
    .all()
    .map(({ id }) => id);
}

/** Summaries in the order of `ids`. Number of events and costs come from indexes alone. */
export function summariesOf({ sql }: Connection, ids: readonly string[]): readonly SessionSummary[] {
  const rows = sql<StoredSummary>(
    `WITH recent AS MATERIALIZED (
       SELECT ${columns.replaceAll(/\w+/g, 's.$&')}, given.key AS place FROM json_each(?) given JOIN sessions s ON s.id = given.value)
     SELECT recent.*,
       (SELECT substr(iif(json_extract(data_json, '$.command') IS NULL, content, '/' ||
           json_extract(data_json, '$.command.name') || ' ' || json_extract(data_json, '$.command.args')),
           1, ${maxPrompt * 2})
         FROM events WHERE session_id = recent.id AND kind = 'user'
           AND (data_json IS NULL OR json_extract(data_json, '$.note') IS NOT 1) ORDER BY seq LIMIT 1) AS prompt,
       (SELECT count(*) FROM events WHERE session_id = recent.id) AS events,
       (SELECT sum(cost) FROM (${costsIn('usage')} UNION ALL ${costsIn('agent_usage')})) AS cost_usd
     FROM recent ORDER BY place`,
  ).all(JSON.stringify(ids));
  return rows.map((row) => ({
    ...sessionOfRow(row),
    prompt: promptLine(row.prompt),
    events: row.events,
    costUsd: row.cost_usd,
  }));
}

function costsIn(kind: 'usage' | 'agent_usage'): string {
  const cost = "json_extract(data_json, '$.cost_usd')";
  return `SELECT ${cost} AS cost FROM events e JOIN sessions s ON s.id = e.session_id
    WHERE e.session_id = recent.id AND e.kind = '${kind}' AND ${cost} IS NOT NULL AND ${isOriginal}`;
}

/** The first line of a prompt, cut for a listing. */
export function promptLine(prompt: string | null): string | null {
  return prompt === null ? null : firstLine(prompt, maxPrompt);
}

/** Throws a StoreError `no_session`. */
export function updateSession({ sql }: Connection, id: string, change: SessionChange): void {
  const { title = null, provider = null, model = null, directoryId = null, api = null, baseUrl = null } = change;
  const { changes } =
    sql(`UPDATE sessions SET title = coalesce(?, title), provider = coalesce(?, provider), model = coalesce(?, model),
      dir_id = coalesce(?, dir_id), api = nullif(coalesce(?, api), ''), base_url = nullif(coalesce(?, base_url), '')
      WHERE id = ?`).run(title === null ? null : wellFormed(title), provider, model, directoryId, api, baseUrl, id);
  if (changes === 0) throw noSession(id);
}

/** Makes a session that starts with copies of the first `uptoSeq` events of `parentId`, in one transaction. */
export function forkSession(connection: Connection, parentId: string, row: SessionRow, uptoSeq?: number): void {
  const { db, sql } = connection;
  db.transaction(() => {
    if (readSession(connection, parentId) === null) throw noSession(parentId);
    if (readSession(connection, row.id) !== null) throw sessionExists(row.id);
    insertSession(connection, { ...row, parentId });
    sql(`INSERT INTO events (session_id, seq, kind, content, data_json, created_at, crc32, hash, redacted)
         SELECT ?, seq, kind, content, data_json, created_at, crc32, hash, redacted
         FROM events WHERE session_id = ? AND seq <= ? ORDER BY seq`).run(
      row.id,
      parentId,
      uptoSeq ?? Number.MAX_SAFE_INTEGER,
    );
  }).immediate();
}

/** `row` in the order of the table's columns. */
export function sessionValues(row: SessionRow): readonly (string | number | null)[] {
  const texts = [row.id, row.parentId, row.cwd, row.title, row.provider, row.model].map((text) =>
    text === null ? null : wellFormed(text),
  );
  const kind = row.parentCallId === undefined ? row.door : 'agent';
  const later = [row.directoryId, row.api, row.baseUrl, movesText(row.moves), kind, row.parentCallId].map(
    (text) => text ?? null,
  );
  return [...texts, row.createdAt, row.updatedAt, ...later];
}

function movesText(moves: readonly DirectoryMove[] | undefined): string | undefined {
  return moves && JSON.stringify(moves.map(({ from, to, lastSeq }) => ({ from, to, last_seq: lastSeq })));
}

function movesOf(text: string | null): readonly DirectoryMove[] {
  try {
    const list: unknown = parseJson(text ?? '[]');
    return Array.isArray(list) ? list.flatMap(moveOf) : [];
  } catch {
    return []; // damaged: as if it was not known
  }
}

function moveOf(item: unknown): readonly DirectoryMove[] {
  if (!isRecord(item)) return [];
  const { from, to, last_seq: lastSeq } = item;
  if (typeof from !== 'string' || typeof to !== 'string' || typeof lastSeq !== 'number') return [];
  return [{ from, to, lastSeq }];
}

export function sessionOfRow(row: StoredSession): SessionRow {
  const moves = movesOf(row.moves);
  return {
    id: row.id,
    parentId: row.parent_id,
    cwd: row.cwd,
    title: row.title,
    provider: row.provider,
    model: row.model,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    ...(row.dir_id === null ? {} : { directoryId: row.dir_id }),
    ...(row.api === null ? {} : { api: row.api }),
    ...(row.base_url === null ? {} : { baseUrl: row.base_url }),
    ...(moves.length === 0 ? {} : { moves }),
    ...(row.kind === 'agent' ? { parentCallId: row.parent_call_id ?? '' } : {}),
    ...(row.kind === 'mcp' ? { door: row.kind } : {}),
  };
}

/** The look-ups that finding a session by a typed text needs. */
export interface SessionIndex {
  byId(id: string): SessionRow | null;
  byPrefix(prefix: string, max: number): readonly SessionRow[];
  /** Case does not count. */
  byTitle(title: string): readonly SessionRow[];
  /** Newest first. */
  recent(max: number): readonly SessionRow[];
}

const maxCompared = 500;

/** An id wins over a prefix, a prefix over a title; among titles one in the same case wins. */
export function findSession(index: SessionIndex, text: string): SessionMatch {
  const wanted = text.trim();
  if (wanted === '') return { found: 'none', nearest: [] };
  const exact = index.byId(wanted);
  if (exact) return { found: 'one', session: exact };
  return (
    match(byStart(index, wanted)) ??
    match(byTitle(index, wanted)) ?? { found: 'none', nearest: suggestions(index, wanted) }
  );
}

/** Ids are in capitals, except those of earlier versions and other programs. */
function byStart(index: SessionIndex, text: string): readonly SessionRow[] {
  for (const start of [text.toUpperCase(), text.toLowerCase(), text]) {
    const found = index.byPrefix(start, maxMatches);
    if (found.length > 0) return found;
  }
  return [];
}

function match(sessions: readonly SessionRow[]): SessionMatch | null {
  const [session] = sessions;
  if (!session) return null;
  return sessions.length === 1 ? { found: 'one', session } : { found: 'many', sessions };
}

function byTitle(index: SessionIndex, title: string): readonly SessionRow[] {
  const found = index.byTitle(title);
  const same = found.filter((session) => session.title === title);
  return same.length > 0 ? same : found;
}

/** Titles that contain the text first, then titles and ids that nearly match. */
function suggestions(index: SessionIndex, text: string): readonly string[] {
  const recent = index.recent(maxCompared);
  const titles = recent.flatMap((session) => (session.title === null ? [] : [session.title]));
  const containing = titles.filter((title) => title.toLowerCase().includes(text.toLowerCase()));
  const idByStart = new Map(recent.map((session) => [session.id.slice(0, text.length).toLowerCase(), session.id]));
  const ids = nearest(text.toLowerCase(), [...idByStart.keys()]).flatMap((start) => idByStart.get(start) ?? []);
  return [...new Set([...containing, ...nearest(text, titles), ...ids])].slice(0, 3);
}

/** Replaces the waiting messages in one commit. A session that is not stored has no queue. */
export function writeQueue({ db, sql }: Connection, sessionId: string, messages: readonly QueuedMessage[]): void {
  db.transaction(() => {
    sql('DELETE FROM queue WHERE session_id = ?').run(sessionId);
    for (const [position, { text, when }] of messages.entries()) {
      sql('INSERT INTO queue (session_id, position, text, when_) SELECT id, ?, ?, ? FROM sessions WHERE id = ?').run(
        position,
        wellFormed(text),
        when,
        sessionId,
      );
    }
  }).immediate();
}

/** Oldest first. */
export function readQueue({ sql }: Connection, sessionId: string): readonly QueuedMessage[] {
  return sql<{ readonly text: string; readonly when_: 'steer' | 'after' }>(
    'SELECT text, when_ FROM queue WHERE session_id = ? ORDER BY position',
  )
    .all(sessionId)
    .map((row) => ({ text: row.text, when: row.when_ }));
}

/** Keeps a message, the same one once. Returns false for a session that is not stored. */
export function keepMessage(
  { db, sql }: Connection,
  sessionId: string,
  { id, text, source, when }: KeptMessage,
): boolean {
  return db
    .transaction(() => {
      if (sql('SELECT 1 FROM sessions WHERE id = ?').get(sessionId) === undefined) return false;
      sql('INSERT OR IGNORE INTO kept_messages (session_id, id, text, source, when_) VALUES (?, ?, ?, ?, ?)').run(
        sessionId,
        id,
        wellFormed(text),
        source,
        when,
      );
      return true;
    })
    .immediate();
}

/** Oldest first. */
export function readKeptMessages({ sql }: Connection, sessionId: string): readonly KeptMessage[] {
  return sql<Omit<KeptMessage, 'when'> & { readonly when_: KeptMessage['when'] }>(
    'SELECT id, text, source, when_ FROM kept_messages WHERE session_id = ? ORDER BY position',
  )
    .all(sessionId)
    .map(({ id, text, source, when_ }) => ({ id, text, source, when: when_ }));
}

export function dropMessage({ sql }: Connection, sessionId: string, id: string): void {
  sql('DELETE FROM kept_messages WHERE session_id = ? AND id = ?').run(sessionId, id);
}

/** The sessions written to last are remembered. */
const maxEnds = 100;
let drafts = 0;

/** The ends are stored outside the database, in `agent.db.marks` beside it: SQLite itself does not notice when its log
 * is cut or deleted, or when an older copy of the database is put back. A file that is missing or damaged has none.
 *
 * The file is renamed into place, not synced: after a power cut an older one may stand there, which says less and
 * nothing wrong. Two processes at once may lose one of their ends until the next turn. Nothing is written where it
 * cannot be. The thread is not blocked: on some file systems a rename over a file waits for the disk. */
export function sessionEnds(database: string): SessionEnds {
  return {
    list: () => readEnds(database),
    note: async (end) => {
      const others = readEnds(database).filter(({ sessionId }) => sessionId !== end.sessionId);
      await write(database, [end, ...others].slice(0, maxEnds));
    },
    forget: async (sessionId) => {
      const ends = readEnds(database);
      const rest = ends.filter((end) => end.sessionId !== sessionId);
      if (rest.length < ends.length) await write(database, rest);
    },
  };
}

function readEnds(database: string): readonly SessionEnd[] {
  try {
    const stored: unknown = parseJson(
      readBoundedText(endsFile(database), { maxBytes: 1_048_576, longer: 'refuse', links: 'follow' }) ?? '[]',
    );
    return Array.isArray(stored) ? stored.flatMap(endOf) : [];
  } catch {
    return [];
  }
}

async function write(database: string, ends: readonly SessionEnd[]): Promise<void> {
  const file = endsFile(database);
  const draft = `${file}.${process.pid}-${++drafts}`;
  try {
    await writeFile(draft, JSON.stringify(ends.map(({ sessionId, seq, cwd }) => [sessionId, seq, cwd])), {
      mode: 0o600,
    });
    await rename(draft, file);
    await removeAbandoned(file);
  } catch {
    await rm(draft, { force: true }).catch(() => undefined);
  }
}

/** Removes drafts of processes that were killed before they could rename them. */
async function removeAbandoned(file: string): Promise<void> {
  const start = `${basename(file)}.`;
  for (const name of await readdir(dirname(file))) {
    const pid = name.startsWith(start)
      ? Number(/^\d+(?=-\d+$)/.exec(name.slice(start.length))?.[0] ?? Number.NaN)
      : Number.NaN;
    if (!Number.isNaN(pid) && pid !== process.pid && !isAlive(pid))
      await rm(join(dirname(file), name), { force: true });
  }
}

/** Follows a link, as the store does. */
function endsFile(database: string): string {
  return `${existsSync(database) ? realpathSync(database) : database}.marks`;
}

function endOf(stored: unknown): readonly SessionEnd[] {
  if (!Array.isArray(stored)) return [];
  const [sessionId, seq, cwd] = stored as readonly unknown[];
  return typeof sessionId === 'string' && typeof seq === 'number' && typeof cwd === 'string'
    ? [{ sessionId, seq, cwd }]
    : [];
}
