import { parseEnvelope, isError } from '../core/envelope.js';
import { knownEvent, type Event } from '../core/event.js';
import type { Command } from './command.js';
import { copyCommand } from './copy-command.js';
import type { ReplOptions } from './repl-options.js';
import { themeCommand, type Themes } from './theme-command.js';

/** The commands that need nothing but the screen and the session. One of the same name from outside wins. */
function builtinCommands(all: () => readonly Command[], themes: Themes | undefined): readonly Command[] {
  return [
    {
      name: 'help', aliases: ['?'], description: 'what one can type here',
      run: async (_argument, context) => { context.printMarkdown(helpText(all())); },
    },
    {
      name: 'show', argument: '[number]', description: 'an event in full; the last result without a number',
      run: async (argument, context) => {
        const event = pickEvent(context.session().events(), argument);
        if (event) context.print(eventText(event));
        else context.notice('error', argument === '' ? 'There is nothing to show yet.' : `This session has no event ${argument}.`);
      },
    },
    copyCommand,
    themeCommand(themes),
    { name: 'exit', aliases: ['quit', 'q'], description: 'leave', run: async (_argument, context) => { context.exit(); } },
  ];
}

/** Commands of the table first, then those of ours that it has not. */
export function withBuiltins({ commands, themes }: Pick<ReplOptions, 'commands' | 'themes'>): readonly Command[] {
  const all: Command[] = [...commands];
  for (const command of builtinCommands(() => all, themes)) if (!all.some((other) => other.name === command.name)) all.push(command);
  return all;
}

export function pickEvent(events: readonly Event[], argument: string): Event | undefined {
  return argument === '' ? events.findLast((event) => event.kind === 'tool_result') : events.find((event) => String(event.seq) === argument);
}

/** The call that `result` answers. */
export function callOf(events: readonly Event[], result: Event): Event | undefined {
  const answer = knownEvent(result);
  if (answer?.kind !== 'tool_result') return undefined;
  return events.findLast((raw) => {
    const call = raw.kind === 'tool_call' ? knownEvent(raw) : null;
    return call?.kind === 'tool_call' && call.data.id === answer.data.tool_call_id;
  });
}

/** An event whole, as a reader wants it. */
export function eventText(raw: Event): string {
  const event = knownEvent(raw);
  if (event?.kind === 'tool_call') return `${event.content}\n${event.data.function.arguments}`;
  if (event?.kind === 'tool_result') {
    const envelope = parseEnvelope(event.data.output);
    const output = isError(envelope) ? JSON.stringify(envelope, null, 2) : envelope.output;
    return [event.content, ...(event.data.diff === undefined ? [] : [event.data.diff]), ...(output === event.content ? [] : [output])].join('\n');
  }
  return raw.content ?? JSON.stringify(raw.data, null, 2);
}

function helpText(commands: readonly Command[]): string {
  const rows = commands.map((command) => `- \`/${command.name}${command.argument === undefined ? '' : ` ${command.argument}`}\` ${command.description}`);
  return [
    '## Commands', '', ...rows, '', '## Keys', '',
    '- Enter sends; while a turn runs it goes to the model with the next results. Alt-Enter waits for the end of the turn. Up on an empty line takes the queue back.',
    '- Shift-Enter, Ctrl-J or `\\` Enter: a new line. Ctrl-R searches what was typed before. `@` completes paths.',
    '- Esc or Ctrl-C interrupts; Ctrl-C twice, or Ctrl-D on an empty line, leaves.',
    '- `!command` runs a command and shows it to the model, `!!command` only to you.',
    '- Ctrl-O shows the last result in full, `/show N` any event. Ctrl-G opens your editor.',
  ].join('\n');
}
