import type { Answers } from './answers.js';
import type { ColorDepth, CustomTheme } from './theme-style.js';

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

/** Colours of ours, none, or the user's own. */
export type ThemeChoice = 'dark' | 'light' | 'none' | CustomTheme;

/** What is known of the terminal before a byte is written. */
export interface TerminalFacts {
  readonly unicode: boolean;
  readonly colors: ColorDepth;
  readonly theme: ThemeChoice;
  /** DECSET 2026 is understood or ignored; false where it would be printed. */
  readonly synchronized: boolean;
  /** Wrapped lines are wrapped anew when the width changes (false: old xterm, the Linux console, screen). */
  readonly reflows: boolean;
  /** The terminal is known to make OSC 8 a link. */
  readonly links?: boolean;
  /** Plain lines, no cursor movement, no escape sequences: screen readers and `TERM=dumb`. */
  readonly plain: boolean;
}
