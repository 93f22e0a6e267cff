import { relative } from 'node:path';
import type { Conversation } from '../../kernel/core/projection.js';
import { type InstructionOrigin, type InstructionPlace, isBelow, projectFolders } from './instruction-places.js';
import { type InstructionFile, instructionBytes } from './instruction-reader.js';
import { addFolders, instructionPaths, instructionsOf } from './later-instructions.js';
import { openInstructions } from './read-instructions.js';

/** A file of instructions, as `/context` shows it. */
export interface ListedInstruction {
  /** Relative to the root of the project, or with `~/`. */
  readonly name: string;
  readonly origin: InstructionOrigin;
  readonly bytes: number;
  /** When the model gets it: `prompt`, `note`, or what it waits for. */
  readonly when: string;
}

/** Lists the files of instructions of a session, with those that wait for a file that they are about. */
export function listInstructions(
  place: InstructionPlace,
  conversation: Pick<Conversation, 'system' | 'messages'>,
): readonly ListedInstruction[] {
  const reader = openInstructions(place);
  const has = instructionsOf(conversation);
  addFolders(reader, place, { paths: instructionPaths(conversation), folders: new Set() });
  return reader.files().map((file) => ({
    name: nameOf(file.path, place),
    origin: file.origin,
    bytes: instructionBytes([file]),
    when: whenOf(file, has(file.path)),
  }));
}

function whenOf({ timing, folder }: InstructionFile, isGiven: boolean): string {
  if (timing.kind === 'described') return 'read where it fits';
  if (timing.kind === 'always' && folder === null) return isGiven ? 'prompt' : 'from the next session on';
  if (isGiven) return 'note';
  return timing.kind === 'files' ? `waits for ${timing.globs.join(', ')}` : 'waits for a file of its folder';
}

function nameOf(path: string, { cwd, home }: InstructionPlace): string {
  const { root } = projectFolders(cwd);
  if (isBelow(path, root)) return relative(root, path);
  return isBelow(path, home) ? `~/${relative(home, path)}` : path;
}
