import { PartKey } from './parts.js';

/** Returns one line for each command in the background of this run: those that run, and those that have ended. */
export const backgroundWork = new PartKey<() => Promise<readonly string[]>>('background work');
