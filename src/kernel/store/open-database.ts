import { closeSync, existsSync, linkSync, openSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { connect, type Connection } from './connection.js';
import {
  buildDraft,
  createDatabase,
  draftName,
  inspectFile,
  isMissingLinkSupport,
  removeDatabase,
  syncFolder,
  unwritable,
} from './database-file.js';
import { type Database, type Driver, retryWhileBusy } from './driver.js';
import { asStoreError, isDamage, sqliteCode, StoreError } from './errors.js';
import { salvage, type Salvaged } from './salvage.js';

export interface OpenOptions {
  readonly driver: Driver;
  /** Absolute. */
  readonly file: string;
  readonly now: () => number;
  readonly maxBusyMs: number;
  /** Receives messages about damage and repairs. */
  readonly notify: (message: string) => void;
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
  const { driver, file, maxBusyMs } = options;
  try {
    const condition = inspectFile(file);
    if (condition.is === 'damaged') return await reopenRepaired(options, condition.reason, null);
    if (condition.is === 'missing') {
      if (existsSync(`${file}-wal`)) await clearStrayLog(options);
      createDatabase(driver, file);
    }
    return await retryWhileBusy(() => connect(driver, file), maxBusyMs);
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

/** Most damaged files that stay beside the database. With one more the user has
 * to act. */
const maxDamagedFiles = 3;

interface Damage {
  readonly driver: Driver;
  readonly file: string;
  /** `it is empty (0 bytes)`. */
  readonly reason: string;
  readonly nowMs: number;
}

/** Replaces a damaged database by a new one with all rows that can still be
 * read. The damaged one stays as `agent.db.corrupt-<time>` beside it. Returns
 * a message for the user. The caller holds the repair lock and has closed the
 * file. Throws a StoreError `damaged` when three damaged files are there
 * already, SQLite's error when the new one cannot be written. */
function repairDatabase({ driver, file, reason, nowMs }: Damage): string {
  refuseTooMany(file, reason);
  const aside = asideName(file, nowMs);
  const draft = draftName(file);
  try {
    let saved: Salvaged = { sessions: 0, events: 0, altered: 0 };
    buildDraft(driver, draft, (db) => {
      saved = salvage(driver, file, draftName(file), db, nowMs);
    });
    exchange(file, draft, aside);
    const read = `${count(saved.events, 'event')} of ${count(saved.sessions, 'session')} could be read`;
    return (
      `The session database was damaged (${reason}). It was moved to ${aside}; ` +
      `${read} and were saved into a new one${leftOut(saved.altered)}.`
    );
  } finally {
    removeDatabase(draft);
  }
}

/** Moves a log whose database is gone aside: SQLite would replay it into the
 * next database. Returns a message for the user. */
function moveStrayLogAside(file: string, nowMs: number): string {
  const aside = asideName(file, nowMs);
  renameSync(`${file}-wal`, `${aside}-wal`);
  rmSync(`${file}-shm`, { force: true });
  return `The session database ${file} is gone; its remains were saved as ${aside}-wal. Started a new database.`;
}

/** Moves the log first: beside the new database SQLite would replay it. There
 * is a file of the name `file` at every moment. */
function exchange(file: string, draft: string, aside: string): void {
  const logBytes = statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0;
  if (logBytes > 0) renameSync(`${file}-wal`, `${aside}-wal`);
  else rmSync(`${file}-wal`, { force: true });
  rmSync(`${file}-shm`, { force: true });
  try {
    linkSync(file, aside);
  } catch (error) {
    if (!isMissingLinkSupport(error)) throw error;
    renameSync(file, aside);
  }
  renameSync(draft, file);
  syncFolder(dirname(file));
}

function refuseTooMany(file: string, reason: string): void {
  const start = `${basename(file)}.corrupt-`;
  const damaged = readdirSync(dirname(file)).filter((name) => name.startsWith(start) && !/-(wal|shm)$/.test(name));
  if (damaged.length < maxDamagedFiles) return;
  const names = damaged.map((name) => join(dirname(file), name)).join(', ');
  throw new StoreError(
    'damaged',
    `The session database ${file} is damaged (${reason}), and ${damaged.length} damaged ones already exist`,
    `Check ${names}, remove or move those you do not need, and start again.`,
  );
}

function asideName(file: string, nowMs: number): string {
  const time = new Date(nowMs).toISOString().replace(/[-:]/g, '').replace(/\.\d+/, '');
  let name = `${file}.corrupt-${time}`;
  for (let n = 2; existsSync(name) || statSync(`${name}-wal`, { throwIfNoEntry: false }); n++)
    name = `${file}.corrupt-${time}-${n}`;
  return name;
}

function leftOut(altered: number): string {
  if (altered === 0) return '';
  const [its, was] = altered === 1 ? ['its', 'was'] : ['their', 'were'];
  return `; ${count(altered, 'event')} did not match ${its} checksum and ${was} left out`;
}

function count(n: number, noun: string): string {
  return `${n} ${noun}${n === 1 ? '' : 's'}`;
}
