import { hash } from 'node:crypto';
import { type Database, loadDriver } from './driver.js';
import { asStoreError } from './errors.js';
import { type ChainReport, eventChecksum, eventDigests, type HashedRow, verifyChain } from './hash-chain.js';

/** The record to be read, never written: for audit, statistics and questions in SQL. */
export interface Records {
  /** Throws a StoreError. */
  rows(sql: string, parameters?: readonly unknown[]): readonly unknown[];
  /** A question in the user's own words. Throws an Error for what is not one reading statement, and for what SQLite
   * does not understand. */
  ask(sql: string): Answer;
  verify(sessionId: string | null): ChainReport;
  close(): void;
}

/** Columns in order; each row an array of their values. */
export interface Answer {
  readonly columns: readonly string[];
  readonly rows: IterableIterator<readonly unknown[]>;
}

/** Opens a database that `openSqliteStore` has opened before (which makes, migrates and repairs it). `sha256(text)` can
 * be used in its SQL. */
export async function openRecords(file: string): Promise<Records> {
  const driver = await loadDriver();
  const db = attempt(file, () => {
    const opened = new driver(file, { readonly: true, timeout: 5000 });
    opened.pragma('query_only = ON');
    opened.function('sha256', { deterministic: true }, (text: unknown) =>
      typeof text === 'string' ? hash('sha256', text, 'hex') : null,
    );
    return opened;
  });
  return {
    rows: (sql, parameters = []) => attempt(file, () => db.prepare(sql).all(...parameters)),
    ask: (sql) => ask(db, sql),
    verify: (sessionId) => verifyChain(db, sessionId),
    close: () => {
      db.close();
    },
  };
}

function ask(db: Database, sql: string): Answer {
  if (!/^\s*(select|with|explain)\b/i.test(sql)) throw new Error('only SELECT, WITH and EXPLAIN are answered');
  const statement = db.prepare<[], unknown[]>(sql);
  if (!statement.readonly || !statement.reader) throw new Error('the statement would change something');
  return { columns: statement.columns().map((column) => column.name), rows: statement.raw().iterate() };
}

function attempt<T>(file: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw asStoreError(error, file);
  }
}

interface StoredRow extends HashedRow {
  readonly id: number;
  readonly session_id: string;
  readonly redacted: string | null;
}

/** Puts `content` and `data` in the place of an event and of its copies in forks, with the digests of what stood there,
 * so that the chain stays whole; drops file contents that only it referred to, its words from the index, and what is
 * left of all that in the file. Gives the number of events changed. Throws a StoreError, `busy` where another program
 * uses the database. */
export async function redactEvent(
  file: string,
  sessionId: string,
  seq: number,
  replacement: { readonly content: string | null; readonly data: unknown },
): Promise<number> {
  const driver = await loadDriver();
  try {
    const db = new driver(file, { timeout: 5000 });
    try {
      db.pragma('secure_delete = ON');
      const changed = db
        .transaction(() =>
          replaceAll(
            db,
            sessionId,
            seq,
            replacement.content,
            replacement.data === null ? null : JSON.stringify(replacement.data),
          ),
        )
        .immediate();
      db.exec("INSERT INTO events_fts(events_fts) VALUES ('optimize'); VACUUM");
      db.pragma('wal_checkpoint(TRUNCATE)');
      return changed;
    } finally {
      db.close();
    }
  } catch (error) {
    throw asStoreError(error, file);
  }
}

function replaceAll(
  db: Database,
  sessionId: string,
  seq: number,
  content: string | null,
  dataJson: string | null,
): number {
  const rows = db
    .prepare<
      [string, number],
      StoredRow
    >(`SELECT id, session_id, seq, kind, content, data_json, created_at, redacted FROM events e
    WHERE EXISTS (SELECT 1 FROM events x WHERE x.session_id = ? AND x.seq = ? AND (x.id = e.id OR x.hash = e.hash))`)
    .all(sessionId, seq);
  for (const row of rows) {
    const next = { ...row, content, data_json: dataJson };
    db.prepare('UPDATE events SET content = ?, data_json = ?, crc32 = ?, redacted = ? WHERE id = ?').run(
      content,
      dataJson,
      eventChecksum(next),
      row.redacted ?? JSON.stringify(eventDigests(row)),
      row.id,
    );
    db.prepare('DELETE FROM events_fts WHERE rowid = ?').run(row.id);
    db.prepare(`DELETE FROM blob_refs WHERE session_id = ? AND sha256 NOT IN
      (SELECT sha256 FROM v_files WHERE session_id = ? AND what <> 'seen' AND sha256 IS NOT NULL UNION SELECT sha256_before FROM v_files WHERE session_id = ? AND sha256_before IS NOT NULL)`).run(
      row.session_id,
      row.session_id,
      row.session_id,
    );
  }
  return rows.length;
}

/** Gives the room of what was deleted back to the disk and wipes it from the file. Throws a StoreError, `busy` where
 * another program uses the database. */
export async function vacuumDatabase(file: string): Promise<void> {
  const driver = await loadDriver();
  try {
    const db = new driver(file, { timeout: 5000 });
    try {
      db.exec('VACUUM');
      db.pragma('wal_checkpoint(TRUNCATE)');
    } finally {
      db.close();
    }
  } catch (error) {
    throw asStoreError(error, file);
  }
}
