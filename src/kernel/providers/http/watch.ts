import { longestTimerMs, type Schedule } from '../../core/runtime.js';

export const realSchedule: Schedule = (run, delayMs) => {
  const timer = setTimeout(run, delayMs);
  return () => {
    clearTimeout(timer);
  };
};

/** The limit that a request exceeded. */
export type Expired = 'first_byte' | 'idle' | 'turn';

export interface Watch {
  /** A byte arrived, be it a comment or a ping. `hasContent`: a part of the answer came with it. Until then the server
   * may still be reading the prompt. */
  alive(hasContent: boolean): void;
  /** The limit that was exceeded, or null. */
  expired(): Expired | null;
  stop(): void;
}

export interface RequestWatchLimits {
  readonly firstByteMs: number;
  readonly idleMs: number;
  /** Unix ms. */ readonly turnEndsAt: number;
}

/** Watches one request: calls `onExpired` once when the first byte, the next byte or the end of the turn is overdue. A
 * byte costs little: a timer that fires early looks at the time of the last byte and starts again. */
export function createWatch(
  limits: RequestWatchLimits,
  now: () => number,
  schedule: Schedule,
  onExpired: (limit: Expired) => void,
): Watch {
  const startedAt = now();
  let lastAt: number | null = null;
  let isReading = true;
  let expired: Expired | null = null;
  let cancel = (): void => {
    /* nothing is scheduled yet */
  };
  const due = (): { readonly at: number; readonly limit: Expired } => {
    const quiet =
      lastAt === null
        ? { at: startedAt + limits.firstByteMs, limit: 'first_byte' as const }
        : {
            at: lastAt + (isReading ? Math.max(limits.firstByteMs, limits.idleMs) : limits.idleMs),
            limit: 'idle' as const,
          };
    return quiet.at <= limits.turnEndsAt ? quiet : { at: limits.turnEndsAt, limit: 'turn' };
  };
  const arm = (): void => {
    const next = due();
    const leftMs = next.at - now();
    if (leftMs <= 0) {
      expired = next.limit;
      onExpired(next.limit);
      return;
    }
    cancel = schedule(arm, Math.min(leftMs, longestTimerMs));
  };
  arm();
  return {
    alive(hasContent) {
      const isNewLimit = lastAt === null || (isReading && hasContent);
      lastAt = now();
      if (hasContent) isReading = false;
      if (isNewLimit && expired === null) {
        cancel();
        arm();
      }
    },
    expired: () => expired,
    stop() {
      cancel();
    },
  };
}
