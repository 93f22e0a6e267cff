import { PartKey } from '../../kernel/console/parts.js';
import type { Jobs } from './background.js';

/** The commands in the background; opened with the first use. */
export const runningJobs = new PartKey<() => Promise<Jobs>>('running background tasks');

/** The commands in the background; null where there were none. */
export const openedJobs = new PartKey<() => Jobs | null>('background tasks');
