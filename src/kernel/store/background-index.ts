import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import type { Connection } from './connection.js';
import { isBusy } from './errors.js';
import { indexPending, type IndexStep } from './search-index.js';

/** A step takes some 10 ms, so that a key press waits no longer. */
const eventsInStep = 250;
/** Leaves the thread and the database to others three quarters of the time. */
const pauseMs = 30;
const elsewhereMs = 3000;

interface Background {
  /** Null: the store is closed. */
  readonly connection: () => Connection | null;
  /** Runs a step after the changes that wait already. */
  readonly inOrder: <T>(step: () => T) => Promise<T>;
}

/** Completes the search index in small steps, in one process at a time. Each step is a transaction, so that a kill
 * loses one step at most. Ends with the index complete or the store closed. */
export async function completeInBackground({ connection, inOrder }: Background): Promise<void> {
  const claimedBy = randomUUID();
  for (let step: IndexStep = 'behind'; step !== 'done';) {
    step = await inOrder((): IndexStep => {
      const open = connection();
      return open === null ? 'done' : indexStep(open, claimedBy);
    });
    await wait(step === 'elsewhere' ? elsewhereMs : pauseMs, undefined, { ref: false });
  }
}

/** The index can be made again from the events, so it need not survive a power cut. */
function indexStep(connection: Connection, claimedBy: string): IndexStep {
  try {
    connection.sync('later');
    return indexPending(connection, eventsInStep, { by: claimedBy, nowMs: Date.now() });
  } catch (error) {
    if (!isBusy(error)) throw error;
    return 'elsewhere';
  }
}
