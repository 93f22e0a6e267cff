import type { Conversation } from '../core/projection.js';
import { PartKey } from './parts.js';

/** A file of instructions, as `/context` and `/memory` show it. */
export interface InstructionEntry {
  readonly path: string;
  /** Relative to the root of the project, or with `~/`. */
  readonly name: string;
  /** The program that it is written for. */
  readonly origin: string;
  readonly bytes: number;
  /** When the model gets it: `prompt`, `note`, what it waits for, or `not there yet`. */
  readonly when: string;
}

/** Lists the files of instructions of a session, with the usual ones that are missing. */
export const instructionFiles = new PartKey<
  (conversation: Pick<Conversation, 'system' | 'messages'>) => readonly InstructionEntry[]
>('instruction files');
