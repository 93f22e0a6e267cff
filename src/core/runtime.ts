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
