import { hostname } from 'node:os';
import type { Notes } from '../../core/notes.js';
import { loadOnce } from '../../core/runtime.js';
import type { BlobSeal, SessionEnds } from '../../core/store.js';
import type { Tasks } from '../../core/tasks.js';
import { StoreError } from '../errors.js';
import type { OpenedStore } from '../sqlite-store.js';
import { createRemoteRecords } from './remote-records.js';
import { RemoteStore } from './remote-store.js';
import { type Rows, type ServerAddress, ServerConnection } from './server-connection.js';
import { openSharedTasks } from './shared-tasks.js';
import { checkSchema } from './team-schema.js';
import { teamOn } from './team-store.js';

export interface RemoteOptions extends ServerAddress {
  /** The role whose members may read what is written here. */
  readonly team: string | null;
  /** The name of this machine among those that share tasks;
   * null: its host name. */
  readonly machine: string | null;
  readonly now: () => number;
  readonly notify: (message: string) => void;
  readonly seal: BlobSeal | null;
}

/** Opens a store on a server, for machines without a disk.
 * It connects with the first question; a server that cannot be
 * used rejects each of them.
 * Throws a StoreError `scheme` or `tls` for an address that cannot be used. */
export function openRemoteStore({ team, machine, now, notify, seal, ...address }: RemoteOptions): OpenedStore {
  const server = checked(address);
  const host = hostname();
  const onServer = teamOn(server);
  const store = new RemoteStore({ server, team: onServer, sharedWith: team, machine: host, now, notify, seal });
  const tasks = openSharedTasks({ connection: server, team, machine, host });
  const notes = loadOnce(async (): Promise<Notes> => (await import('../sets/memory-notes.js')).createMemoryNotes(now));
  return {
    store,
    records: createRemoteRecords({ server, log: onServer.log }),
    tasks: () => Promise.resolve(tasks),
    notes: () => notes.get(),
    sync: null,
    ends: noEnds,
    notices: [],
    busy: null,
  };
}

/** Opens the tasks that machines share, without a store. */
export function openRemoteTasks({
  team,
  machine,
  ...address
}: Pick<RemoteOptions, keyof ServerAddress | 'team' | 'machine'>): {
  readonly tasks: Tasks;
  readonly close: () => Promise<void>;
} {
  const server = checked(address);
  const tasks = openSharedTasks({ connection: server, team, machine, host: hostname() });
  return { tasks, close: server.close };
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
  const rows: Rows = (text, values) => asked(() => connection.rows(text, values));
  const read: Rows = (text, values) => asked(() => connection.read(text, values));
  const transact: ServerConnection['transact'] = (work) => asked(() => connection.transact(work));
  const question: ServerConnection['question'] = (text, values) => asked(() => connection.question(text, values));
  const { name, encrypted, listen } = connection;
  return { name, encrypted, listen, rows, read, transact, question, close: () => connection.close() };
}
