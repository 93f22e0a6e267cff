import { type Event, knownEvent } from '../../kernel/core/event.js';
import type { SessionLog } from '../../kernel/core/store.js';
import { tailBytes } from '../../kernel/core/text.js';
import type { OwnerRequest } from '../../app/live/connect-owner.js';
import type { Done, FollowerApproval, FollowerForm } from '../../app/live/messages.js';
import { endsText } from '../../app/live/session-state.js';
import { type Following, followSession, type SessionUpdate } from './follow-session.js';

/** The newest events that are kept for those who follow. Older ones are read from the record. */
const mostRecent = 1000;
/** Contents that are kept of them. */
const mostRecentChars = 8 * 1024 * 1024;
const mostOutputBytes = 16 * 1024;

/** A session as it runs, for all who follow it here: one connection to its process and one reader of its record. */
export class SessionFeed {
  /** The number of the last event. */
  head = 0;
  /** The answer in flight. */
  text = '';
  /** The end of the output of the running calls. */
  output = '';
  /** Null: it is not known yet whether a process runs the session. */
  live: { readonly isRunning: boolean; readonly isBusy: boolean } | null = null;
  /** Grows with each event that says what the session waits for. */
  stateChanges = 0;
  isClosed = false;
  readonly #approvals = new Map<string, FollowerApproval>();
  readonly #forms = new Map<string, FollowerForm>();
  readonly #listeners = new Set<() => void>();
  readonly #readers = new Set<(events: readonly Event[]) => void>();
  readonly #endedCalls = new Set<string>();
  #recent: Event[] = [];
  #recentChars = 0;
  /** Every event after this one is in `#recent`. */
  #recentFrom = 0;
  #following: Following | null = null;

