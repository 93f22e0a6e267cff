import type { TablePlace } from '../../kernel/store/tables.js';
import { openMemoryTasks } from './memory-tasks.js';
import { openSharedTasks } from './server-task-rows.js';
import { tasksOf } from './task-rows.js';
import type { Tasks } from './tasks.js';

/** Opens the tasks of a place. */
export function openTasks(place: TablePlace): Tasks {
  if (place.kind === 'sqlite') return tasksOf(place);
  return place.kind === 'server' ? openSharedTasks(place) : openMemoryTasks();
}
