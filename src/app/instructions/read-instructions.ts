import { join, relative } from 'node:path';
import { spelledOut } from '../../kernel/core/text.js';
import {
  folderCandidates,
  type InstructionPlace,
  isBelow,
  projectFolders,
  userCandidates,
} from './instruction-places.js';
import { type InstructionFile, InstructionReader, instructionBytes, type UnusedFile } from './instruction-reader.js';

interface ContextNotice {
  readonly level: 'info' | 'warn';
  readonly message: string;
}

/** The instructions that a new session begins with. */
export interface Instructions {
  /** Files for the system prompt, the most general first. */
  readonly files: readonly InstructionFile[];
  /** The block of the prompt that lists rules by their descriptions, or ''. */
  readonly list: string;
  readonly notices: readonly ContextNotice[];
}

/** Reads the files of the user and those from the root of the project down to `cwd`. */
export function openInstructions(place: InstructionPlace): InstructionReader {
  const reader = new InstructionReader(place);
  reader.add(userCandidates(place), null);
  const { root, folders } = projectFolders(place.cwd);
  for (const folder of folders) reader.add(folderCandidates(folder, root), null);
  return reader;
}

/** Reads the instructions of a new session. At most 64 KiB of each file are read, and hidden characters are removed. A
 * file that says nothing new is left out in silence. Notices name what other programs' files are used, and each file
 * that is not used. */
export function readInstructions(place: InstructionPlace): Instructions {
  const reader = openInstructions(place);
  const all = reader.files();
  const files = all.filter(({ timing }) => timing.kind === 'always');
  const list = ruleList(all);
  const warnings = [...reader.warnings(), ...unusedLine(reader.unused()), ...sizeLine(files)];
  return {
    files,
    list,
    notices: [
      ...othersLine(all, place).map((message) => ({ level: 'info' as const, message })),
      ...warnings.map((message) => ({ level: 'warn' as const, message })),
    ],
  };
}

/** The first line of the block that lists rules. */
export const listHeading = '# Rules for some tasks';

/** Lists the rules that the model reads by itself where they fit. */
export function ruleList(files: readonly InstructionFile[]): string {
  const lines = files.flatMap(({ path, timing }) => {
    if (timing.kind !== 'described') return [];
    const about = timing.description.replaceAll(/\s+/g, ' ').slice(0, 300).toWellFormed();
    return [`- ${path}: ${about === '' ? 'only where the user names it' : about}`];
  });
  if (lines.length === 0) return '';
  return `${listHeading}\n\nInstructions in files. Before a task that one of them is about, read that file and follow it.\n\n${lines.join('\n')}`;
}

const maxNamed = 8;

/** Names the files of other programs in one line; those of a folder of rules together. */
function othersLine(files: readonly InstructionFile[], { cwd, home }: InstructionPlace): readonly string[] {
  const { root } = projectFolders(cwd);
  const counts = new Map<string, { count: number; first: string }>();
  for (const { path, origin } of files) {
    if (origin === 'own' || origin === 'project') continue;
    const name = shortName(path, root, home);
    const group = /^(.*\/rules)\//.exec(name)?.[1] ?? name;
    const counted = counts.get(group) ?? { count: 0, first: name };
    counts.set(group, { ...counted, count: counted.count + 1 });
  }
  if (counts.size === 0) return [];
  const names = [...counts].map(([group, { count, first }]) => (count === 1 ? first : `${group} (${count} files)`));
  return [`Instructions of other programs are used: ${shortList(names.map(spelledOut))}. /context lists them.`];
}

function shortName(path: string, root: string, home: string): string {
  if (isBelow(path, root)) return relative(root, path);
  return isBelow(path, home) ? join('~', relative(home, path)) : path;
}

function unusedLine(unused: readonly UnusedFile[]): readonly string[] {
  if (unused.length === 0) return [];
  return [
    `Instructions that are not used: ${shortList(unused.map(({ path, reason }) => `${spelledOut(path)} (${reason})`))}.`,
  ];
}

/** A notice reports the size of the instructions where they are at least this large. */
const largeBytes = 128 * 1024;

function sizeLine(files: readonly InstructionFile[]): readonly string[] {
  const bytes = instructionBytes(files);
  if (bytes <= largeBytes) return [];
  const tokens = Math.ceil(bytes / 4);
  return [`The instructions have ${bytes} bytes, about ${tokens} tokens of every request. /context lists them.`];
}

function shortList(names: readonly string[]): string {
  const more = names.length - maxNamed;
  return more > 0 ? `${names.slice(0, maxNamed).join(', ')} and ${more} more` : names.join(', ');
}