  static async open(
    store: Pick<SessionLog, 'tail'>,
    files: { readonly data: string },
    sessionId: string,
  ): Promise<SessionFeed> {
    const feed = new SessionFeed();
    const [last] = await store.tail(sessionId, 1);
    feed.head = last?.seq ?? 0;
    feed.#recentFrom = feed.head;
    // Whoever needs earlier events reads them from the record.
    const log = { load: () => Promise.resolve(last ? [last] : []), tail: store.tail };
    const see = (seen: SessionUpdate): void => {
      feed.#see(seen);
      for (const listener of feed.#listeners) listener();
    };
    feed.#following = await followSession(log, files, sessionId, see, { client: 'web' });
    return feed;
  }

  /** Calls back after each change, until the function that it returns is called. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }

  /** Calls back with new events, in order. */
  onEvents(reader: (events: readonly Event[]) => void): () => void {
    this.#readers.add(reader);
    return () => {
      this.#readers.delete(reader);
    };
  }

  /** Returns the events after `seq`; null where they are to be read from the record. */
  recentAfter(seq: number): readonly Event[] | null {
    if (seq < this.#recentFrom) return null;
    return this.#recent.slice(firstAfter(this.#recent, seq));
  }

  approvals(): readonly FollowerApproval[] {
    return [...this.#approvals.values()];
  }

  forms(): readonly FollowerForm[] {
    return [...this.#forms.values()];
  }

  /** Sends a message to the process that runs the session. Null: no process runs it, or it does not answer. */
  async request(message: OwnerRequest): Promise<Done | null> {
    return (await this.#following?.request(message)) ?? null;
  }

  /** Resolves once it is known whether a process runs the session. */
  async settled(): Promise<void> {
    await this.until(() => this.live !== null);
  }

  /** Resolves to true once `isSo` is, and to false after `longestMs` or when the feed is closed. */
  async until(isSo: () => boolean, longestMs = Infinity): Promise<boolean> {
    if (isSo() || this.isClosed) return isSo();
    return await new Promise<boolean>((resolve) => {
      const end = (): void => {
        clearTimeout(timer);
        stop();
        resolve(isSo());
      };
      const timer = Number.isFinite(longestMs) ? setTimeout(end, longestMs) : undefined;
      const stop = this.onChange(() => {
        if (isSo() || this.isClosed) end();
      });
    });
  }

  async close(): Promise<void> {
    this.isClosed = true;
    for (const listener of this.#listeners) listener();
    await this.#following?.close();
  }

  #see(seen: SessionUpdate): void {
    switch (seen.type) {
      case 'events':
        this.#take(seen.events);
        return;
      case 'text':
        this.text = seen.text;
        return;
      case 'void':
        this.text = '';
        return;
      case 'output':
        if (!this.#endedCalls.has(seen.callId)) this.output = tailBytes(this.output + seen.text, mostOutputBytes);
        return;
      case 'live':
        this.live = { isRunning: seen.live, isBusy: seen.busy };
        if (seen.live) return;
        this.#approvals.clear();
        this.#forms.clear();
        this.text = '';
        this.output = '';
        return;
      case 'question':
        this.#approvals.set(seen.question.id, seen.question);
        return;
      case 'answered':
        this.#approvals.delete(seen.id);
        return;
      case 'form':
        this.#forms.set(seen.form.id, seen.form);
        return;
      case 'form_closed':
        this.#forms.delete(seen.id);
        return;
      case 'held':
        return; // The message waits for the next opening of the session.
      default:
        return seen satisfies never;
    }
  }

  #take(events: readonly Event[]): void {
    const fresh = events.filter(({ seq }) => seq > this.head);
    for (const event of fresh) {
      this.#keep(event);
      const known = knownEvent(event);
      if (event.kind === 'limit') this.stateChanges++;
      if (known?.kind === 'approval') this.#approvals.delete(known.data.tool_call_id);
      if (known?.kind !== 'tool_result') continue;
      this.#endedCalls.add(known.data.tool_call_id);
      this.output = '';
    }
    if (fresh.some(endsText)) this.text = '';
    this.head = fresh.at(-1)?.seq ?? this.head;
    for (const reader of this.#readers) reader(fresh);
  }

  #keep(event: Event): void {
    this.#recent.push(event);
    this.#recentChars += event.content?.length ?? 0;
    while (this.#recent.length > 1 && (this.#recent.length > mostRecent || this.#recentChars > mostRecentChars)) {
      const dropped = this.#recent.shift();
      this.#recentChars -= dropped?.content?.length ?? 0;
      this.#recentFrom = dropped?.seq ?? this.#recentFrom;
    }
  }
}

/** A feed that is used. */
export interface UsedFeed {
  readonly feed: SessionFeed;
  /** Call it once it is not used any more. */
  readonly release: () => void;
}

interface OpenFeed {
  readonly opened: Promise<SessionFeed>;
  users: number;
  timer: NodeJS.Timeout | null;
}

/** A session without clients is followed for this time: a client that lost its connection comes again. */
const lingerMs = 5000;

/** The sessions that are followed, each once for all who do. */
export class SessionFeeds {
  readonly #store: Pick<SessionLog, 'tail'>;
  readonly #files: { readonly data: string };
  readonly #open = new Map<string, OpenFeed>();

  constructor(store: Pick<SessionLog, 'tail'>, files: { readonly data: string }) {
    this.#store = store;
    this.#files = files;
  }

  async use(sessionId: string): Promise<UsedFeed> {
    const open = this.#open.get(sessionId) ?? {
      opened: SessionFeed.open(this.#store, this.#files, sessionId),
      users: 0,
      timer: null,
    };
    this.#open.set(sessionId, open);
    open.users++;
    if (open.timer) clearTimeout(open.timer);
    let isReleased = false;
    const release = (): void => {
      if (isReleased) return;
      isReleased = true;
      open.users--;
      if (open.users > 0) return;
      open.timer = setTimeout(() => {
        if (this.#open.get(sessionId) === open) this.#open.delete(sessionId);
        void open.opened.then((feed) => feed.close()).catch(() => undefined);
      }, lingerMs).unref();
    };
    try {
      return { feed: await open.opened, release };
    } catch (error) {
      if (this.#open.get(sessionId) === open) this.#open.delete(sessionId);
      throw error;
    }
  }

  async close(): Promise<void> {
    for (const { opened, timer } of this.#open.values()) {
      if (timer) clearTimeout(timer);
      await opened.then((feed) => feed.close()).catch(() => undefined);
    }
    this.#open.clear();
  }
}

/** Returns the index of the first event with a greater number. The events are in the order of their numbers. */
export function firstAfter(events: readonly Event[], seq: number): number {
  let [low, high] = [0, events.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((events[middle]?.seq ?? 0) > seq) high = middle;
    else low = middle + 1;
  }
  return low;
}
