import type { Store } from '../../core/store.js';
import { openMemoryStore } from '../../store/memory-store.js';
import { openSqliteStore } from '../../store/sqlite-store.js';
import { StoreError } from '../../store/store-error.js';
import type { Notice } from '../headless/headless.js';
import type { Setup } from '../setup.js';

export interface StoreOpening {
  readonly store: Store;
  /** Grows while the store is used: damage may be found at a later read. */
  readonly notices: readonly Notice[];
  readonly durable: boolean;
}

/** The session store, or one in memory: asked for with `--ephemeral`, else with one warning where there can be no file. */
export async function openStore(setup: Setup, ephemeral: boolean): Promise<StoreOpening> {
  const now = Date.now;
  if (ephemeral) return { store: openMemoryStore({ now }), notices: [], durable: false };
  try {
    const said: Notice[] = [];
    const notify = (message: string): void => {
      said.push({ level: 'warn', code: 'store_repaired', message });
      setup.log({ at: 'store', message });
    };
    const { store, notices } = await openSqliteStore({ file: setup.config.files.database, now, notify });
    notices.forEach(notify);
    return { store, durable: true, notices: said };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    const hint = error instanceof StoreError && error.hint !== '' ? `${error.hint} ` : '';
    setup.log({ at: 'store', message: 'no store', reason });
    const message = `Sessions cannot be saved: ${reason}. ${hint}This one is kept in memory and ends with the program.`;
    return { store: openMemoryStore({ now }), durable: false, notices: [{ level: 'warn', code: 'store_unavailable', message }] };
  }
}
