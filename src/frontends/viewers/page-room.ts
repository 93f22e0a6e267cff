import type { ServerResponse } from 'node:http';
import { addAll } from '../../kernel/core/lists.js';
import { attachedBlobs } from '../../kernel/console/stored-session.js';
import { type Event, knownEvent } from '../../kernel/core/event.js';
import type { Store } from '../../kernel/core/store.js';
import { formatCost } from '../../ui/item-lines.js';
import { totalsOf } from '../../ui/view.js';
import { firstAfter, type SessionFeed } from './session-feed.js';
import { askBlocks, entryParts, formBlocks } from './session-page.js';

/** A page, and what it has. */
interface Client {
  readonly response: ServerResponse;
  /** The number of the last event whose entry it got. */
  seq: number;
  readonly parts: Map<string, string>;
}

/** The time between two updates of the pages, at least. */
const frameMs = 100;
/** A page knows by them that its connection is alive. */
const betweenSignsMs = 15_000;

/** The pages of a session: what changes is rendered once for all of them. */
export class PageRoom {
  readonly #store: Store;
  readonly #feed: SessionFeed;
  readonly #clients = new Set<Client>();
  readonly #events: Event[] = [];
  /** The events of each call. */
  readonly #calls = new Map<string, Event[]>();
  /** The cost of the session, as far as prices are known. */
  #costUsd = 0;
  #timer: NodeJS.Timeout | null = null;
  #isPainting = false;
  /** Something has come since the last painting began. */
  #isDirty = false;
  #paintedAt = -Infinity;
  readonly #stops: readonly (() => void)[];
  readonly #signs: NodeJS.Timeout;

  private constructor(store: Store, feed: SessionFeed, events: readonly Event[]) {
    this.#store = store;
    this.#feed = feed;
    this.#record(events);
    this.#stops = [
      feed.onEvents((fresh) => {
        this.#record(fresh);
      }),
      feed.onChange(() => {
        this.#soon();
      }),
    ];
    this.#signs = setInterval(() => {
      for (const { response } of this.#clients) if (response.writableLength === 0) send(response, 'sign', 0);
    }, betweenSignsMs).unref();
  }

  static async open(store: Store, feed: SessionFeed, sessionId: string): Promise<PageRoom> {
    const meanwhile: Event[] = [];
    const stop = feed.onEvents((events) => {
      addAll(meanwhile, events);
    });
    const loaded = await store.load(sessionId);
    stop();
    return new PageRoom(store, feed, [...loaded, ...meanwhile]);
  }

  /** Sends a page what is new since `after`, and from now on whatever comes. */
  enter(response: ServerResponse, after: number): void {
    if (response.destroyed) return;
    const client = { response, seq: after, parts: new Map<string, string>() };
    this.#clients.add(client);
    response.on('close', () => {
      this.#clients.delete(client);
    });
    response.write('retry: 1000\n\n');
    this.#soon();
  }

  close(): void {
    clearInterval(this.#signs);
    if (this.#timer) clearTimeout(this.#timer);
    for (const stop of this.#stops) stop();
    for (const { response } of this.#clients) response.end();
    this.#clients.clear();
  }

  /** The store and the process that runs the session may both have given an event. */
  #record(events: readonly Event[]): void {
    const last = this.#events.at(-1)?.seq ?? 0;
    const fresh = events.filter(({ seq }, index) => seq > Math.max(last, events[index - 1]?.seq ?? 0));
    for (const event of fresh) {
      this.#events.push(event);
      const id = callOf(event);
      if (id === null) continue;
      const call = this.#calls.get(id);
      if (call) call.push(event);
      else this.#calls.set(id, [event]);
    }
    this.#costUsd += totalsOf(fresh).costUsd;
  }

  #soon(): void {
    this.#isDirty = true;
    if (this.#timer !== null || this.#isPainting || this.#clients.size === 0) return;
    this.#timer = setTimeout(
      () => {
        this.#timer = null;
        void this.#paint();
      },
      Math.max(0, this.#paintedAt + frameMs - performance.now()),
    );
  }

  /** Brings each page up to the last event. What comes meanwhile is painted next. */
  async #paint(): Promise<void> {
    this.#isPainting = true;
    this.#isDirty = false;
    this.#paintedAt = performance.now();
    const last = this.#events.at(-1)?.seq ?? 0;
    const { text, output } = this.#feed;
    const asks = askBlocks(this.#feed.approvals()) + formBlocks(this.#feed.forms());
    const parts = { text, output, work: this.#work(), state: this.#state(), asks };
    const rendered = new Map<number, ReturnType<typeof entryParts>>();
    try {
      for (const client of [...this.#clients]) {
        const entries = rendered.get(client.seq) ?? this.#entries(client.seq, last);
        rendered.set(client.seq, entries);
        const made = await entries;
        if (made.length > 0) send(client.response, 'entries', made, last);
        client.seq = Math.max(client.seq, last);
        for (const [name, value] of Object.entries(parts)) {
          if (client.parts.get(name) !== value) send(client.response, name, value);
          client.parts.set(name, value);
        }
      }
    } catch {
      // The store failed: the pages connect again and say from where.
      for (const { response } of this.#clients) response.destroy();
    }
    this.#isPainting = false;
    if (this.#isDirty) this.#soon();
  }

  /** Renders the entries that the events after `seq` make or change: a result changes the entry of its call. */
  async #entries(seq: number, last: number): ReturnType<typeof entryParts> {
    const fresh = this.#events.slice(firstAfter(this.#events, seq), firstAfter(this.#events, last));
    const changed = new Set(fresh.flatMap((event) => this.#calls.get(callOf(event) ?? '') ?? [event]));
    const events = [...changed].toSorted((one, other) => one.seq - other.seq);
    const { blobs = [] } = await attachedBlobs(events, this.#store);
    return await entryParts(events, blobs);
  }

  /** Empty until it is known whether a process runs the session. */
  #work(): 'working' | 'idle' | 'stopped' | '' {
    const { live } = this.#feed;
    if (live === null) return '';
    return live.isRunning ? (live.isBusy ? 'working' : 'idle') : 'stopped';
  }

  /** A session that has asked something does not work. */
  #state(): string {
    const names = { working: 'working', idle: 'waiting for you', stopped: 'not running', '': '' };
    const state =
      this.#feed.approvals().length + this.#feed.forms().length > 0 ? 'waiting for an answer' : names[this.#work()];
    return this.#costUsd > 0 && state !== '' ? `${state} · ${formatCost(this.#costUsd)}` : state;
  }
}

/** The call that an event belongs to. */
function callOf(event: Event): string | null {
  const known = knownEvent(event);
  if (known?.kind === 'tool_call') return known.data.id;
  return known?.kind === 'tool_result' || known?.kind === 'approval' ? known.data.tool_call_id : null;
}

/** A page that does not read is let go; it comes again and gets what it missed. */
const mostUnreadBytes = 16 * 1024 * 1024;

/** `id`: a browser that connects again names it. */
function send(client: ServerResponse, name: string, value: unknown, id?: number): void {
  const mark = id === undefined ? '' : `id: ${id}\n`;
  if (client.writableLength > mostUnreadBytes) client.destroy();
  else if (!client.destroyed) client.write(`${mark}event: ${name}\ndata: ${JSON.stringify(value)}\n\n`);
}
