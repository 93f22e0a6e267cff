import { createHash } from 'node:crypto';
import { basename } from 'node:path';
import { nameSource } from '../../kernel/core/text.js';
import { readBounded } from '../../kernel/disk/bounded-file.js';
import { filesIn, type FoundFile, type SearchedFolder } from '../../kernel/config/found-files.js';
import { markdownText, oneLine, readFrontMatter } from '../../kernel/config/front-matter.js';

/** A command in a Markdown file: what the user types it for is in the file. */
export interface CommandFile {
  /** `a:b` for the file `a/b.md`, `a-b` for `a b.md`. */
  readonly name: string;
  /** One line. */
  readonly description: string;
  readonly argumentHint: string | null;
  readonly path: string;
  readonly origin: SearchedFolder['origin'];
  /** Of the file, hex. */
  readonly sha256: string;
  /** The text below its fields. */
  readonly body: string;
}

const maxBytes = 256 * 1024;
const maxDescription = 250;
const commandName = new RegExp(`^${nameSource}(?::[\\p{L}\\p{N}][\\p{L}\\p{M}\\p{N}_-]*)*$`, 'u');

/** Reads the commands of these places. The first of a name counts. Files with a name that nobody could type, empty
 * ones and those over 256 KiB are left out. */
export function commandsIn(places: readonly SearchedFolder[]): readonly CommandFile[] {
  const commands = new Map<string, CommandFile>();
  for (const place of places)
    for (const file of filesIn(place, ({ path, name, isFolder }) =>
      !isFolder && name.endsWith('.md') ? path : null,
    )) {
      const command = readCommand(file);
      if (command && !commands.has(command.name)) commands.set(command.name, command);
    }
  return [...commands.values()];
}

/** Names the command files whose names cannot be typed. */
export function unusableCommands(places: readonly SearchedFolder[]): readonly string[] {
  return places
    .flatMap((place) => filesIn(place, ({ path, name, isFolder }) => (!isFolder && name.endsWith('.md') ? path : null)))
    .filter(({ path, name }) => basename(path) !== 'SKILL.md' && !commandName.test(commandNameOf(name)))
    .map(
      ({ path }) =>
        `${path} is not a command: a name starts with a letter and has letters, digits, _, - and spaces. Rename the file.`,
    );
}

function commandNameOf(file: string): string {
  return file.normalize('NFC').replace(/\.md$/, '').replaceAll('/', ':').replaceAll(/\s+/g, '-');
}

function readCommand({ path, name: file, place }: FoundFile): CommandFile | null {
  const name = commandNameOf(file);
  if (!commandName.test(name) || basename(path) === 'SKILL.md') return null;
  const found = readBounded(path, { maxBytes, longer: 'refuse', links: 'follow' });
  if (found.kind !== 'read') return null;
  const { fields, body } = readFrontMatter(markdownText(found.bytes));
  if (body.trim() === '') return null;
  return {
    name,
    description: oneLine(fields.get('description') ?? firstText(body), maxDescription),
    argumentHint: hintOf(fields.get('argument-hint')),
    path,
    origin: place.origin,
    sha256: createHash('sha256').update(found.bytes).digest('hex'),
    body,
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
