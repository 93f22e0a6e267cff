import type { ServerResponse } from 'node:http';
import type { Event } from '../../../kernel/core/event.js';
import type { SessionLog } from '../../../kernel/core/store.js';
import type { FollowerApproval, FollowerForm } from '../../../app/live/messages.js';
import { endsText } from '../../../app/live/session-state.js';
import { writeSlowly } from '../http-guard.js';
import type { SessionFeed } from '../session-feed.js';
import type { ApiValue } from './api-schemas.js';

/** An event as programs get it: the fields of an exported session. */
export function eventValue({ seq, kind, content, data, createdAt }: Event): ApiValue<'Event'> {
  return { seq, kind, content, data: data ?? null, created_at: createdAt };
}

/** Events that the record gives at once. */
const pageEvents = 100;
/** Text that is written at once. */
const mostWrittenChars = 256 * 1024;
/** A connection that is silent for longer is dead, or closed by a proxy. */
const betweenSignsMs = 15_000;

/** The frames of events, made once for all who follow. */
const frames = new WeakMap<Event, string>();

function frameOf(event: Event): string {
  const known = frames.get(event);
  if (known !== undefined) return known;
  const frame = `id: ${event.seq}\ndata: ${JSON.stringify(eventValue(event))}\n\n`;
  frames.set(event, frame);
  return frame;
}

interface Streamed {
  readonly store: Pick<SessionLog, 'page'>;
  readonly feed: SessionFeed;
  readonly sessionId: string;
  /** The last event that the client has. */
  readonly after: number;
  /** Also what is not recorded: the state, open approvals, the text of an answer in flight. */
  readonly isLive: boolean;
  /** The session as the API shows it, for `state`. */
  readonly state: () => Promise<unknown>;
  /** Called for each open approval that is sent. */
  readonly onApproval: (approval: FollowerApproval) => void;
  /** Called for each form that is sent. */
  readonly onQuestions: (form: FollowerForm) => void;
}

/** Sends the events after `after`, each once and in order, and from then on every event as it comes, until the client is
 * gone. A client that reads slowly gets them slowly: what it has not taken is read from the record again, so none is
 * left out and none kept in memory. */
export async function streamEvents(response: ServerResponse, streamed: Streamed): Promise<void> {
  const stream = new EventStream(response, streamed);
  await stream.run();
}

class EventStream {
  readonly #response: ServerResponse;
  readonly #streamed: Streamed;
  #cursor: number;
  #text = '';
  #changes = '';
  readonly #sent = { state: '', approvals: '', questions: '' };
  #wake: () => void = () => undefined;
  /** Something came since the last look. */
  #isDirty = true;

  constructor(response: ServerResponse, streamed: Streamed) {
    this.#response = response;
    this.#streamed = streamed;
    this.#cursor = streamed.after;
  }

  async run(): Promise<void> {
    const response = this.#response;
    const notice = (): void => {
      this.#isDirty = true;
      this.#wake();
    };
    const stop = this.#streamed.feed.onChange(notice);
    response.on('close', notice);
    const signs = setInterval(() => {
      if (response.writableLength === 0) response.write(':\n\n');
    }, betweenSignsMs);
    try {
      await writeSlowly(response, 'retry: 1000\n\n');
      while (!response.destroyed && !this.#streamed.feed.isClosed) {
        this.#isDirty = false;
        await this.#sendEvents();
        if (this.#streamed.isLive) await this.#sendLive();
        if (!this.#isDirty && !response.destroyed)
          await new Promise<void>((resolve) => {
            this.#wake = resolve;
          });
      }
    } finally {
      clearInterval(signs);
      stop();
      response.end();
    }
  }

  async #sendEvents(): Promise<void> {
    const { feed, store, sessionId } = this.#streamed;
    while (feed.head > this.#cursor && !this.#response.destroyed) {
      const recent = feed.recentAfter(this.#cursor);
      const events = recent ?? (await store.page(sessionId, this.#cursor, pageEvents));
      if (events.length === 0) return;
      await this.#write(events);
    }
  }

  async #write(events: readonly Event[]): Promise<void> {
    let text = '';
    for (const event of events) {
      text += frameOf(event);
      if (endsText(event)) this.#text = '';
      this.#cursor = event.seq;
      if (text.length < mostWrittenChars) continue;
      await writeSlowly(this.#response, text);
      if (this.#response.destroyed) return;
      text = '';
    }
    if (text !== '') await writeSlowly(this.#response, text);
  }

  async #sendLive(): Promise<void> {
    const out = `${await this.#approvals()}${this.#answer()}`;
    if (out !== '') await writeSlowly(this.#response, out);
  }

  /** The open approvals and questions, and the state of the session, where they have changed. */
  async #approvals(): Promise<string> {
    const { feed, state, onApproval, onQuestions } = this.#streamed;
    const approvals = feed.approvals();
    const questions = feed.forms();
    const changes = JSON.stringify([feed.live, feed.stateChanges, approvals, questions]);
    if (changes === this.#changes) return '';
    this.#changes = changes;
    for (const approval of approvals) onApproval(approval);
    for (const form of questions) onQuestions(form);
    const asked = `${this.#named('approvals', approvals)}${this.#named('questions', questions)}`;
    return `${this.#named('state', await state())}${asked}`;
  }

  #named(name: 'state' | 'approvals' | 'questions', value: unknown): string {
    const data = JSON.stringify(value);
    if (this.#sent[name] === data) return '';
    this.#sent[name] = data;
    return `event: ${name}\ndata: ${data}\n\n`;
  }

  /** Returns the part of the answer in flight that the client lacks. */
  #answer(): string {
    const { text } = this.#streamed.feed;
    const isMore = text.startsWith(this.#text);
    const more = isMore ? text.slice(this.#text.length) : text;
    this.#text = text;
    const voided = isMore ? '' : 'event: void\ndata: {}\n\n';
    return `${voided}${more === '' ? '' : `event: text\ndata: ${JSON.stringify({ text: more })}\n\n`}`;
  }
}
