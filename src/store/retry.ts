import { setTimeout as wait } from 'node:timers/promises';
import { isBusy } from './store-error.js';

const firstDelayMs = 5;
const longestDelayMs = 200;

/** Runs `work` until it does not meet another process's lock, waiting longer and longer between tries without blocking
 * the thread. Throws SQLite's own busy error once `maxBusyMs` have passed, and every other error at once. */
export async function retryWhileBusy<T>(work: () => T, maxBusyMs: number): Promise<T> {
  const deadline = performance.now() + maxBusyMs;
  for (let delayMs = firstDelayMs; ; delayMs = Math.min(delayMs * 2, longestDelayMs)) {
    try {
      return work();
    } catch (error) {
      const leftMs = deadline - performance.now();
      if (!isBusy(error) || leftMs <= 0) throw error;
      await wait(Math.min(leftMs, delayMs * (0.5 + Math.random())));
    }
  }
}
