import { hash } from 'node:crypto';
import { loadDriver, type Database } from './driver.js';
import { asStoreError } from './store-error.js';
import { verifyChain, type ChainReport } from './verify-chain.js';

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
