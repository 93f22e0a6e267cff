import type { Reflow, ScreenSize } from './reflow.js';

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

/** What the terminal says of itself: its size, and where the cursor is, counted from 0. */
export interface Answer {
  readonly size: ScreenSize;
  readonly row: number;
  readonly column: number;
}

/** Asks the terminal where its cursor is and how large it is, and takes the answers out of what it sends. */
export interface Answers {
  /** What to write to ask; null where the terminal should not be asked now: it never answers, or owes too many answers.
   * `urgent`: it may owe more. */
  question(urgent: boolean): string | null;
  /** Called with each answer, oldest question first. */
  listen(onAnswer: (answer: Answer) => void): void;
  /** Whether it answers so fast that one may wait for it before every frame. */
  quick(): boolean;
  /** How many questions have no answer yet. */
  owed(): number;
  /** How long the answer to the last question may still take before one goes on without it; 0 where none is owed, or no
   * more is to be expected. */
  patienceMs(): number;
  /** Calls back once no answer is owed, or when none came for as long as one may take: an answer after that is read by
   * whoever has the terminal. */
  whenQuiet(callback: () => void): void;
  /** What it may do with its rows, the likeliest first; one where it says who it is. */
  reflow(): readonly Reflow[];
}
