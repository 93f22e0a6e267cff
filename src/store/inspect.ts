import { constants } from 'node:fs';
import { access, stat, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { sqliteVersion } from './driver.js';
import { fileOf } from './open-store.js';

/** `mode`: permission bits, null where the file is not there yet. */
export interface StoreFacts {
  readonly file: string;
  readonly mode: number | null;
  readonly writable: boolean;
  /** Why it cannot be written. */
  readonly reason: string;
}

/** What can be told of a store before it is opened. */
export interface StoreInspection {
  /** The version of SQLite. */
  readonly version: () => Promise<string>;
  readonly facts: () => Promise<StoreFacts>;
  /** Free space for this user where the store is or would be. */
  readonly freeBytes: () => Promise<number>;
}

/** Looks at the store of `url` and makes nothing. */
export function inspectStore(url: string): StoreInspection {
  const file = fileOf(url);
  return { version: sqliteVersion, facts: () => storeFacts(file), freeBytes: () => freeBytes(dirname(file)) };
}

/** Whether the database, or the nearest directory above it that is there, may
 * be written. */
async function storeFacts(file: string): Promise<StoreFacts> {
  const found = await stat(file).catch(() => null);
  const target = found ? file : await nearestExisting(dirname(file));
  const reason = await access(target, constants.R_OK | constants.W_OK).then(
    () => '',
    (error: unknown) => `${(error as NodeJS.ErrnoException).code ?? 'error'} at ${target}`,
  );
  const isWrongKind = found ? !found.isFile() : !(await stat(target)).isDirectory();
  if (isWrongKind)
    return { file, mode: null, writable: false, reason: `${target} is not a ${found ? 'file' : 'directory'}` };
  return { file, mode: found ? found.mode & 0o777 : null, writable: reason === '', reason };
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
