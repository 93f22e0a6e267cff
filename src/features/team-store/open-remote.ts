import { hostname } from 'node:os';
import { loadOnce } from '../../kernel/core/runtime.js';
import type { SessionEnds } from '../../kernel/core/store.js';
import type { RemotePlace, RemoteStores } from '../../kernel/console/remote-stores.js';
import { StoreError } from '../../kernel/store/errors.js';
import type { OpenedStore } from '../../kernel/store/sqlite-store.js';
import { createRemoteRecords } from './remote-records.js';
import { RemoteStore } from './remote-store.js';
import { type QueryRows, type ServerAddress, ServerConnection } from './server-connection.js';
import { tablesAt } from '../../kernel/store/tables.js';
import { checkSchema } from './team-schema.js';
import { teamOn } from './team-store.js';

/** The stores on servers of PostgreSQL. */
export const onPostgres: RemoteStores = { open: openRemoteStore, openTables: openServerTables };

function openRemoteStore({
  team,
  machine,
  now,
  notify,
  seal,
  ...address
}: Parameters<RemoteStores['open']>[0]): OpenedStore {
  const server = checked(address);
  const host = hostname();
  const onServer = teamOn(server);
  const store = new RemoteStore({ server, team: onServer, sharedWith: team, machine: host, now, notify, seal });
  return {
    store,
    records: createRemoteRecords({ server, log: onServer.log }),
    tables: tablesAt({ kind: 'server', connection: server, team, machine, host, now }),
    ends: noEnds,
    notices: [],
    busy: null,
  };
}

function openServerTables({ team, machine, now, ...address }: RemotePlace): ReturnType<RemoteStores['openTables']> {
  const server = checked(address);
  const place = { kind: 'server', connection: server, team, machine, host: hostname(), now } as const;
  return { tables: tablesAt(place), close: server.close };
}

/** The server itself knows where its sessions end. */
const noEnds: SessionEnds = {
  list: () => [],
  note: () => Promise.resolve(),
  forget: () => Promise.resolve(),
};

/** A session that is under way waits no longer for one answer. */
const silentMs = 10_000;
/** A server that takes longer to say nothing is left alone for a while: turns do not wait for it again and again. */
const slowFailureMs = 500;
const pauseMs = 10_000;

/** The tables are looked at before the first question. */
function checked(address: ServerAddress) {
  const connection = new ServerConnection(address, { silentMs });
  const ready = loadOnce(() => checkSchema(connection));
  let pause: { readonly error: StoreError; readonly untilMs: number } | null = null;
  const asked = async <T>(ask: () => Promise<T>): Promise<T> => {
    const begun = performance.now();
    if (pause !== null && begun < pause.untilMs) throw pause.error;
    try {
      await ready.get();
      return await ask();
    } catch (error) {
      const now = performance.now();
      if (error instanceof StoreError && error.code === 'unreachable' && now - begun > slowFailureMs)
        pause = { error, untilMs: now + pauseMs };
      throw error;
    }
  };
  const rows: QueryRows = (text, values) => asked(() => connection.rows(text, values));
  const read: QueryRows = (text, values) => asked(() => connection.read(text, values));
  const transact: ServerConnection['transact'] = (work) => asked(() => connection.transact(work));
  const question: ServerConnection['question'] = (text, values) => asked(() => connection.question(text, values));
  const { name, encrypted, listen } = connection;
  return { name, encrypted, listen, rows, read, transact, question, close: () => connection.close() };
}
