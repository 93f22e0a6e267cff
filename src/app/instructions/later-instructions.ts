import { existsSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { instructionHeading } from '../../kernel/agent/system-prompt.js';
import { type Event, knownEvent, type KnownEvent } from '../../kernel/core/event.js';
import { type Conversation, project } from '../../kernel/core/projection.js';
import { folderRules } from '../../kernel/tools/search/ignore-rules.js';
import { folderCandidates, type InstructionPlace, isBelow, projectFolders } from './instruction-places.js';
import { type InstructionFile, type InstructionReader, instructionBytes } from './instruction-reader.js';
import { openInstructions } from './read-instructions.js';

/** Most bytes of one note. The rest is given with the next file. */
const maxNoteBytes = 128 * 1024;

/** Returns what gives a session the instructions that count from the first file on that they are about: rules with
 * globs, and those of folders below the working directory. The log alone says which of them the model has, so that a
 * resume, a fork and a compaction need nothing else. `warn`: takes a sentence about a file that is not used. */
export function createFileNotes(
  place: InstructionPlace,
  warn: (message: string) => void,
): (events: readonly Event[]) => readonly string[] {
  let reader: InstructionReader | null = null;
  const folders = new Set<string>();
  return (events) => {
    const paths = lastFiles(events);
    if (paths.length === 0) return [];
    reader ??= openInstructions(place);
    const known = reader.unused().length;
    addFolders(reader, place, { paths, folders });
    for (const { path, reason } of reader.unused().slice(known)) warn(`${path} is not used: ${reason}.`);
    return noteFor(paths, reader.files(), events);
  };
}

/** Reads the instructions of the folders that hold `paths`. `folders`: those that were read before. */
export function addFolders(
  reader: InstructionReader,
  place: InstructionPlace,
  { paths, folders }: { readonly paths: readonly string[]; readonly folders: Set<string> },
): void {
  const { root } = projectFolders(place.cwd);
  const fresh = paths.flatMap((path) => foldersAbove(path, place)).filter((folder) => !folders.has(folder));
  for (const folder of new Set(fresh.toSorted((one, other) => one.length - other.length))) {
    folders.add(folder);
    reader.add(folderCandidates(folder, root), folder);
  }
}

/** Returns the folders below the working directory that hold a file, the outermost first; none behind a folder that git
 * ignores or that is another repository: what is there does not come from the project. */
function foldersAbove(path: string, { cwd, env }: InstructionPlace): readonly string[] {
  if (!isBelow(path, cwd) || path === cwd) return [];
  const found: string[] = [];
  const names = relative(cwd, dirname(path))
    .split('/')
    .filter((name) => name !== '');
  let rules = folderRules({ folder: cwd, shown: '', env });
  let folder = cwd;
  for (const name of names) {
    folder = join(folder, name);
    if (name === 'node_modules' || rules.skips(name, true) || existsSync(join(folder, '.git'))) break;
    found.push(folder);
    rules = rules.inside(name);
  }
  return found;
}

/** Returns the files that the calls of the last response read or wrote, links resolved. All calls of a response are
 * recorded before the first result. */
function lastFiles(events: readonly Event[]): readonly string[] {
  const results = events.slice(events.findLastIndex(({ kind }) => kind === 'tool_call') + 1).map(knownEvent);
  if (results.some(endsResponse)) return [];
  const paths = results.flatMap((event) =>
    event?.kind === 'tool_result' && event.data.success ? (event.data.files ?? []).map(({ path }) => path) : [],
  );
  return [...new Set(paths)];
}

function endsResponse(event: KnownEvent | null): boolean {
  if (event?.kind === 'user') return event.data?.note !== true;
  return event?.kind === 'rewind' || event?.kind === 'compaction';
}

/** Returns true for a file that counts from one of `paths` on. */
function isAbout({ timing, folder }: InstructionFile, paths: readonly string[]): boolean {
  if (timing.kind === 'files') return paths.some((path) => timing.fits(path));
  return timing.kind === 'always' && folder !== null && paths.some((path) => isBelow(path, folder));
}

function noteFor(
  paths: readonly string[],
  files: readonly InstructionFile[],
  events: readonly Event[],
): readonly string[] {
  const about = files.filter((file) => isAbout(file, paths));
  if (about.length === 0) return [];
  const has = instructionsOf(project(events));
  const missing = about.filter((file) => !has(file.path));
  const texts: string[] = [];
  let room = maxNoteBytes;
  for (const file of missing) {
    room -= instructionBytes([file]);
    if (room < 0 && texts.length > 0) break;
    texts.push(laterText(file));
  }
  if (texts.length === 0) return [];
  return [`[Note: the files of the last calls have these instructions.]\n\n${texts.join('\n\n')}`];
}

/** Returns a text as a note has it: with the files that it is about. */
export function laterText(file: InstructionFile): string {
  const { timing, folder, text } = file;
  const scope = timing.kind === 'files' ? timing.globs.join(', ') : `the files in ${folder ?? ''}`;
  return `${instructionHeading(file)}\n(for ${scope})\n\n${text.trim()}`;
}

/** Returns the texts of a conversation that may hold instructions. */
function textsOf({ system, messages }: Pick<Conversation, 'system' | 'messages'>): readonly string[] {
  return [system, ...messages.flatMap((message) => (message.role === 'user' ? [message.content] : []))];
}

/** Returns a test for the files whose text a conversation has. */
export function instructionsOf(conversation: Pick<Conversation, 'system' | 'messages'>): (path: string) => boolean {
  const texts = textsOf(conversation);
  return (path) => texts.some((text) => `\n${text}\n`.includes(`\n${instructionHeading({ path })}\n`));
}

/** Returns the paths of the files whose text a conversation has. */
export function instructionPaths(conversation: Pick<Conversation, 'system' | 'messages'>): readonly string[] {
  return pathsIn(textsOf(conversation));
}

/** Returns the paths that the headings of instructions in texts name. */
export function pathsIn(texts: readonly string[]): readonly string[] {
  const paths = texts.flatMap((text) =>
    [...text.matchAll(/^# Instructions from (.+)$/gm)].map(([, path = '']) => path),
  );
  return [...new Set(paths)];
}
