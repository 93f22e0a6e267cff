import type { FileOrigin, LeftOutFile } from '../config/found-files.js';
import { sanitize } from '../core/sanitize.js';
import { didYouMean } from '../core/text.js';
import { CliError, type CommandLine, exit, type CommandHandler } from './command.js';
import { printJson, printListing } from './line-output.js';

interface Options {
  readonly json?: boolean;
}

/** The fields that each row of a listing begins with. Source: contracts, "Compatibility". */
export interface ListedFile {
  readonly name: string;
  readonly origin: FileOrigin;
  /** Null: it comes with the program. */
  readonly path: string | null;
  readonly active: boolean;
  /** The reason why it is not active. */
  readonly reason: string | null;
}

type Named = Pick<ListedFile, 'name' | 'origin' | 'path'>;

/** Returns the first fields of a row. `reason`: why the file is not used; null for one that is. */
export function listedFile({ name, origin, path }: Named, reason: string | null): ListedFile {
  return { name, origin, path, active: reason === null, reason };
}

/** The reason why files of a project are not used before they are trusted. */
export const notTrusted = 'not trusted; review it with agent config trust';

/** Returns the rows of files that are not used: hidden by others of the same name, faulty, or not trusted. */
export function inactiveFiles({
  shadowed = [],
  leftOut = [],
  untrusted = [],
}: {
  readonly shadowed?: readonly Named[];
  readonly leftOut?: readonly LeftOutFile[];
  readonly untrusted?: readonly Named[];
}): readonly ListedFile[] {
  return [
    ...shadowed.map((file) => listedFile(file, 'another one of the same name comes first')),
    ...leftOut.map((file) => listedFile(file, file.reason)),
    ...untrusted.map((file) => listedFile(file, notTrusted)),
  ];
}

/** Returns a line for each file that is not used. */
export function inactiveLines(files: readonly ListedFile[]): readonly string[] {
  return files.map(({ name, path, reason }) => `${name}: not used, ${path ?? ''}: ${reason ?? ''}`);
}

/** Files that the user wrote for this program or another agent, as a listing shows them. */
export interface Listing {
  /** One JSON object each. */
  readonly rows: readonly object[];
  readonly lines: readonly string[];
  /** Sentences about the parts of the files that do not count. */
  readonly problems: readonly string[];
}

/** Reads the files that a command lists. */
export type List = (line: CommandLine) => Promise<Listing>;

/** Makes the command that lists files. */
export function listVerb(example: string, list: List): CommandHandler {
  return {
    line: {
      example,
      options: (command) => command.option('--json', 'one JSON array'),
      run: async (line, _args, { json }: Options) => {
        const { rows, lines, problems } = await list(line);
        for (const problem of problems) line.out.error(`agent: ${problem}\n`);
        printListing(line.out, json, rows, () => lines);
        return exit.done;
      },
    },
  };
}

/** Reads the files and says what is wrong with them. Ends with 2 where something is. */
export function checkVerb(example: string, what: string, list: List): CommandHandler {
  return {
    line: {
      example,
      options: (command) => command.option('--json', 'one JSON array of the problems'),
      run: async (line, _args, { json }: Options) => {
        const { rows, problems } = await list(line);
        const good = `${what}: ${rows.length} found, no problems`;
        printListing(
          line.out,
          json,
          problems.map((message) => ({ message })),
          () => (problems.length === 0 ? [good] : problems.map((problem) => sanitize(problem))),
        );
        return problems.length === 0 ? exit.done : exit.usage;
      },
    },
  };
}

/** Makes the command that shows one of them. */
export function showVerb(
  example: string,
  show: (line: CommandLine, name: string) => Promise<{ readonly row: unknown; readonly lines: readonly string[] }>,
): CommandHandler {
  return {
    line: {
      example,
      options: (command) => command.option('--json', 'as JSON'),
      run: async (line, [name = ''], { json }: Options) => {
        const { row, lines } = await show(line, name);
        if (json) printJson(line.out, row, 2);
        else line.out.print(`${sanitize(lines.join('\n'))}\n`);
        return exit.done;
      },
    },
  };
}

/** Returns the error for a name that is none of `names`. */
export function unknownName(kind: string, name: string, names: readonly string[]): CliError {
  const known = names.length === 0 ? `There are no ${kind}s.` : `Known: ${[...new Set(names)].join(', ')}`;
  return new CliError(exit.usage, `there is no ${kind} \`${name}\``, `${didYouMean(name, names)} ${known}`.trim());
}

/** Notices about files that are not used. */
export interface Aside {
  readonly aside: readonly { readonly message: string }[];
}
