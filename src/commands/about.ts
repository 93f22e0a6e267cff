import type { Command } from 'commander';
import { didYouMean } from '../kernel/core/text.js';
import { createKeyMap, type KeyMap, keyRows } from '../ui/editor/keybindings.js';
import { groupHeading, type SlashCommand } from '../kernel/console/slash-command.js';
import { CliError, exit, type CommandHandler } from '../kernel/console/command.js';
import { manPage } from './man-page.js';

export const showHelp: CommandHandler = {
  line: {
    example: 'agent help sessions list',
    options: (command) => command.option('--man', 'print the manual page'),
    run: async ({ out, program }, words, { man }: { man?: boolean }) => {
      if (man) {
        out.data(manPage(program.root));
        return exit.done;
      }
      commandOf(program.root, words).outputHelp();
      return exit.done;
    },
  },
  slash: async (argument, { screen, commands, settings }) => {
    const keys = createKeyMap(settings.config.ui.bindings);
    if (argument !== '' && argument !== 'keys')
      screen.notice('error', `There is no help on ${argument}. There is /help, and /help keys for all keys.`);
    else screen.print(argument === 'keys' ? allKeys(keys) : helpText(commands(), keys), 'markdown');
  },
};

export const showKeys: CommandHandler = {
  slash: (_argument, { screen, settings }) => {
    screen.print(allKeys(createKeyMap(settings.config.ui.bindings)), 'markdown');
    return Promise.resolve();
  },
};

export const showVersion: CommandHandler = {
  line: {
    example: 'agent version',
    run: async ({ out, program }) => {
      out.print(`${program.root.version() ?? ''}\n`);
      return exit.done;
    },
  },
};

function commandOf(program: Command, words: readonly string[]): Command {
  return words.reduce((above, word) => {
    const found = above.commands.find((command) => command.name() === word);
    if (found) return found;
    const names = above.commands.map((command) => command.name());
    const known = names.length === 0 ? '' : `${didYouMean(word, names)} Known: ${names.join(', ')}. `.trimStart();
    throw new CliError(
      exit.usage,
      `there is no command \`${words.join(' ')}\``,
      `${known}Put a prompt that begins with the name of a command after --.`,
    );
  }, program);
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|');
}

/** Every action of the input with its keys, and the name that `ui.bindings` has for it. */
function allKeys(keys: KeyMap): string {
  const rows = keyRows(keys, { edits: true }).map(
    ({ action, keys: shown, about }) => `| ${cell(shown === '' ? '-' : shown)} | ${cell(about)} | ${action} |`,
  );
  return ['| Key | | Action |', '| --- | --- | --- |', ...rows].join('\n');
}

function commandRow({ name, aliases = [], argument, description }: SlashCommand): string {
  const others = aliases.length === 0 ? '' : ` (${aliases.map((alias) => `/${alias}`).join(', ')})`;
  return `| ${cell(`/${name}${argument === undefined ? '' : ` ${argument}`}`)} | ${cell(description + others)} |`;
}

function helpText(commands: readonly SlashCommand[], map: KeyMap): string {
  const headings = [...new Set(commands.map(groupHeading))];
  const tables = headings.flatMap((heading) => [
    `## ${heading}`,
    '',
    '| Command | |',
    '| --- | --- |',
    ...commands.filter((command) => groupHeading(command) === heading).map(commandRow),
    '',
  ]);
  return [
    ...tables,
    '## Keys',
    '',
    ...keyRows(map, { edits: false }).flatMap(({ keys, about }) => (keys === '' ? [] : [`- ${keys}: ${about}.`])),
    '- `\\` Enter: a new line. `@` completes paths, `?` on the empty line shows the keys, /help keys all of them.',
    '- `!command` runs a command and shows it to the model, `!!command` only to you. `/show N` shows any event.',
  ].join('\n');
}
