import type { Event } from '../core/event.js';
import { isRecord } from '../core/json.js';
import { isLong, largeJson } from '../core/envelope.js';
import type { Synced } from '../core/store.js';
import { wellFormed, wellFormedDeep } from '../core/text.js';
import type { Connection } from './connection.js';
import type { Database } from './driver.js';
import { chainLink, eventChecksum, eventDigests, type HashedRow } from './event-hash.js';
import { sqliteCode, StoreError } from './store-error.js';
import { packedUsage } from './usage-data.js';

/** Stores one event in one commit, and with one that is synced at once the session's time.
 * An event that is stored already, byte for byte, counts as stored (a commit may succeed and its answer be lost).
 * Throws a StoreError `seq_taken` where another event has this `seq`, `no_session` where the session has no row. */
export function insertEvent(
  { db, sql, transact, chainEnd }: Connection,
  sessionId: string,
  event: Event,
  synced: Synced,
): void {
  const row = rowOfEvent(event);
  const digests = eventDigests(row);
  const isNext = chainEnd.sessionId === sessionId && chainEnd.seq === row.seq - 1;
  let link: Buffer | null = null;
  const insert = (): void => {
    const before = isNext
      ? chainEnd.link
      : (sql<{ readonly hash: Buffer | null }>(
          'SELECT hash FROM events WHERE session_id = ? AND seq < ? ORDER BY seq DESC LIMIT 1',
        ).get(sessionId, row.seq)?.hash ?? null);
    link = chainLink(before, row, digests);
    const insertRow = (): unknown =>
      sql(
        'INSERT INTO events (session_id, seq, kind, content, data_json, created_at, crc32, hash) VALUES (?, ?, ?, ?, CAST(? AS TEXT), ?, ?, ?)',
      ).run(sessionId, row.seq, row.kind, row.content, row.data_json, row.created_at, eventChecksum(row), link);
    if (row.data_json instanceof Uint8Array) unchecked(db, insertRow);
    else insertRow();
    if (synced === 'now') sql('UPDATE sessions SET updated_at = ? WHERE id = ?').run(row.created_at, sessionId);
  };
  try {
    // A statement alone is a transaction of its own.
    if (isNext && synced === 'later') insert();
    else transact(insert);
    Object.assign(chainEnd, { sessionId, seq: row.seq, link });
  } catch (error) {
    const code = sqliteCode(error);
    if (code === 'SQLITE_CONSTRAINT_FOREIGNKEY') throw noSession(sessionId, error);
    if (code !== 'SQLITE_CONSTRAINT_UNIQUE') throw error;
    if (!isStored({ sql }, sessionId, row)) throw seqTaken(sessionId, row.seq, error);
  }
}

/** Without SQLite's look at the JSON, which takes three more copies of a large one; it is ours. Source: sqlite.org,
 * "PRAGMA ignore_check_constraints". */
function unchecked(db: Database, work: () => unknown): void {
  db.exec('PRAGMA ignore_check_constraints = ON');
  try {
    work();
  } finally {
    db.exec('PRAGMA ignore_check_constraints = OFF');
  }
}

/** `data` as it is stored: JSON text without lone surrogates, or null. */
export function dataJson(data: unknown): string | null {
  if (data === null || data === undefined) return null;
  return JSON.stringify(wellFormedDeep(data));
}

/** Data with a very long text, as bytes; null for all other. */
function largeData(data: unknown): Uint8Array | null {
  return isRecord(data) && Object.values(data).some(isLong) ? largeJson(wellFormedDeep(data)) : null;
}

/** Another event has this place in the session. */
export function seqTaken(sessionId: string, seq: number, cause?: unknown): StoreError {
  return new StoreError(
    'seq_taken',
    `Another process has written event ${seq} of session ${sessionId}`,
    'Resume the session with --fork to go on from here in a session of its own.',
    cause,
  );
}

/** The session has no row. */
export function noSession(sessionId: string, cause?: unknown): StoreError {
  return new StoreError('no_session', `There is no session ${sessionId}`, 'Run: agent sessions list', cause);
}

function rowOfEvent(event: Event): HashedRow {
  return {
    seq: event.seq,
    kind: wellFormed(event.kind),
    content: event.content === null ? null : wellFormed(event.content),
    data_json:
      largeData(event.data) ?? dataJson(event.kind === 'usage' ? packedUsage(event.seq, event.data) : event.data),
    created_at: event.createdAt,
  };
}

function isStored({ sql }: Pick<Connection, 'sql'>, sessionId: string, row: HashedRow): boolean {
  const same = sql(
    'SELECT 1 FROM events WHERE session_id = ? AND seq = ? AND kind = ? AND content IS ? AND data_json IS CAST(? AS TEXT) AND created_at = ?',
  ).get(sessionId, row.seq, row.kind, row.content, row.data_json, row.created_at);
  return same !== undefined;
}
