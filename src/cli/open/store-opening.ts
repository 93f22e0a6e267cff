import { loadOnce } from '../../core/load-once.js';
import type { Store } from '../../core/store.js';
import { openMemoryStore } from '../../store/memory-store.js';
import { openImage, openSqliteStore } from '../../store/sqlite-store.js';
import { StoreError } from '../../store/errors.js';
import type { Notice } from '../setup.js';
import { blobSeal, guardedStore } from '../secrets.js';
import type { Setup } from '../setup.js';

export interface StoreOpening {
  readonly store: Store;
  /** Grows while the store is used: damage may be found at a later read. */
  readonly notices: readonly Notice[];
  readonly durable: boolean;
}

/** After that a session goes on in memory until the database is free. */
const longestWaitMs = 2000;

/** The session store, or one in memory: asked for with `--ephemeral`, else with one warning where there can be no
 * file. */
export async function openStore(setup: Setup, ephemeral: boolean): Promise<StoreOpening> {
  const now = Date.now;
  if (ephemeral) return { store: openMemoryStore({ now }), notices: [], durable: false };
  try {
    const said: Notice[] = [];
    const notify = (message: string): void => {
      said.push({ level: 'warn', code: 'store_repaired', message });
      setup.log({ at: 'store', message });
    };
    const { store, notices } = await openSqliteStore({
      file: setup.config.files.database,
      now,
      notify,
      maxBusyMs: longestWaitMs,
      seal: blobSeal(setup),
    });
    notices.forEach(notify);
    return { store: guardedStore(store, setup), durable: true, notices: said };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    if (error instanceof StoreError && error.code === 'busy') {
      const message = `${reason}. This session goes on in memory; it is saved once the database is free.`;
      const late = openLate(
        async () =>
          (await openSqliteStore({ file: setup.config.files.database, now, maxBusyMs: 0, seal: blobSeal(setup) }))
            .store,
      );
      return {
        store: guardedStore(late, setup),
        durable: true,
        notices: [{ level: 'warn', code: 'store_busy', message }],
      };
    }
    const hint = error instanceof StoreError && error.hint !== '' ? `${error.hint} ` : '';
    setup.log({ at: 'store', message: 'no store', reason });
    const message = `Sessions cannot be saved: ${reason}. ${hint}This one is kept in memory and ends with the program.`;
    const image = await openImage(setup.config.files.database, now).catch(() => null);
    return {
      store: guardedStore(image ?? openMemoryStore({ now }), setup),
      durable: false,
      notices: [{ level: 'warn', code: 'store_unavailable', message }],
    };
  }
}

/** A store whose database cannot be opened yet: each call tries, and rejects where it still cannot. */
function openLate(open: () => Promise<Store>): Store {
  const late = loadOnce(open);
  const get = (): Promise<Store> => late.get();
  return {
    createSession: async (row) => {
      await (await get()).createSession(row);
    },
    append: async (...args) => {
      await (await get()).append(...args);
    },
    sync: async (id) => {
      await (await get()).sync(id);
    },
    blob: async (sha256) => await (await get()).blob(sha256),
    queue: async (id) => await (await get()).queue(id),
    setQueue: async (...args) => {
      await (await get()).setQueue(...args);
    },
    load: async (id) => await (await get()).load(id),
    session: async (id) => await (await get()).session(id),
    find: async (text) => await (await get()).find(text),
    newest: async (cwd) => await (await get()).newest(cwd),
    newestOfDirectory: async (id) => await (await get()).newestOfDirectory(id),
    relocate: async (...args) => {
      await (await get()).relocate(...args);
    },
    count: async (...args) => await (await get()).count(...args),
    list: async (...args) => await (await get()).list(...args),
    search: async (...args) => await (await get()).search(...args),
    update: async (...args) => {
      await (await get()).update(...args);
    },
    remove: async (id) => {
      await (await get()).remove(id);
    },
    fork: async (...args) => {
      await (await get()).fork(...args);
    },
    adopt: async (...args) => {
      await (await get()).adopt(...args);
    },
    acquire: async (id) => await (await get()).acquire(id),
    close: async () => {
      await (await late.started()?.catch(() => null))?.close();
    },
  };
}
