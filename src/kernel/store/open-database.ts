import { closeSync, existsSync, openSync, statSync } from 'node:fs';
import { connect, type Connection } from './connection.js';
import { createDatabase, inspectFile, unwritable } from './database-file.js';
import { type Database, type Driver, retryWhileBusy } from './driver.js';
import { asStoreError, isDamage, sqliteCode, StoreError } from './errors.js';

export interface OpenOptions {
  readonly driver: Driver;
  /** Absolute. */
  readonly file: string;
  readonly now: () => number;
  readonly maxBusyMs: number;
  /** Receives messages about damage and repairs. */
  readonly notify: (message: string) => void;
  /** Receives a message before work on an old database that takes long. */
  readonly report?: (message: string) => void;
}

const pathReasons: Readonly<Record<string, string>> = {
  ENOENT: 'its folder cannot be made',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EROFS: 'the file system is read-only',
  ENOTDIR: 'part of its path is not a folder',
  EEXIST: 'part of its path is not a folder',
  ENAMETOOLONG: 'its path is too long',
  ELOOP: 'its path is a loop of links',
};

/** Opens the database in `file`; makes it when there is none, repairs it when
 * it is damaged. Throws a StoreError. */
export async function openDatabase(options: OpenOptions): Promise<Connection> {
  const { driver, file, maxBusyMs, report } = options;
  try {
    const condition = inspectFile(file);
    if (condition.is === 'damaged') return await reopenRepaired(options, condition.reason, null);
    if (condition.is === 'missing') {
      if (existsSync(`${file}-wal`)) await clearStrayLog(options);
      createDatabase(driver, file);
    }
    return await retryWhileBusy(() => connect(driver, file, report), maxBusyMs);
  } catch (error) {
    if (isDamage(error) && !(error instanceof StoreError))
      return await reopenRepaired(options, damageReason(error), null);
    throw openError(error, file);
  }
}

/** Repairs the database whose file has `inode` (null: any file), unless another
 * process has repaired it meanwhile, and opens it. */
export async function reopenRepaired(options: OpenOptions, reason: string, inode: number | null): Promise<Connection> {
  const { driver, file, now, notify } = options;
  try {
    const { repairDatabase } = await loadRepair();
    return await withRepairLock(options, () => {
      const sound = reopenSound(driver, file, inode);
      if (sound) return sound;
      notify(repairDatabase({ driver, file, reason, nowMs: now() }));
      return connect(driver, file);
    });
  } catch (error) {
    throw asStoreError(error, file);
  }
}

/** Loads what repairs a database, which hardly any start needs. */
const loadRepair = () => import('./repair-database.js');

/** Returns the damage as a clause for brackets. */
export function damageReason(error: unknown): string {
  return sqliteCode(error) === 'SQLITE_NOTADB' ? 'it is not an SQLite database' : 'some of its pages cannot be read';
}

/** Opens the database if it is no longer the damaged one, else returns null. */
function reopenSound(driver: Driver, file: string, inode: number | null): Connection | null {
  const stats = statSync(file, { throwIfNoEntry: false });
  if (!stats || stats.size === 0 || stats.ino === inode) return null;
  try {
    return connect(driver, file);
  } catch (error) {
    if (isDamage(error) && !(error instanceof StoreError)) return null;
    throw error;
  }
}

async function clearStrayLog(options: OpenOptions): Promise<void> {
  const { file, now, notify } = options;
  const { moveStrayLogAside } = await loadRepair();
  await withRepairLock(options, () => {
    if (existsSync(file) || !existsSync(`${file}-wal`)) return;
    notify(moveStrayLogAside(file, now()));
  });
}

/** A repair reads the whole database. A process that waits for another's repair
 * finds a sound database afterwards, so it waits longer than for a write. */
const repairPatienceMs = 60_000;

/** Runs `work` in one process at a time. The lock is SQLite's own on an empty
 * file beside the database, so it ends with its holder. The file stays:
 * removing it could let two processes hold two locks. */
async function withRepairLock<T>({ driver, file }: OpenOptions, work: () => T): Promise<T> {
  const lockFile = `${file}.lock`;
  if (!existsSync(lockFile)) closeSync(openSync(lockFile, 'a', 0o600));
  const lock: Database = new driver(lockFile, { timeout: 0 });
  try {
    await retryWhileBusy(() => lock.exec('BEGIN EXCLUSIVE'), repairPatienceMs);
    return work();
  } finally {
    lock.close();
  }
}

function openError(error: unknown, file: string): StoreError {
  const code: unknown = error instanceof Error ? Reflect.get(error, 'code') : undefined;
  if (typeof code === 'string' && Object.hasOwn(pathReasons, code))
    return unwritable(file, pathReasons[code] ?? code, error);
  if (code === 'ENOSPC' || code === 'EDQUOT')
    return new StoreError(
      'disk_full',
      `The disk is full: ${file} cannot be made`,
      'Free some space, or use --ephemeral.',
      error,
    );
  return asStoreError(error, file);
}
