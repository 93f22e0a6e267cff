import { longestTimerMs, type Schedule } from './runtime.js';

export interface CallTimes {
  /** Without a sign of life. */
  readonly timeoutMs: number;
  /** In all. */
  readonly maxMs: number;
}

/** The time limits of a call. They do not count the time in which the call waits for the user. */
export interface CallClock {
  /** Restarts the limit on the time without a sign of life, because the other side is at work. */
  restart(): void;
  /** Waits for a person meanwhile. */
  whileAsking<T>(asking: () => Promise<T>): Promise<T>;
  stop(): void;
}

/** Starts the clock; `now` is in milliseconds. `onEnd` is called once, with the time that was too long. */
export function startCallClock(
  { timeoutMs, maxMs }: CallTimes,
  { schedule, now }: { readonly schedule: Schedule; readonly now: () => number },
  onEnd: (ms: number) => void,
): CallClock {
  let leftMs = maxMs;
  let startedAt = now();
  let persons = 0;
  let cancel: (() => void) | null = null;
  const run = (): void => {
    startedAt = now();
    const ms = Math.min(timeoutMs, leftMs, longestTimerMs);
    cancel = schedule(() => {
      onEnd(leftMs < timeoutMs ? maxMs : timeoutMs);
    }, ms);
  };
  const halt = (): void => {
    cancel?.();
    cancel = null;
    leftMs -= now() - startedAt;
    startedAt = now();
  };
  run();
  return {
    restart: () => {
      if (cancel === null) return;
      halt();
      run();
    },
    whileAsking: async (asking) => {
      if (persons++ === 0) halt();
      try {
        return await asking();
      } finally {
        if (--persons === 0) run();
      }
    },
    stop: () => {
      cancel?.();
      cancel = null;
      // Nothing starts it again, whoever is still asked.
      persons = Number.POSITIVE_INFINITY;
    },
  };
}
