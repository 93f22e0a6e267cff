import { PartKey } from '../../kernel/console/parts.js';
import type { FiredTasks } from './open-scheduler.js';

/** What fires the tasks of a REPL; opened with the first use. */
export const firedTasks = new PartKey<() => Promise<FiredTasks>>('fired tasks');
