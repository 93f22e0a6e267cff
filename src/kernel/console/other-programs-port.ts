import { PartKey } from './parts.js';
import type { ExportedSession } from './stored-session.js';

/** A session in the form of another program. */
export interface WrittenSession {
  /** Lines of JSON. */
  readonly text: string;
  /** The place where the program looks for it, below the home of the user. */
  readonly file: string;
  /** The command that continues it, in the directory of the session. */
  readonly command: string;
}

/** The programs whose sessions can be imported or exported. */
export interface OtherPrograms {
  /** The names of the programs whose sessions can be imported. */
  readonly names: readonly string[];
  /** Writes a session in the form of the program, by the name that `--format` takes. */
  readonly writers: Readonly<Record<string, (session: ExportedSession) => Promise<WrittenSession>>>;
}

export const otherPrograms = new PartKey<OtherPrograms>('other programs');
