import { createHash } from 'node:crypto';
import { basename } from 'node:path';
import { nameSource } from '../../kernel/core/text.js';
import { readBounded } from '../../kernel/disk/bounded-file.js';
import {
  type FileOrigin,
  filesIn,
  type FoundFile,
  type LeftOutFile,
  nameIn,
  type SearchedFolder,
  withVariables,
} from '../../kernel/config/found-files.js';
import { markdownText, oneLine, readFrontMatter } from '../../kernel/config/front-matter.js';
import { readCommandFields, type CommandFields } from './turn-fields.js';
import { unusedFields } from './unused-fields.js';

/** A command in a Markdown file: what the user types it for is in the file. */
export interface CommandFile extends CommandFields {
  /** `a:b` for the file `a/b.md`, `a-b` for `a b.md`. */
  readonly name: string;
  /** One line. */
  readonly description: string;
  readonly argumentHint: string | null;
  readonly path: string;
  readonly origin: FileOrigin;
  /** Of the file, hex. */
  readonly sha256: string;
  readonly bytes: number;
  /** The text below its fields. */
  readonly body: string;
  /** Fields that have no effect here. */
  readonly unused: readonly string[];
}

const maxBytes = 256 * 1024;
const maxDescription = 250;
const commandName = new RegExp(`^${nameSource}(?::${nameSource})*$`, 'u');

export interface FoundCommands {
  /** The first of each name. */
  readonly commands: readonly CommandFile[];
  /** The commands that another one of the same name hides. */
  readonly shadowed: readonly CommandFile[];
  /** The files that are no commands: names that cannot be typed, empty files, and those over 256 KiB. */
  readonly leftOut: readonly LeftOutFile[];
}

/** Reads the commands of these places. */
export function findCommands(places: readonly SearchedFolder[]): FoundCommands {
  const commands = new Map<string, CommandFile>();
  const shadowed: CommandFile[] = [];
  const leftOut: LeftOutFile[] = [];
  for (const file of places.flatMap(markdownIn)) {
    const command = readCommand(file);
    const { path, place } = file;
    if (typeof command === 'string')
      leftOut.push({ name: commandNameOf(file), path, origin: place.origin, reason: command });
    else if (commands.has(command.name)) shadowed.push(command);
    else commands.set(command.name, command);
  }
  return { commands: [...commands.values()], shadowed, leftOut };
}

export function commandsIn(places: readonly SearchedFolder[]): readonly CommandFile[] {
  return findCommands(places).commands;
}

/** The skills of a plugin may lie among its commands. */
function markdownIn(place: SearchedFolder): readonly FoundFile[] {
  const isCommand = (path: string): boolean => path.endsWith('.md') && basename(path) !== 'SKILL.md';
  return filesIn(place, ({ path, isFolder }) => (!isFolder && isCommand(path) ? path : null));
}

/** Names the command files whose names cannot be typed. */
export function unusableCommands(places: readonly SearchedFolder[]): readonly string[] {
  return places
    .flatMap(markdownIn)
    .filter((file) => !commandName.test(commandNameOf(file)))
    .map(({ path }) => `${path} is not a command: ${untypable}. Rename the file.`);
}

/** Returns why a file of this name, without its ending, is no command; null where it can be one. */
export function commandNameProblem(name: string): string | null {
  return commandName.test(name.normalize('NFC').replaceAll('/', ':')) ? null : untypable;
}

const untypable = 'a name starts with a letter or a digit and has letters, digits, ., _, - and spaces';

function commandNameOf({ name, place }: FoundFile): string {
  const own = name.normalize('NFC').replace(/\.md$/, '').replaceAll('/', ':').replaceAll(/\s+/g, '-');
  return nameIn(place, own);
}

/** A text says why a file is no command. */
function readCommand(file: FoundFile): CommandFile | string {
  const { path, place } = file;
  const name = commandNameOf(file);
  if (!commandName.test(name)) return untypable;
  const found = readBounded(path, { maxBytes, longer: 'refuse', links: 'follow' });
  if (found.kind === 'refused') return `it cannot be read: ${found.reason}`;
  if (found.kind === 'missing') return 'it is gone';
  const { fields, body } = readFrontMatter(markdownText(found.bytes));
  if (body.trim() === '') return 'it has no text';
  return {
    name,
    description: oneLine(fields.get('description') ?? firstText(body), maxDescription),
    argumentHint: hintOf(fields.get('argument-hint')),
    path,
    origin: place.origin,
    sha256: createHash('sha256').update(found.bytes).digest('hex'),
    bytes: found.bytes.length,
    body: withVariables(place, body),
    ...readCommandFields(fields, 'command'),
    unused: unusedFields(fields),
  };
}

function hintOf(hint: string | undefined): string | null {
  return hint === undefined || hint.trim() === '' ? null : oneLine(hint, 60);
}

function firstText(body: string): string {
  return (
    body
      .split('\n')
      .find((line) => line.trim() !== '')
      ?.replace(/^#+\s*/, '') ?? ''
  );
}
