import type { TableSet } from '../../kernel/store/tables.js';
import type { SyncRows } from './team.js';
import { syncRowsOf } from './sync-rows.js';

/** The state of the exchange with the team's server on this machine; null if sessions are not on the disk. */
export const syncTableSet: TableSet<SyncRows | null> = {
  name: 'sync',
  open: (place) => Promise.resolve(place.kind === 'sqlite' ? syncRowsOf(place) : null),
};
