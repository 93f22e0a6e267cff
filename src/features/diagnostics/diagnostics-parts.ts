import type { Session } from '../../kernel/agent/session.js';
import { PartKey } from '../../kernel/console/parts.js';

/** A language server as `/diagnostics` shows it. */
export interface ServerState {
  readonly name: string;
  /** The ends of its files: `.ts`. */
  readonly ends: readonly string[];
  readonly install: string;
  /** Null: there is none on this machine. */
  readonly file: string | null;
  /** `waiting`: it starts with the first edit of such a file. */
  readonly state: 'running' | 'waiting' | 'stopped' | 'missing';
  readonly openFiles?: number;
  readonly problem?: string;
}

/** The checks of edits in a run. */
export interface Diagnostics {
  readonly isOn: boolean;
  states(): Promise<readonly ServerState[]>;
  /** Gives a session the notes about its edits, until the function that it returns is called. */
  follow(session: Session): () => void;
}

export const diagnosticsPart = new PartKey<Diagnostics>('diagnostics');
