import { PartKey } from '../../kernel/console/parts.js';
import type { Session } from '../../kernel/agent/session.js';
import type { Jobs } from './background.js';

/** The commands in the background of a run. */
export interface OpenedJobs {
  /** Loads their code with the first use. */
  get(): Promise<Jobs>;
  /** Null until they are first requested. */
  started(): Jobs | null;
  /** Gives jobs to a session and reports each that has ended to it, until the function that it returns is called. */
  attach(session: Session): () => void;
  /** From now on lines of jobs may begin turns: a user sees them. */
  beginTurns(): void;
  close(): void;
}

export const openedJobs = new PartKey<OpenedJobs>('background tasks');
