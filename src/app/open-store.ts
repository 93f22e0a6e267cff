import type { Store } from '../kernel/core/store.js';
import { type RemoteStores, remoteStores } from '../kernel/console/remote-stores.js';
import { StoreError } from '../kernel/store/errors.js';
import { provided } from './features.js';
import type { Tables } from '../kernel/store/tables.js';
import { type OpenedStore, openImage, openSqliteStore, type SqliteStoreOptions } from '../kernel/store/sqlite-store.js';
import { databasePath } from '../kernel/store/database-path.js';

/** The settings of a server besides its address; `team` and `machine` are `store.team` and `tasks.machine`. */
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
  if (server === undefined || !serverPattern.test(url))
    return await openSqliteStore({ ...options, file: databasePath(url) });
  const { now, notify = () => undefined, seal = null } = options;
  return (await openRemoteStores()).open({ ...server, url, now, notify, seal });
}

/** Opens tables that machines share through the server at `url`. `close` ends the connection. */
export async function openTablesOnServer(
  url: string,
  server: ServerOptions,
  now: () => number,
): Promise<{ readonly tables: Tables; readonly close: () => Promise<void> }> {
  return (await openRemoteStores()).openTables({ ...server, url, now });
}

async function openRemoteStores(): Promise<RemoteStores> {
  const load = provided.find(remoteStores);
  if (load) return await load();
  throw new StoreError(
    'scheme',
    'this build has no support for session servers',
    'Keep sessions in a file with `agent config set store.mode local`.',
  );
}

const serverPattern = /^postgres(?:ql)?:/i;

/** Opens a copy in memory of a store that can be read and not written,
 * as on a full disk; changes to it end with the
 * process. Null where there is no such copy. */
export async function openCopy(url: string, now: () => number): Promise<Store | null> {
  return await openImage(databasePath(url), now);
}
