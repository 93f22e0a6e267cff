import type { TableSet } from '../../kernel/store/tables.js';
import type { Tasks } from './tasks.js';

/** The scheduled tasks of a store. */
export const taskTableSet: TableSet<Tasks> = {
  name: 'tasks',
  mayBeShared: true,
  open: async (place) => {
    if (place.kind === 'sqlite') return (await import('./task-rows.js')).tasksOf(place);
    if (place.kind === 'server') return (await import('./server-task-rows.js')).openSharedTasks(place);
    return (await import('./memory-tasks.js')).openMemoryTasks();
  },
};
