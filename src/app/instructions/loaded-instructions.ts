import { basename } from 'node:path';
import type { LoadedInstructions } from '../../kernel/core/hooks.js';
import type { Conversation } from '../../kernel/core/projection.js';
import { type InstructionPlace, isBelow, projectFolders } from './instruction-places.js';
import type { InstructionFile } from './instruction-reader.js';
import { addFolders, instructionPaths, instructionsOf } from './later-instructions.js';
import { openInstructions } from './read-instructions.js';

/** Makes what returns the files of instructions that a conversation has got since the last call, for hooks. */
export function createLoadedInstructions(
  place: InstructionPlace,
): (conversation: Pick<Conversation, 'system' | 'messages'>) => readonly LoadedInstructions[] {
  const known = new Set<string>();
  return (conversation) => {
    const paths = instructionPaths(conversation);
    if (paths.every((path) => known.has(path))) return [];
    const reader = openInstructions(place);
    addFolders(reader, place, { paths, folders: new Set() });
    const has = instructionsOf(conversation);
    const { root } = projectFolders(place.cwd);
    const loaded = reader.files().filter(({ path }) => has(path) && !known.has(path));
    for (const path of paths) known.add(path);
    return loaded.map((file) => describeFile(file, root));
  };
}

function describeFile({ path, folder, timing }: InstructionFile, root: string): LoadedInstructions {
  const inProject = basename(path).includes('.local.') ? 'Local' : 'Project';
  const fromFolder = folder === null ? 'session_start' : 'nested_traversal';
  return {
    path,
    memory: isBelow(path, root) ? inProject : 'User',
    reason: timing.kind === 'files' ? 'path_glob_match' : fromFolder,
    globs: timing.kind === 'files' ? timing.globs : null,
  };
}
