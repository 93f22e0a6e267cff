import type { CommandHandler, Repl } from '../../kernel/console/command.js';
import type { BoxContent } from '../../kernel/console/slash-command.js';
import type { Session } from '../../kernel/agent/session.js';
import type { SideQuestionEnd } from '../../kernel/agent/side-question.js';
import { type Event, knownEvent, type SideQuestionData } from '../../kernel/core/event.js';
import { money } from '../../kernel/agent/budget.js';

/** `/btw`: asks the model about the conversation without becoming part of it. The answer is in a box over the input;
 * `m` adds both to the conversation. */
export const btw: CommandHandler = { slash: askOrShow };

async function askOrShow(argument: string, { screen, sessions }: Repl): Promise<void> {
  const { session } = sessions.current();
  const question = argument.trim();
  if (question !== '') {
    await ask(question, session, screen);
    return;
  }
  const last = lastSideQuestion(session.recent());
  if (last === null) screen.notice('info', 'No side question was asked in this session. Ask one: /btw QUESTION');
  else await showAgain(last, session, screen);
}

/** A side question as it is on record. */
interface Recorded {
  readonly seq: number;
  readonly data: SideQuestionData;
}

type Screen = Repl['screen'];

const merges = { m: 'adds it to the conversation' };

async function ask(question: string, session: Session, screen: Screen): Promise<void> {
  const closed = new AbortController();
  const signal = AbortSignal.any([screen.signal, closed.signal]);
  let onChange = (): void => undefined;
  let content: BoxContent = { title: titleOf(question), text: '', state: 'Thinking' };
  let recorded: Recorded | null = null;
  const show = (change: Partial<BoxContent>): void => {
    content = { ...content, ...change };
    onChange();
  };
  const onText = (text: string): void => {
    show({ text, state: 'Answering' });
  };
  const whole = session.askBeside(question, onText, signal).then(
    (end) => {
      recorded = end.status === 'failed' ? null : recordedIn(end.event);
      show(finalContent(end));
    },
    (error: unknown) => {
      show({ text: `The question failed: ${error instanceof Error ? error.message : String(error)}`, state: '' });
    },
  );
  const key = await screen.box({
    content: () => content,
    follow: (changed) => {
      onChange = changed;
    },
    whole,
    keys: () => (recorded === null ? {} : merges),
  });
  closed.abort();
  await whole;
  if (key === 'm' && recorded !== null) await merge(recorded, session, screen);
}

async function showAgain(recorded: Recorded, session: Session, screen: Screen): Promise<void> {
  const { question, answer } = recorded.data;
  const content = { title: titleOf(question), text: answer, state: stateOf(recorded.data) };
  const key = await screen.box({
    content: () => content,
    follow: () => undefined,
    whole: Promise.resolve(),
    keys: () => merges,
  });
  if (key === 'm') await merge(recorded, session, screen);
}

function titleOf(question: string): string {
  return `Side question: ${question}`;
}

function finalContent(end: SideQuestionEnd): Partial<BoxContent> {
  if (end.status === 'failed') {
    const { message, hint } = end.fault;
    return { text: [message, ...(hint === undefined ? [] : [hint])].join('\n\n'), state: 'Not answered' };
  }
  const recorded = recordedIn(end.event);
  return recorded === null ? { state: 'Not answered' } : { text: recorded.data.answer, state: stateOf(recorded.data) };
}

/** The cost of the answer, and whether it is whole. */
function stateOf({ answer, usage, interrupted }: SideQuestionData): string {
  const cost = usage?.cost_usd ? money(usage.cost_usd) : '';
  const missing = interrupted ? 'Interrupted' : answer === '' ? 'The model gave no answer' : '';
  return [missing, cost].filter((part) => part !== '').join(', ');
}

function recordedIn(raw: Event | null): Recorded | null {
  const event = raw === null ? null : knownEvent(raw);
  return event?.kind === 'side_question' ? { seq: event.seq, data: event.data } : null;
}

function lastSideQuestion(events: readonly Event[]): Recorded | null {
  return recordedIn(events.findLast(({ kind }) => kind === 'side_question') ?? null);
}

/** Adds a side question and its answer to the conversation, as one message that says what it is. While a turn runs, it
 * is delivered like a steering message. */
async function merge({ seq, data }: Recorded, session: Session, screen: Screen): Promise<void> {
  const text = [
    `[The user asked you a side question beside this conversation (event ${seq}). This is the question with your answer.]`,
    `Question: ${data.question}`,
    `Answer: ${data.answer}`,
  ].join('\n\n');
  const isLater = session.busy();
  if (isLater) session.enqueue({ text, when: 'steer' });
  else await session.append({ kind: 'user', content: text, data: { note: true } });
  screen.notice(
    'info',
    isLater
      ? 'The side question joins the conversation after the current step.'
      : 'The side question is part of the conversation now.',
  );
}
