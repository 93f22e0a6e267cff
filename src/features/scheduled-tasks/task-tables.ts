import type { TableSet } from '../../kernel/store/tables.js';
import type { Tasks } from './tasks.js';

/** The scheduled tasks of a store. */
export const taskTableSet: TableSet<Tasks> = {
  name: 'tasks',
  mayBeShared: true,
  open: async (place) => (await import('./stored-tasks.js')).openTasks(place),
};
