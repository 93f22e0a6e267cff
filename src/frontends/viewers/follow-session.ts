import { setTimeout as wait } from 'node:timers/promises';
import { connectOwner, type OwnerClient, type OwnerRequest } from '../../app/live/connect-owner.js';
import type { Done, EndedTurn, FollowerApproval, FollowerForm, Hello, OwnerMessage } from '../../app/live/messages.js';
import { endsText } from '../../app/live/session-state.js';
import type { Event } from '../../kernel/core/event.js';
import type { SessionLog } from '../../kernel/core/store.js';

/** An update for a follower: the events of the log, each once and in order, and what is not in the log (yet). `text`: the
 * whole answer so far; the event of the answer replaces it. `live`: whether the process that runs the session is
 * connected. */
export type SessionUpdate =
  | { readonly type: 'events'; readonly events: readonly Event[] }
  | {
      readonly type: 'live';
      readonly live: boolean;
      readonly busy: boolean;
      /** The turn that has ended. `seq`: as in the message `busy`. */
      readonly ended?: EndedTurn & { readonly seq: number };
    }
  | { readonly type: 'question'; readonly question: FollowerApproval }
  | { readonly type: 'text'; readonly text: string }
  | Extract<OwnerMessage, { readonly type: 'void' | 'output' | 'answered' | 'form' | 'form_closed' | 'held' }>;

export interface Following {
  /** Sends a message to the process that runs the session. Resolves to what became of it, or to null where no process
   * runs it or none answered. */
  request(message: OwnerRequest): Promise<Done | null>;
  close(): Promise<void>;
}

/** The interval of reading the record again. An event that no process announced appears after this time. */
const betweenReadsMs = 500;
/** The way to follow a record on a server: it is read every `everyMs`, and at once if `listen` calls. */
export interface ChangeNotifier {
  readonly everyMs: number;
  listen(ring: () => void): Promise<(() => Promise<void>) | null>;
}

/** The interval of looking for a process that runs the session. */
const betweenConnectsMs = 250;

/** The kind of the follower, and the notifier of a log on a server. */
export interface FollowOptions {
  readonly client: Hello['client'];
  readonly bell?: ChangeNotifier | undefined;
}

/** Follows a session, whether it runs now or later. `see` is called with all events on record first. */
export async function followSession(
  store: Pick<SessionLog, 'load' | 'tail'>,
  files: { readonly data: string },
  sessionId: string,
  see: (seen: SessionUpdate) => void,
  { client, bell }: FollowOptions,
): Promise<Following> {
  const ended = new AbortController();
  const record = new Reader(store, sessionId, see);
  await record.readAll();
  let owner: OwnerClient | null = null;
  const stay = async (): Promise<void> => {
    while (!ended.signal.aborted) {
      const early: OwnerMessage[] = [];
      let take = (message: OwnerMessage): void => {
        early.push(message);
      };
      const onMessage = (message: OwnerMessage): void => {
        take(message);
      };
      owner = await connectOwner(files, sessionId, { client, onMessage }).catch(() => null);
      if (ended.signal.aborted) owner?.close();
      if (owner) {
        take = (message) => void record.take(message);
        for (const message of [owner.state, ...early]) take(message);
        await owner.closed;
        owner = null;
      }
      if (ended.signal.aborted) return;
      await record.left();
      await wait(betweenConnectsMs, undefined, { signal: ended.signal }).catch(() => undefined);
    }
  };
  const staying = stay();
  const polling = poll(record, ended.signal, bell?.everyMs ?? betweenReadsMs);
  const silence = await bell?.listen(() => void record.readNew()).catch(() => null);
  return {
    request: async (message) => (await owner?.request(message)) ?? null,
    close: async () => {
      ended.abort();
      owner?.close();
      await silence?.();
      await Promise.all([staying, polling]);
    },
  };
}

async function poll(record: Reader, signal: AbortSignal, everyMs: number): Promise<void> {
  while (!signal.aborted) {
    await record.readNew();
    await wait(everyMs, undefined, { signal }).catch(() => undefined);
  }
}

/** Reads the log and hands out each event once. What comes in between waits for the events before it. */
class Reader {
  readonly #store: Pick<SessionLog, 'load' | 'tail'>;
  readonly #sessionId: string;
  readonly #see: (seen: SessionUpdate) => void;
  #seen = 0;
  /** The number of the last event that ended a text. */
  #answered = 0;
  #text = '';
  /** The ids of the forms that are open. */
  #forms = new Set<string>();
  /** Null until it is known. */
  #isLive: boolean | null = null;
  #last: Promise<void> = Promise.resolve();

