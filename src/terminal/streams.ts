import type { Reflow, ScreenSize } from './reflow.js';

/** What the terminal sends: `process.stdin` fits. */
export interface InputPort {
  on(event: 'data', listener: (chunk: Uint8Array | string) => void): unknown;
  off(event: 'data', listener: (chunk: Uint8Array | string) => void): unknown;
  /** Missing where the input is not a terminal. */
  setRawMode?(on: boolean): unknown;
  resume(): unknown;
  pause(): unknown;
  /** Present if the terminal can be asked where its cursor is. */
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

/** The terminal's answer: its size, and where the cursor is, counted from 0. */
export interface Answer {
  readonly size: ScreenSize;
  readonly row: number;
  readonly column: number;
}

/** Asks the terminal where its cursor is and how large it is, and takes the answers out of its input. */
export interface Answers {
  /** Returns the sequence that asks; null if the terminal never answers or owes too many answers. An `urgent` question
   * may add to those. */
  question(urgent: boolean): string | null;
  /** Registers a listener. It is called with each answer, in the order of the questions. */
  listen(onAnswer: (answer: Answer) => void): void;
  /** Returns whether it answers so fast that a frame may wait for the answer. */
  quick(): boolean;
  /** Returns the number of questions without an answer. */
  owed(): number;
  /** Returns how long to wait for the answer to the last question; 0 if no answer is owed or expected. */
  patienceMs(): number;
  /** Calls back once no answer is owed, or after the longest time an answer may take. Whoever has the terminal then
   * reads a later answer as keys. */
  whenQuiet(callback: () => void): void;
  /** Returns what it may do with its rows, the likeliest first; one entry if it says which terminal it is. */
  reflow(): readonly Reflow[];
}
