import type { Store } from '../core/store.js';
import { StoreError } from './errors.js';
import { type OpenedStore, openImage, openSqliteStore, type SqliteStoreOptions } from './sqlite-store.js';

/** `sqlite:` stands before a path, absolute or not. A drive letter is no scheme. */
const schemePattern = /^([a-z][a-z0-9+.-]+):(.*)$/is;

/** Opens the store of `url`: the path of an SQLite database, or `sqlite:` and that path. Nothing else opens one.
 * Rejects with a StoreError: `scheme` for another kind of store, else as `openSqliteStore` does. */
export async function openStore(url: string, options: Omit<SqliteStoreOptions, 'file'>): Promise<OpenedStore> {
  return await openSqliteStore({ ...options, file: fileOf(url) });
}

/** Opens a copy in memory of a store that can be read and not written, as on a full disk; changes to it end with the
 * process. Null where there is no such copy. */
export async function openCopy(url: string, now: () => number): Promise<Store | null> {
  return await openImage(fileOf(url), now);
}

/** The path of the database. Throws a StoreError `scheme` for another kind of store. */
export function fileOf(url: string): string {
  const [, scheme, rest = ''] = schemePattern.exec(url) ?? [];
  if (scheme === undefined) return url;
  const path = rest.replace(/^\/\/(?=\/)/, '');
  if (scheme.toLowerCase() === 'sqlite' && path !== '') return path;
  throw new StoreError(
    'scheme',
    scheme.toLowerCase() === 'sqlite'
      ? 'The store "sqlite:" names no file'
      : `There is no store of the kind "${scheme}:"`,
    'Name the path of a file, or sqlite:<path>.',
  );
}
