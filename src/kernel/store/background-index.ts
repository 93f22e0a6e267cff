import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import type { Connection } from './connection.js';
import { isBusy } from './errors.js';
import { indexPending, isIndexed } from './search-index.js';
import { countPending, isCounted } from './totals.js';

/** A step takes some 10 ms, so that a key press waits no longer. */
const eventsInStep = 250;
/** Leaves the thread and the database to others three quarters of the time. */
const pauseMs = 30;
/** The time that a process has for its next step before another may take its place. */
const claimMs = 3000;

interface Background {
  /** Null: the store is closed. */
  readonly connection: () => Connection | null;
  /** Runs a step after the changes that wait already. */
  readonly inOrder: <T>(step: () => T) => Promise<T>;
}

/** `elsewhere`: another process does it. */
export type BackgroundStep = 'done' | 'left' | 'elsewhere';

/** Completes the search index and the totals in small steps, in one process at a time. Each step is a transaction, so
 * that a kill loses one step at most. Ends with both complete or the store closed. */
export async function completeInBackground({ connection, inOrder }: Background): Promise<void> {
  const claimedBy = randomUUID();
  for (let step: BackgroundStep = 'left'; step !== 'done';) {
    step = await inOrder((): BackgroundStep => {
      const open = connection();
      return open === null ? 'done' : stepUnlessBusy(open, claimedBy);
    });
    if (step !== 'done') await wait(step === 'elsewhere' ? claimMs : pauseMs, undefined, { ref: false });
  }
}

/** Index and totals can be made again from the events, so they need not survive a power cut. */
function stepUnlessBusy(connection: Connection, claimedBy: string): BackgroundStep {
  try {
    connection.sync('later');
    return backgroundStep(connection, { by: claimedBy, nowMs: Date.now(), maxEvents: eventsInStep });
  } catch (error) {
    if (!isBusy(error)) throw error;
    return 'elsewhere';
  }
}

/** Indexes, and then adds up, at most about `maxEvents` events, unless another process claims that work. */
export function backgroundStep(
  connection: Connection,
  { by, nowMs, maxEvents }: { readonly by: string; readonly nowMs: number; readonly maxEvents: number },
): BackgroundStep {
  if (isIndexed(connection) && isCounted(connection)) return 'done';
  const { db, sql } = connection;
  const step = db.transaction((): BackgroundStep => {
    const claim = sql<{ readonly claimed_by: string | null; readonly claimed_to: number }>(
      'SELECT claimed_by, claimed_to FROM search_state',
    ).get();
    const holder = claim?.claimed_by ?? by;
    const leftMs = (claim?.claimed_to ?? 0) - nowMs;
    if (holder !== by && leftMs > 0 && leftMs <= claimMs) return 'elsewhere';
    const isDone = indexPending(connection, maxEvents) === 'done' && countPending(connection, maxEvents);
    sql('UPDATE search_state SET claimed_by = ?, claimed_to = ?').run(isDone ? null : by, nowMs + claimMs);
    return isDone ? 'done' : 'left';
  });
  return step.immediate();
}
