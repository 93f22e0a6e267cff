import type { Session } from '../../kernel/agent/session.js';
import type { LivePage } from '../../kernel/console/slash-command.js';
import { type Event, knownEvent } from '../../kernel/core/event.js';
import type { AgentEvent } from '../../kernel/core/session-port.js';
import { firstLine, tailBytes } from '../../kernel/core/text.js';

/** The state and the cost of an agent change without an event of its session. */
const betweenLooksMs = 500;
/** The end of the output of a call that runs. */
const mostOutputBytes = 2_000;

interface Followed {
  readonly title: () => string;
  /** Its session; null while it is opened, and once it has ended. */
  readonly child: () => Session | null;
  /** The session of the user, where its permission prompts appear. */
  readonly parent: Pick<Session, 'subscribe'>;
}

/** The conversation of an agent that runs, as it grows, until the page is closed. It stays when the agent has ended. */
export class AgentPage implements LivePage {
  readonly title: () => string;
  readonly #followed: Followed;
  readonly #prompts = new Set<string>();
  #session: Session | null;
  #answer = '';
  #output = '';
  #unfollow: () => void = () => undefined;

  constructor(followed: Followed) {
    this.#followed = followed;
    this.title = followed.title;
    this.#session = followed.child();
  }

  readonly text = (): string =>
    [
      conversationText(this.#session?.events() ?? []),
      ...(this.#answer === '' ? [] : [this.#answer]),
      ...(this.#output.trim() === '' ? [] : [this.#output.trimEnd()]),
      ...(this.#prompts.size === 0 ? [] : ['A permission prompt waits for you: close this page to answer it.']),
    ].join('\n\n');

  readonly follow = (onChange: () => void): (() => void) => {
    this.#subscribe(onChange);
    const timer = setInterval(() => {
      const now = this.#followed.child();
      if (now !== null && now !== this.#session) {
        this.#session = now;
        this.#subscribe(onChange);
      }
      onChange();
    }, betweenLooksMs).unref();
    const stop = this.#followed.parent.subscribe((event) => {
      if (event.type === 'approval_requested') this.#prompts.add(event.question.callId);
      else if (event.type === 'approval_resolved') this.#prompts.delete(event.callId);
      else return;
      onChange();
    });
    return () => {
      clearInterval(timer);
      stop();
      this.#unfollow();
    };
  };

  #subscribe(onChange: () => void): void {
    this.#unfollow();
    [this.#answer, this.#output] = ['', ''];
    const unfollow = this.#session?.subscribe((event) => {
      this.#take(event);
      onChange();
    });
    this.#unfollow = unfollow ?? (() => undefined);
  }

  #take(event: AgentEvent): void {
    const kind = event.type === 'event' ? event.event.kind : null;
    if (event.type === 'text_delta') this.#answer += event.text;
    if (event.type === 'tool_output') this.#output = tailBytes(this.#output + event.chunk, mostOutputBytes);
    if (event.type === 'retry_scheduled' || kind === 'assistant' || kind === 'tool_call') this.#answer = '';
    if (kind === 'tool_call' || kind === 'tool_result') this.#output = '';
  }
}

/** The conversation of an agent as text: tasks, answers, calls and how they went. */
export function conversationText(events: readonly Event[]): string {
  return events.flatMap(linesOf).join('\n').trimEnd() || 'There is nothing in it yet.';
}

function linesOf(raw: Event): readonly string[] {
  const event = knownEvent(raw);
  switch (event?.kind) {
    case 'user':
      return [event.data?.note === true ? event.content : `❯ ${event.content}`, ''];
    case 'assistant':
      return event.content.trim() === '' ? [] : [event.content, ''];
    case 'tool_call':
      return [`● ${event.content}`];
    case 'tool_result':
      return [`  ${event.data.success ? '✔' : '✘'} ${firstLine(event.content, 200)}`, ''];
    case 'error':
      return [`✘ ${event.content}`, ''];
    default:
      return [];
  }
}
