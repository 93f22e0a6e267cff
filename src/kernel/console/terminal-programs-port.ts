import { PartKey } from './parts.js';

/** The need of a command for the terminal. `screen`: it draws there, and nothing of it is recorded. `asks`: it
 * reads answers there, and what it prints is recorded. */
export type TerminalNeed = 'screen' | 'asks';

/** The end of a command that had the terminal. */
export interface TerminalRun {
  /** 128 plus its number after a signal; null if it was not started. */
  readonly exitCode: number | null;
  /** The text it printed; null if that was not recorded. What the user typed is never part of it. */
  readonly output: string | null;
}

/** Runs the user's own commands that need a terminal. */
export interface TerminalPrograms {
  /** Returns null for a command that needs no terminal. */
  needs(command: string): Promise<TerminalNeed | null>;
  /** Runs a command on the terminal, which the caller has released. Never rejects. */
  run(command: string, need: TerminalNeed, signal: AbortSignal): Promise<TerminalRun>;
}

export const terminalPrograms = new PartKey<TerminalPrograms>('terminal programs');
