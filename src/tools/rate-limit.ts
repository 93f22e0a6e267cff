/** A sliding window of one minute. */
export interface RateLimit {
  /** Takes one unit and returns 0, or takes none and returns the milliseconds until one is free. */
  take(): number;
}

const windowMs = 60_000;

export function createRateLimit(perMinute: number, now: () => number): RateLimit {
  let taken: readonly number[] = [];
  return {
    take() {
      const time = now();
      taken = taken.filter((at) => time - at < windowMs);
      const oldest = taken[0];
      if (taken.length >= perMinute)
        return oldest === undefined ? windowMs : Math.max(1, Math.ceil(windowMs - (time - oldest)));
      taken = [...taken, time];
      return 0;
    },
  };
}
