import { existsSync } from 'node:fs';
import { join, relative } from 'node:path';
import type { Conversation } from '../../kernel/core/projection.js';
import type { InstructionEntry } from '../../kernel/console/instruction-files.js';
import { type InstructionPlace, isBelow, projectFolders } from './instruction-places.js';
import { type InstructionFile, instructionBytes } from './instruction-reader.js';
import { addFolders, instructionPaths, instructionsOf } from './later-instructions.js';
import { openInstructions } from './read-instructions.js';

/** Lists the files of instructions of a session, with those that wait for a file that they are about. */
export function listInstructions(
  place: InstructionPlace,
  conversation: Pick<Conversation, 'system' | 'messages'>,
): readonly InstructionEntry[] {
  const reader = openInstructions(place);
  const has = instructionsOf(conversation);
  addFolders(reader, place, { paths: instructionPaths(conversation), folders: new Set() });
  return reader.files().map((file) => ({
    path: file.path,
    name: nameOf(file.path, place),
    origin: file.origin,
    bytes: instructionBytes([file]),
    when: whenOf(file, has(file.path)),
  }));
}

/** Returns the files of instructions of a session, and those that a user would write first where they are missing. */
export function editableInstructions(
  place: InstructionPlace,
  conversation: Pick<Conversation, 'system' | 'messages'>,
): readonly InstructionEntry[] {
  const listed = listInstructions(place, conversation);
  const usual = [
    { path: join(projectFolders(place.cwd).root, 'AGENTS.md'), origin: 'project' },
    { path: join(place.userDir, 'AGENTS.md'), origin: 'own' },
  ] as const;
  const missing = usual.filter(({ path }) => !existsSync(path));
  return [
    ...listed,
    ...missing.map(({ path, origin }) => ({
      path,
      name: nameOf(path, place),
      origin,
      bytes: 0,
      when: 'not there yet',
    })),
  ];
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
