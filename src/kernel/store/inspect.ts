import { constants, existsSync } from 'node:fs';
import { access, stat, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { readBounded } from '../disk/bounded-file.js';
import { loadDriver, sqliteVersion } from './driver.js';
import { StoreError } from './errors.js';
import { foreignDatabase, refuseNewer, userVersion } from './migrations.js';
import { databasePath } from './database-path.js';
import { statementCache } from './connection.js';
import { type LeaseFact, ownIdentity, readLeases } from './lease.js';

/** `mode`: permission bits, null where the file is not there yet. */
export interface StoreFacts {
  readonly file: string;
  readonly mode: number | null;
  readonly writable: boolean;
  /** The reason why it cannot be written. */
  readonly reason: string;
  /** The reason why this program does not open it, for example because a newer version wrote it; null if it opens
   * it. */
  readonly refused: StoreError | null;
}

/** The facts of a store that are available before it is opened. */
export interface StoreInspection {
  /** The version of SQLite. */
  readonly version: () => Promise<string>;
  readonly facts: () => Promise<StoreFacts>;
  /** Free space for this user where the store is or would be. */
  readonly freeBytes: () => Promise<number>;
  /** The sessions that are marked as in use; none where the database cannot be read. */
  readonly leases: () => Promise<readonly LeaseFact[]>;
}

/** Looks at the store of `url` and makes nothing. */
export function inspectStore(url: string): StoreInspection {
  const file = databasePath(url);
  return {
    version: sqliteVersion,
    facts: () => storeFacts(file),
    freeBytes: () => freeBytes(dirname(file)),
    leases: () => leases(file),
  };
}

async function leases(file: string): Promise<readonly LeaseFact[]> {
  if (!existsSync(file)) return [];
  try {
    // Without a log SQLite makes one, which only a connection that may write removes.
    const db = new (await loadDriver())(file, {
      readonly: existsSync(`${file}-wal`),
      fileMustExist: true,
      timeout: 1000,
    });
    try {
      return readLeases({ sql: statementCache(db) }, ownIdentity(), Date.now());
    } finally {
      db.close();
    }
  } catch {
    return []; // The check of the store says what is wrong.
  }
}

/** Returns the facts of the database. If it does not exist, `writable` is that of the nearest existing folder above
 * it. */
async function storeFacts(file: string): Promise<StoreFacts> {
  const found = await stat(file).catch(() => null);
  const target = found ? file : await nearestExisting(dirname(file));
  const reason = await access(target, constants.R_OK | constants.W_OK).then(
    () => '',
    (error: unknown) => `${(error as NodeJS.ErrnoException).code ?? 'error'} at ${target}`,
  );
  const isWrongKind = found ? !found.isFile() : !(await stat(target)).isDirectory();
  if (isWrongKind)
    return {
      file,
      mode: null,
      writable: false,
      reason: `${target} is not a ${found ? 'file' : 'directory'}`,
      refused: null,
    };
  const refused = found && found.size > 0 ? await refusal(file) : null;
  return { file, mode: found ? found.mode & 0o777 : null, writable: reason === '', reason, refused };
}

/** Returns the error with which this program would refuse the database. It writes nothing. A file that is no database
 * is not refused: the next start repairs it. */
async function refusal(file: string): Promise<StoreError | null> {
  const { version, hasSchema } = await schemaOf(file);
  try {
    refuseNewer(version, file);
    return version === 0 && hasSchema ? foreignDatabase(file) : null;
  } catch (error) {
    if (error instanceof StoreError) return error;
    throw error;
  }
}

/** The places of the schema cookie and the user version in the first bytes of a database.
 * Source: sqlite.org/fileformat2.html, 1.3. */
const header = { bytes: 100, magic: 'SQLite format 3\0', cookieAt: 40, versionAt: 60 };

/** Reads the version of a database. Beside a log SQLite reads it, since the log may hold a newer version and closing the
 * file would drop the locks of this process. Without a log SQLite would make one, so the header is read. */
async function schemaOf(file: string): Promise<{ readonly version: number; readonly hasSchema: boolean }> {
  if (existsSync(`${file}-wal`)) {
    const db = new (await loadDriver())(file, { readonly: true, timeout: 1000 });
    try {
      return { version: userVersion(db), hasSchema: db.pragma('schema_version', { simple: true }) !== 0 };
    } finally {
      db.close();
    }
  }
  const read = readBounded(file, { maxBytes: header.bytes, longer: 'start', links: 'follow' });
  const isDatabase =
    read.kind === 'read' &&
    read.bytes.length >= header.bytes &&
    read.bytes.toString('latin1', 0, header.magic.length) === header.magic;
  if (!isDatabase) return { version: 0, hasSchema: false };
  return {
    version: read.bytes.readUInt32BE(header.versionAt),
    hasSchema: read.bytes.readUInt32BE(header.cookieAt) !== 0,
  };
}

async function freeBytes(path: string): Promise<number> {
  const { bavail, bsize } = await statfs(await nearestExisting(path));
  return bavail * bsize;
}

async function nearestExisting(path: string): Promise<string> {
  const exists = await stat(path).then(
    () => true,
    () => false,
  );
  return exists || dirname(path) === path ? path : nearestExisting(dirname(path));
}
