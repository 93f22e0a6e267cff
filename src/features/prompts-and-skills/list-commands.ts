import {
  checkVerb,
  inactiveFiles,
  inactiveLines,
  type List,
  listedFile,
  type ListedFile,
  type Listing,
  listVerb,
  showVerb,
  unknownName,
} from '../../kernel/console/listed-files.js';
import type { CommandHandler } from '../../kernel/console/command.js';
import type { Settings } from '../../kernel/console/run-settings.js';
import { asideNotices, placesHere } from '../../kernel/config/project.js';
import { sanitize } from '../../kernel/core/sanitize.js';
import { type CommandFile, findCommands } from './command-files.js';
import { turnLines, turnRow } from './turn-fields.js';
import { unusedLine } from './unused-fields.js';

interface CommandsHere {
  readonly commands: readonly CommandFile[];
  readonly inactive: readonly ListedFile[];
  /** Sentences. */
  readonly problems: readonly string[];
}

async function findAll(settings: Settings): Promise<CommandsHere> {
  const { counting, aside } = await placesHere(settings, 'commands');
  const { commands, shadowed, leftOut } = findCommands(counting);
  const isTaken = ({ name }: CommandFile): boolean => settings.commandNames.includes(name);
  const taken = commands
    .filter(isTaken)
    .map((command) => listedFile(command, `/${command.name} is a command of the program`));
  return {
    commands: commands.filter((command) => !isTaken(command)),
    inactive: [...taken, ...inactiveFiles({ shadowed, leftOut, untrusted: findCommands(aside).commands })],
    problems: [
      ...leftOut.map(({ path, reason }) => `${path} is not a command: ${reason}.`),
      ...(await asideNotices(settings)).map(({ message }) => message),
    ],
  };
}

function rowOf(command: CommandFile): Readonly<Record<string, unknown>> {
  const { description, argumentHint, unused } = command;
  return { ...listedFile(command, null), description, argument_hint: argumentHint, ...turnRow(command), unused };
}

function linesOf(command: CommandFile): readonly string[] {
  const { name, origin, description, path, unused } = command;
  return [`/${name} (${origin}): ${description}`, `  ${path}`, ...turnLines(command), ...unusedLine(unused)];
}

const noCommands =
  'There are no commands in files. A command is a Markdown file in ~/.config/agent/commands, ~/.claude/commands, or .agent/commands of a project.';

const commandsOf: List = async ({ settings }): Promise<Listing> => {
  const { commands, inactive, problems } = await findAll(await settings());
  const rows = [...commands.map(rowOf), ...inactive];
  const lines = [...commands.flatMap(linesOf), ...inactiveLines(inactive)];
  return { rows, lines: rows.length === 0 ? [noCommands] : lines, problems };
};

export const listCommands: CommandHandler = listVerb('agent commands list --json', commandsOf);

/** Shows a command with its text. */
export const showCommand: CommandHandler = showVerb('agent commands show fix-issue', async ({ settings }, name) => {
  const { commands } = await findAll(await settings());
  const command = commands.find((one) => one.name === name.replace(/^\//, ''));
  if (!command)
    throw unknownName(
      'command',
      name,
      commands.map((one) => one.name),
    );
  const { body } = command;
  return { row: { ...rowOf(command), text: body }, lines: [...linesOf(command), '', sanitize(body)] };
});

export const checkCommands: CommandHandler = checkVerb('agent commands check', 'commands', commandsOf);
