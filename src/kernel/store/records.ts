import { hash } from 'node:crypto';
import type { Event } from '../core/event.js';
import type { SqlAnswer } from '../core/store.js';
import type { Connection } from './connection.js';
import type { Database, Driver } from './driver.js';
import { dataJson } from './event-rows.js';
import { eventChecksum, eventDigests, type HashedRow } from './hash-chain.js';

export interface StoredRow extends HashedRow {
  readonly id: number;
  readonly session_id: string;
  readonly redacted: string | null;
}

interface Redaction {
  readonly sessionId: string;
  readonly seq: number;
  readonly replacement: Pick<Event, 'content' | 'data'>;
}

/** Replaces the texts of events and of their copies in forks, and keeps the
 * digests of the old texts, so that the chain stays whole. Removes file
 * contents that only these events referred to, their words from the index, and
 * what is left of all that in the file. Returns the number of events changed. */
export function redactEvents(connection: Connection, redactions: readonly Redaction[]): number {
  const { db, transact } = connection;
  let changed = 0;
  db.pragma('secure_delete = ON');
  transact(() => {
    for (const redaction of redactions) changed += replaceTexts(connection, redaction);
  });
  compactDatabase(connection);
  return changed;
}

function replaceTexts(connection: Connection, { sessionId, seq, replacement }: Redaction): number {
  const { sql } = connection;
  const content = replacement.content;
  const data = dataJson(replacement.data);
  const rows = sql<StoredRow>(
    `SELECT id, session_id, seq, kind, content, data_json, created_at, redacted FROM events e
     WHERE EXISTS (
       SELECT 1 FROM events x WHERE x.session_id = ? AND x.seq = ? AND (x.id = e.id OR x.hash = e.hash))`,
  ).all(sessionId, seq);
  for (const row of rows) {
    replaceRow(connection, row, { content, data_json: data });
    sql(
      `DELETE FROM blob_refs WHERE session_id = ? AND sha256 NOT IN (
         SELECT sha256 FROM v_files WHERE session_id = ? AND what <> 'seen' AND sha256 IS NOT NULL
         UNION SELECT sha256_before FROM v_files WHERE session_id = ? AND sha256_before IS NOT NULL
         UNION SELECT sha256 FROM v_attachments WHERE session_id = ? AND sha256 IS NOT NULL)`,
    ).run(row.session_id, row.session_id, row.session_id, row.session_id);
  }
  return rows.length;
}

/** Gives the room of what was deleted back to the disk and wipes it from the file, its words from the index, too. */
export function compactDatabase({ db }: Connection): void {
  const indexes = db
    .prepare<[], string>("SELECT name FROM sqlite_schema WHERE type = 'table' AND name IN ('events_fts', 'notes_fts')")
    .pluck();
  for (const index of indexes.all()) db.exec(`INSERT INTO ${index}(${index}) VALUES ('optimize')`);
  db.exec('VACUUM');
  db.pragma('wal_checkpoint(TRUNCATE)');
}

/** Longest wait for another process's lock. */
const questionWaitMs = 5000;

/** Opens a second, reading connection for questions in the user's own words;
 * `sha256(text)` can be used in them. */
export function openReader(driver: Driver, file: string): Database {
  const db = new driver(file, { readonly: true, timeout: questionWaitMs });
  db.pragma('query_only = ON');
  db.function('sha256', { deterministic: true }, (text: unknown) =>
    typeof text === 'string' ? hash('sha256', text, 'hex') : null,
  );
  return db;
}

/** Throws an Error for what is not one reading statement, and for what SQLite
 * does not understand. */
export function answer(db: Database, question: string, parameters: readonly unknown[]): SqlAnswer {
  if (!/^\s*(select|with|explain)\b/i.test(question)) throw new Error('only SELECT, WITH and EXPLAIN are answered');
  const statement = db.prepare<unknown[], unknown[]>(question);
  if (!statement.readonly || !statement.reader) throw new Error('the statement would change data');
  return {
    columns: statement.columns().map((column) => column.name),
    rows: asyncRows(statement.raw().iterate(parameters)),
  };
}

async function* asyncRows(rows: Iterable<readonly unknown[]>): AsyncGenerator<readonly unknown[]> {
  yield* rows;
}

/** Gives an event other texts, takes it out of the search index and the totals, and keeps the digests of its first texts, which the
 * chain is made of. */
export function replaceRow(
  { sql }: Connection,
  row: StoredRow,
  { content, data_json }: Pick<HashedRow, 'content' | 'data_json'>,
): void {
  sql('UPDATE events SET content = ?, data_json = ?, crc32 = ?, redacted = ? WHERE id = ?').run(
    content,
    data_json,
    eventChecksum({ ...row, content, data_json }),
    row.redacted ?? JSON.stringify(eventDigests(row)),
    row.id,
  );
  sql('DELETE FROM events_fts WHERE rowid = ?').run(row.id);
  // Totals hold names of tools and models, and codes of errors. They are added up again.
  for (const table of ['call_totals', 'request_totals'])
    sql(
      `DELETE FROM ${table} WHERE session_id IN (SELECT session_id FROM totals_queue WHERE session_id = ? AND whole)`,
    ).run(row.session_id);
}
