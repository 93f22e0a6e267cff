import type { Store } from '../core/store.js';
import type { Tasks } from '../core/tasks.js';
import { StoreError } from './errors.js';
import { type OpenedStore, openImage, openSqliteStore, type SqliteStoreOptions } from './sqlite-store.js';

/** `sqlite:` stands before a path,
 * absolute or not. A drive letter is no scheme. */
const schemePattern = /^([a-z][a-z0-9+.-]+):(.*)$/is;

/** What a server asks for beside its address;
 * `team` and `machine` are `store.team` and `tasks.machine`. */
export interface ServerOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
  readonly team: string | null;
  readonly machine: string | null;
}

export interface StoreOptions extends Omit<SqliteStoreOptions, 'file'> {
  readonly server?: ServerOptions;
}

/** Opens the store of `url`: the path of an SQLite database,
 * or `sqlite:` and that path, or `postgresql://…`.
 * Nothing else opens one.
 * Rejects with a StoreError: `scheme` for another kind of store,
 * else as `openSqliteStore` does.
 * A server is asked later, with the first question. */
export async function openStore(url: string, { server, ...options }: StoreOptions): Promise<OpenedStore> {
  if (server === undefined || !serverPattern.test(url)) return await openSqliteStore({ ...options, file: fileOf(url) });
  const { openRemoteStore } = await import('./postgres/open-remote.js');
  const { now, notify = () => undefined, seal = null } = options;
  return openRemoteStore({ ...server, url, now, notify, seal });
}

/** Opens the tasks that machines share through the server at `url`.
 * `close` ends the connection. */
export async function openTasksOnServer(
  url: string,
  server: ServerOptions,
): Promise<{ readonly tasks: Tasks; readonly close: () => Promise<void> }> {
  return (await import('./postgres/open-remote.js')).openRemoteTasks({ ...server, url });
}

const serverPattern = /^postgres(?:ql)?:/i;

/** Opens a copy in memory of a store that can be read and not written,
 * as on a full disk; changes to it end with the
 * process. Null where there is no such copy. */
export async function openCopy(url: string, now: () => number): Promise<Store | null> {
  return await openImage(fileOf(url), now);
}

/** The path of the database.
 * Throws a StoreError `scheme` for another kind of store. */
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
