/** The program's own log file. Never on stdout; keys and headers are never passed to it. `detail`: worth a line with
 * `--debug` alone. */
export type Log = (entry: {
  readonly at: string;
  readonly message: string;
  readonly detail?: true;
  readonly [extra: string]: unknown;
}) => void;

/** Runs `callback` once after `delayMs`; the function it returns cancels that. */
export type Schedule = (callback: () => void, delayMs: number) => () => void;

/** Milliseconds on a clock that only goes forward. */
export type Clock = () => number;

/** What is loaded at its first use. */
export interface LoadedOnce<T> {
  /** What was loaded. A load that failed is not kept: the next call tries again. */
  get(): Promise<T>;
  /** What is loaded or being loaded, or null: for closing what was opened, and nothing else. */
  started(): Promise<T> | null;
}

/** Every promise that is kept for later calls is kept here; test/architecture.test.ts holds it. */
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
