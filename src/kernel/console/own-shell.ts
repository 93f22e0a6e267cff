import type { Session } from '../agent/session.js';
import { PartKey } from './parts.js';

/** The login shell of the user, as far as commands use it. */
export interface OwnShell {
  /** Returns the folders of its PATH once it has been read. */
  addedPath(): readonly string[];
  /** Reports to a session why the shell could not be read, until the function that it returns is called. */
  report(session: Session): () => void;
}

export const ownShell = new PartKey<OwnShell>('own shell');
