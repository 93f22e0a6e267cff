import type { Answers } from './answers.js';

/** What the terminal sends: `process.stdin` fits. */
export interface InputPort {
  on(event: 'data', listener: (chunk: Uint8Array | string) => void): unknown;
  off(event: 'data', listener: (chunk: Uint8Array | string) => void): unknown;
  /** Missing where the input is not a terminal. */
  setRawMode?(on: boolean): unknown;
  resume(): unknown;
  pause(): unknown;
  /** Where the terminal can be asked where it stands. */
  readonly answers?: Answers;
}

/** What draws: `process.stdout` fits. `columns` and `rows` are missing or 0 where nobody knows them. */
export interface OutputPort {
  write(text: string): unknown;
  readonly columns?: number | undefined;
  readonly rows?: number | undefined;
  on(event: 'resize', listener: () => void): unknown;
  off(event: 'resize', listener: () => void): unknown;
}

/** Runs `callback` once after `delayMs`; what it returns takes that back. */
export type Schedule = (callback: () => void, delayMs: number) => () => void;
/** Milliseconds on a clock that only goes forward. */
export type Clock = () => number;
