import type { Command } from 'commander';
import { didYouMean } from '../../core/text.js';
import { CliError, exit } from '../cli-error.js';
import type { Verb } from '../command.js';

export const showHelp: Verb = {
  line: {
    example: 'agent help sessions list',
    run: async ({ program }, words) => {
      commandOf(program, words).outputHelp();
      return exit.done;
    },
  },
};

export const showVersion: Verb = {
  line: {
    example: 'agent version',
    run: async ({ out, program }) => {
      out.print(`${program.version() ?? ''}\n`);
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
