import {
  chmodSync,
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { pathStats, statsAt } from '../disk/path-stats.js';
import type { Driver } from './driver.js';
import { migrate } from './migrations.js';
import { StoreError } from './errors.js';

/** The condition of a file before SQLite opens it: SQLite would take an empty
 * file for a new database. */
export type FileCondition =
  | { readonly is: 'missing' | 'present' }
  | { readonly is: 'damaged'; readonly reason: string };

const ourFiles = /^(agent\.(db|log)|config\.json|trust|history)/;

/** Looks at the file's entry only: to open and close a database beside SQLite
 * would drop the locks of this process. Throws a StoreError `unwritable` for
 * a link and for something that is not a file. Source: sqlite.org/howtocorrupt.html, 2.2. */
export function inspectFile(file: string): FileCondition {
  const found = pathStats(file, 'keep');
  if (found.kind === 'missing') return { is: 'missing' };
  if (found.kind === 'refused') throw unwritable(file, `it cannot be read (${found.code})`);
  const { stats } = found;
  if (stats.isSymbolicLink())
    throw new StoreError(
      'unwritable',
      `The session database ${file} cannot be used: it is a link, and its target would be changed`,
      'Move the file here, or link the folder instead.',
    );
  if (!stats.isFile()) throw unwritable(file, 'it is not a regular file');
  return stats.size === 0 ? { is: 'damaged', reason: 'it is empty (0 bytes)' } : { is: 'present' };
}

export function unwritable(file: string, reason: string, cause?: unknown): StoreError {
  return new StoreError(
    'unwritable',
    `The session database ${file} cannot be used: ${reason}`,
    'Check the owner and the mode of the file and its folder, or use --ephemeral.',
    cause,
  );
}

/** Makes the folder and its parents (0700) when it is missing. An existing
 * folder that holds only our files becomes private too. */
function ensureFolder(folder: string): void {
  if (existsSync(folder)) {
    if (readdirSync(folder).every((name) => ourFiles.test(name))) makePrivate(folder, 0o700);
    return;
  }
  makeFolder(folder);
}

/** Makes one level at a time: Node's own recursion never ends where the kernel
 * refuses with ENOENT, as under /proc. */
function makeFolder(folder: string): void {
  const parent = dirname(folder);
  if (!existsSync(parent)) makeFolder(parent);
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    if (existsSync(folder)) return;
    throw error;
  }
  chmodSync(folder, 0o700);
  syncFolder(parent);
}

/** Removes every right of group and others from a path of ours. A path that is
 * missing or someone else's stays as it is. */
function makePrivate(path: string, mode: number): void {
  const stats = statsAt(path, 'keep');
  if (
    !stats ||
    stats.isSymbolicLink() ||
    (stats.mode & 0o077) === 0 ||
    (process.getuid && stats.uid !== process.getuid())
  )
    return;
  chmodSync(path, mode);
}

/** Makes the database and the two files beside it private, whatever the umask is. */
export function makeFilesPrivate(file: string): void {
  for (const suffix of ['', '-wal', '-shm']) makePrivate(file + suffix, 0o600);
}

/** Makes a new file's name durable. Does nothing when the platform cannot open
 * a folder. */
export function syncFolder(folder: string): void {
  if (process.platform === 'win32') return;
  const descriptor = openSync(folder, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Makes an empty database under its final name in one step, so that no other
 * process sees an unfinished one. If another process was first, its database
 * stays. */
export function createDatabase(driver: Driver, file: string): void {
  ensureFolder(dirname(file));
  const draft = draftName(file);
  try {
    buildDraft(driver, draft);
    publishNew(draft, file);
    syncFolder(dirname(file));
  } finally {
    removeDatabase(draft);
  }
}

/** Returns a name beside `file` that no other process uses. */
export function draftName(file: string): string {
  return `${file}.new-${process.pid}-${process.hrtime.bigint().toString(36)}`;
}

/** Makes a database of the present schema in one file of mode 0600; `fill` may
 * write into it. Throws when it cannot be written. */
export function buildDraft(driver: Driver, draft: string, fill?: (db: InstanceType<Driver>) => void): void {
  closeSync(openSync(draft, 'wx', 0o600));
  chmodSync(draft, 0o600);
  const db = new driver(draft);
  try {
    db.pragma('journal_mode = WAL');
    db.pragma('synchronous = OFF'); // nobody knows of it yet; compacting it brings all of it to the disk
    migrate(db, draft);
    db.pragma('synchronous = FULL');
    db.exec('VACUUM');
    fill?.(db);
  } finally {
    db.close();
  }
}

/** Removes a database of ours that nobody else knows of. */
export function removeDatabase(draft: string): void {
  for (const suffix of ['', '-wal', '-shm', '-journal']) rmSync(draft + suffix, { force: true });
}

/** A link fails when the name is taken. Only file systems without links need a
 * rename. */
function publishNew(draft: string, file: string): void {
  try {
    linkSync(draft, file);
  } catch (error) {
    if (existsSync(file)) return;
    if (isMissingLinkSupport(error)) renameSync(draft, file);
    else throw error;
  }
}

export function isMissingLinkSupport(error: unknown): boolean {
  const code: unknown = error instanceof Error ? Reflect.get(error, 'code') : undefined;
  return code === 'EPERM' || code === 'ENOTSUP' || code === 'EOPNOTSUPP' || code === 'ENOSYS' || code === 'EMLINK';
}
