import type { TableSet } from '../../kernel/store/tables.js';
import type { SyncRows } from './team.js';

/** What this machine knows of the exchange with the server of the team; null where sessions do not lie on the disk. */
export const syncTableSet: TableSet<SyncRows | null> = {
  name: 'sync',
  open: async (place) => (place.kind === 'sqlite' ? (await import('./sync-rows.js')).syncRowsOf(place) : null),
};
