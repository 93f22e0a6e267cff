/** The program's own log file. Never on stdout; keys and headers are never passed to it. `detail`: worth a line with
 * `--debug` alone. */
export type Log = (entry: {
  readonly at: string;
  readonly message: string;
  readonly detail?: true;
  readonly [extra: string]: unknown;
}) => void;

/** The longest delay that a timer of Node keeps, 24.8 days: a longer one fires at once. */
export const longestTimerMs = 2_147_483_647;

/** Runs `callback` once after `delayMs`; the function it returns cancels that. */
export type Schedule = (callback: () => void, delayMs: number) => () => void;

/** Milliseconds on a clock that only goes forward. */
export type Clock = () => number;

/** A part that is loaded at its first use. */
export interface LoadedOnce<T> {
  /** Returns the part. A load that failed is forgotten: the next call tries again. */
  get(): Promise<T>;
  /** The part or its load, or null where nobody has asked for it. Only for closing it. */
  started(): Promise<T> | null;
}

/** The only place that keeps a promise for later calls, which test/architecture.test.ts checks. */
export function loadOnce<T>(load: () => Promise<T>): LoadedOnce<T> {
  let loading: Promise<T> | null = null;
  return {
    get() {
      if (loading) return loading;
      const mine = load();
      loading = mine;
      mine.catch(() => {
        if (loading === mine) loading = null;
      });
      return mine;
    },
    started: () => loading,
  };
}

/** Resolves like `work`, or with null as soon as `signal` is aborted. */
export async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T | null> {
  const over = new AbortController();
  const aborted = new Promise<null>((resolve) => {
    const stop = (): void => {
      resolve(null);
    };
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true, signal: over.signal });
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    over.abort();
  }
}
