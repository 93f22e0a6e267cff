import { type Token, walkTokens } from 'marked';
import { type Event, knownEvent } from '../../core/event.js';
import { reasoningText } from '../../providers/wires/layout.js';
import { counted } from '../../tools/outcome.js';
import { eventText, pickEvent } from '../../ui/event-text.js';
import { lexMarkdown } from '../../ui/markdown/incremental.js';
import type { Repl, Verb } from '../command.js';

/** `/show`: an event in full; the last result without a number. */
export const showEvent: Verb = {
  slash: async (argument, { screen, sessions }) => {
    const event = pickEvent(sessions.current().session.events(), argument);
    if (event) screen.print(eventText(event, reasoningText));
    else
      screen.notice(
        'error',
        argument === '' ? 'There is nothing to show yet.' : `This session has no event ${argument}.`,
      );
  },
};

/** `/diff`: what the calls of this session changed in files. */
export const showChanges: Verb = {
  slash: async (_argument, { screen, sessions }) => {
    const diffs = sessions
      .current()
      .session.events()
      .flatMap((raw) => {
        const event = knownEvent(raw);
        return event?.kind === 'tool_result' && event.data.diff
          ? [`[${event.seq}] ${event.content}\n${event.data.diff}`]
          : [];
      });
    if (diffs.length > 0) await screen.page('Changes', diffs.join('\n'));
    else screen.notice('info', 'No file was written or edited in this session.');
  },
};

/** Some terminals silently refuse more bytes than this. */
const mostBytes = 74_994;

/** `/copy`: the last answer as it was written, or one code block of it. */
export const copyAnswer: Verb = { slash: copy };

async function copy(argument: string, { screen, sessions }: Repl): Promise<void> {
  const answer = lastAnswer(sessions.current().session.events());
  if (answer === null) {
    screen.notice('warn', 'There is no answer to copy yet.');
    return;
  }
  const blocks = codeBlocks(answer);
  const text = argument === '' ? answer : blocks[Number(argument) - 1];
  if (text === undefined) {
    const range = blocks.length > 1 ? `/copy 1 to /copy ${blocks.length}` : '/copy 1';
    screen.notice(
      'warn',
      blocks.length === 0
        ? 'The last answer has no code block.'
        : `The last answer has ${counted(blocks.length, 'code block')}: ${range}.`,
    );
    return;
  }
  if (!screen.copy(text)) {
    screen.notice('warn', 'This terminal has no clipboard that a program could reach.');
    return;
  }
  const what = argument === '' ? 'The last answer' : `Code block ${argument}`;
  const large = Buffer.byteLength(text) > mostBytes ? ' It is large: some terminals take no more than 75 kB.' : '';
  screen.notice(
    'info',
    `${what} (${counted(text.split('\n').length, 'line')}) went to the clipboard of the terminal, ` +
      `if it lets programs write there (OSC 52).${large}`,
  );
}

function lastAnswer(events: readonly Event[]): string | null {
  for (const raw of events.toReversed()) {
    const event = raw.kind === 'assistant' ? knownEvent(raw) : null;
    if (event?.kind === 'assistant' && event.content.trim() !== '') return event.content;
  }
  return null;
}

/** The code blocks of a Markdown text, in order, wherever they stand. */
function codeBlocks(text: string): readonly string[] {
  const found: string[] = [];
  void walkTokens(lexMarkdown(text), (token: Token) => {
    if (token.type === 'code' && typeof token.text === 'string') found.push(token.text);
  });
  return found;
}