  constructor(store: Pick<SessionLog, 'load' | 'tail'>, sessionId: string, see: (seen: SessionUpdate) => void) {
    this.#store = store;
    this.#sessionId = sessionId;
    this.#see = see;
  }

  readAll(): Promise<void> {
    return this.#next(async () => {
      this.#hand(await this.#store.load(this.#sessionId));
    });
  }

  readNew(): Promise<void> {
    return this.#next(() => this.#readTo(this.#seen + 1));
  }

  /** Takes a message of the process that runs the session. */
  take(message: OwnerMessage): Promise<void> {
    return this.#next(() => this.#take(message));
  }

  /** Reports that no process runs the session, once the messages of the last one are taken and its last events read. */
  left(): Promise<void> {
    return this.#next(async () => {
      if (this.#isLive === false) return;
      await this.#readTo(this.#seen + 1);
      this.#text = '';
      this.#isLive = false;
      this.#see({ type: 'live', live: false, busy: false });
    });
  }

  #next(work: () => Promise<void>): Promise<void> {
    this.#last = this.#last.then(work).catch(() => undefined);
    return this.#last;
  }

  #hand(events: readonly Event[]): void {
    const fresh = events.filter(({ seq }) => seq > this.#seen);
    if (fresh.length === 0) return;
    this.#seen = fresh.at(-1)?.seq ?? this.#seen;
    const end = fresh.findLast(endsText);
    if (end) [this.#answered, this.#text] = [end.seq, ''];
    this.#see({ type: 'events', events: fresh });
  }

  /** `upTo`: the number of an event that the log may have. */
  async #readTo(upTo: number): Promise<void> {
    let count = Math.max(1, upTo - this.#seen);
    let events = await this.#store.tail(this.#sessionId, count);
    // More may have come since the end was looked up: nothing is left out in between.
    while (events.length === count && (events[0]?.seq ?? 0) > this.#seen + 1) {
      count = Math.max(count + 1, (events.at(-1)?.seq ?? this.#seen) - this.#seen);
      events = await this.#store.tail(this.#sessionId, count);
    }
    this.#hand(events);
  }

  async #take(told: OwnerMessage): Promise<void> {
    switch (told.type) {
      case 'event':
        if (told.seq > this.#seen) await this.#readTo(told.seq);
        return;
      case 'state':
        this.#isLive = true;
        await this.#readTo(this.#seen + 1);
        await this.#takeText(told.text, told.after, true);
        this.#see({ type: 'live', live: true, busy: told.busy });
        for (const question of told.questions) this.#see({ type: 'question', question });
        this.#takeForms(told.forms ?? []);
        return;
      case 'text':
        await this.#takeText(told.text, told.after, false);
        return;
      case 'busy':
        if (told.seq > this.#seen) await this.#readTo(told.seq);
        this.#see({
          type: 'live',
          live: true,
          busy: told.busy,
          ...(told.end ? { ended: { ...told.end, seq: told.seq } } : {}),
        });
        return;
      case 'void':
        this.#text = '';
        this.#see(told);
        return;
      case 'output':
      case 'question':
      case 'answered':
      case 'held':
        this.#see(told);
        return;
      case 'form':
        this.#forms.add(told.form.id);
        this.#see(told);
        return;
      case 'form_closed':
        this.#forms.delete(told.id);
        this.#see(told);
        return;
      case 'done':
      case 'screen':
      case 'raw':
      case 'suspend':
      case 'run':
      case 'end_program':
      case 'open':
      case 'end':
        return; // Not for followers.
      default:
        told satisfies never; // Another version may send what this one does not know.
    }
  }

  /** Takes all forms that are open. Others were closed where the message was lost. */
  #takeForms(forms: readonly FollowerForm[]): void {
    const open = new Set(forms.map(({ id }) => id));
    for (const id of this.#forms) if (!open.has(id)) this.#see({ type: 'form_closed', id });
    this.#forms = open;
    for (const form of forms) this.#see({ type: 'form', form });
  }

  /** Takes a part of the answer in flight, or all of it so far. An answer that the log has by now is left out. */
  async #takeText(part: string, after: number, isWhole: boolean): Promise<void> {
    if (after > this.#seen) await this.#readTo(after);
    const isRecorded = this.#answered > after;
    if (isRecorded && !isWhole) return;
    const text = isRecorded ? '' : isWhole ? part : this.#text + part;
    if (text === this.#text) return;
    this.#text = text;
    this.#see({ type: 'text', text });
  }
}
