import { accessSync, constants, statSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Statement } from 'better-sqlite3';
import type { Synced } from '../core/store.js';
import { makeFilesPrivate, unwritable } from './database-file.js';
import { checkSqliteVersion, type Database, type Driver } from './driver.js';
import { asStoreError, isBusy, isDamage } from './errors.js';
import {
  migrate,
  refuseForeign,
  refuseForeignCode,
  refuseNewer,
  schemaVersion,
  type Announce,
  userVersion,
} from './migrations.js';

/** SQLite blocks the thread this long for a lock. Longer waits happen outside
 * SQLite and do not block. */
const blockingWaitMs = 50;
/** A small cache is enough: the kernel caches the pages too. */
const cacheKiB = 512;
const maxLogBytes = 4 * 1024 * 1024;
/** After so many pages SQLite copies the log into the database and writes over
 * it from its start. A commit that makes the log longer is synced together
 * with its new length, one that writes over what is there is not, which takes
 * half the time. Source: sqlite.org, "PRAGMA wal_autocheckpoint"; measured in
 * docs/decisions/0004. */
const logPages = 100;

/** An open database and its prepared statements. */
export interface Connection {
  readonly db: Database;
  /** The open file. After a repair another file has its name. */
  readonly inode: number;
  /** Prepares each statement once. */
  readonly sql: <Row = unknown>(text: string) => Statement<unknown[], Row>;
  /** Runs `work` in a writing transaction, or as a part of the one around it. */
  readonly transact: (work: () => void) => void;
  /** Says when later commits reach the disk: at once (the default), or with the
   * next one that is synced. A power cut may take the latter, a kill does not. */
  readonly sync: (when: Synced) => void;
  /** The event written last. The next event of its session takes its link from
   * here; a session has one writer. */
  readonly chainEnd: { sessionId: string; seq: number; link: Buffer | null };
}

/** Opens an existing database, migrates it, and reads enough of it to notice a
 * truncated file or a lost page. Throws a StoreError, SQLite's own error where
 * the file is damaged (`isDamage`) or locked (`isBusy`). `report` receives a message before migrations that take long. */
export function connect(driver: Driver, file: string, report?: Announce): Connection {
  assertWritable(file);
  refuseNewerLog(driver, file);
  return prepared(open(driver, file), file, report);
}

/** The two bytes of the header with the file format: 2 means a write-ahead log, which a database in memory does not
 * have. Source: sqlite.org/fileformat2.html, 1.3.3. */
const versionBytes = [18, 19];

/** Opens `bytes`, the database in `file`, in memory. */
export function connectImage(driver: Driver, bytes: Buffer, file: string): Connection {
  for (const at of versionBytes) bytes[at] = 1;
  return prepared(new driver(bytes), file);
}

function prepared(db: Database, file: string, report?: Announce): Connection {
  try {
    const { inode } = prepare(db, file, report);
    const transaction = db.transaction((work: () => void) => {
      work();
    });
    return {
      db,
      inode,
      chainEnd: { sessionId: '', seq: 0, link: null },
      sql: statementCache(db),
      transact: (work) => {
        transaction.immediate(work);
      },
      sync: syncSwitch(db),
    };
  } catch (error) {
    db.close();
    throw error;
  }
}

function prepare(db: Database, file: string, report?: Announce): { readonly inode: number } {
  const version = userVersion(db);
  refuseNewer(version, file);
  refuseForeign(db, version, file);
  db.pragma('trusted_schema = OFF');
  if (version > 0) refuseForeignCode(db, file);
  db.pragma('journal_mode = WAL');
  db.pragma('synchronous = FULL');
  db.pragma('foreign_keys = ON');
  db.pragma(`cache_size = -${cacheKiB}`);
  db.pragma(`wal_autocheckpoint = ${logPages}`);
  db.pragma(`journal_size_limit = ${maxLogBytes}`);
  checkSqliteVersion(db.prepare<[], string>('SELECT sqlite_version()').pluck().get() ?? '');
  if (version !== schemaVersion) {
    migrate(db, file, report);
    if (version > 0) refuseForeignCode(db, file);
  }
  db.prepare('SELECT (SELECT max(id) FROM events), (SELECT max(rowid) FROM sessions)').get();
  makeFilesPrivate(file);
  return { inode: statSync(file).ino };
}

function open(driver: Driver, file: string): Database {
  try {
    return new driver(file, { timeout: blockingWaitMs, fileMustExist: true });
  } catch (error) {
    throw isBusy(error) || isDamage(error) ? error : asStoreError(error, file);
  }
}

/** SQLite silently opens a file that it may not write as read-only. */
function assertWritable(file: string): void {
  for (const path of [file, dirname(file)]) {
    try {
      accessSync(path, constants.W_OK);
    } catch (error) {
      throw unwritable(file, `${path === file ? 'it' : 'its folder'} is not writable`, error);
    }
  }
}

/** The schema of a newer program may be in the log only. A read-only connection
 * leaves log and database as they are; closing a writer would merge them. */
function refuseNewerLog(driver: Driver, file: string): void {
  if ((statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0) === 0) return;
  const db = new driver(file, { readonly: true, timeout: blockingWaitMs });
  try {
    refuseNewer(userVersion(db), file);
  } finally {
    db.close();
  }
}

/** In WAL mode `NORMAL` only omits the sync of a commit. Source: sqlite.org,
 * "PRAGMA synchronous". */
function syncSwitch(db: Database): Connection['sync'] {
  let now: Synced = 'now';
  return (when) => {
    if (when !== now) db.exec(`PRAGMA synchronous = ${when === 'now' ? 'FULL' : 'NORMAL'}`);
    now = when;
  };
}

export function statementCache(db: Database): Connection['sql'] {
  const statements = new Map<string, Statement>();
  return <Row>(text: string) => {
    const statement = statements.get(text) ?? db.prepare(text);
    statements.set(text, statement);
    return statement as Statement<unknown[], Row>;
  };
}
