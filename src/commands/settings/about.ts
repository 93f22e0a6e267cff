import type { Command } from 'commander';
import { didYouMean } from '../../core/text.js';
import type { Command as SlashCommand } from '../../ui/slash-command.js';
import { CliError, exit, type Verb } from '../command.js';

export const showHelp: Verb = {
  line: {
    example: 'agent help sessions list',
    run: async ({ program }, words) => {
      commandOf(program.root, words).outputHelp();
      return exit.done;
    },
  },
  slash: async (_argument, { screen, commands }) => {
    screen.print(helpText(commands()), 'markdown');
  },
};

export const showVersion: Verb = {
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
      `${known}A prompt that begins with the name of a command goes behind --.`,
    );
  }, program);
}

function helpText(commands: readonly SlashCommand[]): string {
  const cell = (text: string): string => text.replaceAll('|', '\\|');
  const rows = commands.map(
    ({ name, argument, description }) =>
      `| ${cell(`/${name}${argument === undefined ? '' : ` ${argument}`}`)} | ${cell(description)} |`,
  );
  return [
    '| Command | |',
    '| --- | --- |',
    ...rows,
    '',
    '## Keys',
    '',
    '- Enter sends; while a turn runs it goes to the model with the next results. ' +
      'Alt-Enter waits for the end of the turn. Up on an empty line takes the queue back.',
    '- Shift-Enter, Ctrl-J or `\\` Enter: a new line. Ctrl-R searches what was typed before. `@` completes paths.',
    '- Esc or Ctrl-C interrupts; Ctrl-C twice, or Ctrl-D on an empty line, leaves.',
    '- `!command` runs a command and shows it to the model, `!!command` only to you.',
    '- Ctrl-O shows the last result or reasoning in full, `/show N` any event. Ctrl-G opens your editor.',
    '- Ctrl-V takes the picture in the clipboard; so does the path of one that is pasted or dragged here.',
    '- Shift-Tab goes on to the next approval mode, plan mode among them.',
    '- Ctrl-B sends a running command to the background; /jobs shows what is there (--tools +jobs).',
    '- Ctrl-X prints results whole or only the rows that tell most, from then on.',
  ].join('\n');
}
