import type { Command } from './command.js';
import { copyCommand } from './copy-command.js';
import { eventText, pickEvent } from './event-text.js';
import type { ReplOptions } from './repl-options.js';
import { themeCommand } from './theme-command.js';

type Needed = Pick<ReplOptions, 'commands' | 'themes' | 'reasoningOf'>;

/** The commands that need nothing but the screen and the session. One of the same name from outside wins. */
function builtinCommands(all: () => readonly Command[], { themes, reasoningOf }: Needed): readonly Command[] {
  return [
    {
      name: 'help',
      aliases: ['?'],
      description: 'what one can type here',
      run: async (_argument, context) => {
        context.printMarkdown(helpText(all()));
      },
    },
    {
      name: 'show',
      argument: '[number]',
      description: 'an event in full; the last result without a number',
      run: async (argument, context) => {
        const event = pickEvent(context.session().events(), argument);
        if (event) context.print(eventText(event, reasoningOf));
        else
          context.notice(
            'error',
            argument === '' ? 'There is nothing to show yet.' : `This session has no event ${argument}.`,
          );
      },
    },
    copyCommand,
    themeCommand(themes),
    {
      name: 'exit',
      aliases: ['quit', 'q'],
      description: 'leave',
      leaves: true,
      run: async (_argument, context) => {
        context.exit();
      },
    },
  ];
}

/** Commands of the table first, then those of ours that it has not. */
export function withBuiltins(options: Needed): readonly Command[] {
  const all: Command[] = [...options.commands];
  for (const command of builtinCommands(() => all, options))
    if (!all.some((other) => other.name === command.name)) all.push(command);
  return all;
}

function helpText(commands: readonly Command[]): string {
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
    '- Enter sends; while a turn runs it goes to the model with the next results. Alt-Enter waits for the end of the turn. Up on an empty line takes the queue back.',
    '- Shift-Enter, Ctrl-J or `\\` Enter: a new line. Ctrl-R searches what was typed before. `@` completes paths.',
    '- Esc or Ctrl-C interrupts; Ctrl-C twice, or Ctrl-D on an empty line, leaves.',
    '- `!command` runs a command and shows it to the model, `!!command` only to you.',
    '- Ctrl-O shows the last result or reasoning in full, `/show N` any event. Ctrl-G opens your editor.',
    '- Ctrl-X prints results whole or only the rows that tell most, from then on.',
  ].join('\n');
}
