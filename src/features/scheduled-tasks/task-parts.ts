import { PartKey } from '../../kernel/console/parts.js';
import type { FiredTasks } from './open-scheduler.js';

/** The tasks of a REPL and the part that fires them; opened with the first use. */
export const firedTasks = new PartKey<() => Promise<FiredTasks>>('fired tasks');
