import type { TableSet } from '../../kernel/store/tables.js';
import type { SyncRows } from './team.js';

/** The state of the exchange with the team's server on this machine; null if sessions are not on the disk. */
export const syncTableSet: TableSet<SyncRows | null> = {
  name: 'sync',
  open: async (place) => (place.kind === 'sqlite' ? (await import('./sync-rows.js')).syncRowsOf(place) : null),
};
