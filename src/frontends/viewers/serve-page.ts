import { parseJson } from '../../kernel/core/json.js';
import { randomBytes, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { CliError, exit } from '../../kernel/console/command.js';
import { attachedBlobs } from '../../kernel/console/stored-session.js';
import { type Event, knownEvent } from '../../kernel/core/event.js';
import { isRecord } from '../../kernel/core/json.js';
import type { Store } from '../../kernel/core/store.js';
import { tailBytes } from '../../kernel/core/text.js';
import { formatCost } from '../../ui/item-lines.js';
import { totalsOf } from '../../ui/view.js';
import { endedFromOutside } from '../../ui/ending.js';
import type { RootOptions } from '../../kernel/console/options.js';
import { print } from '../../kernel/console/print.js';
import type { FollowerApproval } from '../../app/live/messages.js';
import { endsText } from '../../app/live/session-state.js';
import { openRecord } from '../../app/open-record.js';
import { readSettings } from '../../app/settings.js';
import { type Following, followSession, type SessionUpdate } from './follow-session.js';
import { askBlocks, entryParts, foundPage, listPage, pagePolicy, searchPolicy, sessionPage } from './session-page.js';

/** Opens the record and the running sessions as pages on this machine's loopback address, until Ctrl-C. Whoever knows
 * the address that is printed may read all of it and answer questions: it holds a secret that is new with each start.
 * `port` 0: any free one. Returns the exit code. */
export async function servePages(options: RootOptions, { port }: { readonly port: number }): Promise<number> {
  const settings = await readSettings(options);
  const { store } = await openRecord(settings, () => undefined);
  try {
    const pages = new Pages(store, settings.config.files);
    const ended = endedFromOutside();
    const address = await pages.listen(port);
    print(`${address}\nAnyone with this address can read every session and answer its prompts. Ctrl-C ends it.\n`);
    const code = await ended;
    await pages.close();
    return code;
  } finally {
    await store.close();
  }
}

const mostRows = 200;
const mostHits = 100;
const mostBodyBytes = 64 * 1024;

/** An answer without a page. */
class Refusal extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** The folder of the data, where sessions that run are found. */
interface Files {
  readonly data: string;
}

class Pages {
  readonly #store: Store;
  readonly #files: Files;
  readonly #token = randomBytes(24).toString('base64url');
  /** Path prefix of the pages in a browser. A cookie is sent to every port of this machine, but only below its path,
   * which no other server knows. */
  readonly #path = `/${randomBytes(12).toString('base64url')}`;
  readonly #rooms = new Map<string, OpenRoom>();
  readonly #server: Server;
  #port = 0;

  constructor(store: Store, files: Files) {
    this.#store = store;
    this.#files = files;
    this.#server = createServer((request, response) => {
      this.#respond(request, response).catch((error: unknown) => {
        const status = error instanceof Refusal ? error.status : 500;
        if (!response.headersSent) plain(response, status, error instanceof Error ? error.message : String(error));
        else response.end();
      });
    });
  }

  /** Returns the address with its secret. */
  async listen(port: number): Promise<string> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', (error) => {
        reject(new CliError(exit.failed, `port ${port} cannot be used: ${error.message}`, 'Give another --port.'));
      });
      this.#server.listen(port, '127.0.0.1', resolve);
    });
    const address = this.#server.address();
    this.#port = address !== null && typeof address === 'object' ? address.port : port;
    return `http://127.0.0.1:${this.#port}/?token=${this.#token}`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    for (const { room } of this.#rooms.values()) await (await room).close();
  }

  async #respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', `http://127.0.0.1:${this.#port}`);
    if (url.pathname.startsWith(`${this.#path}/`)) url.pathname = url.pathname.slice(this.#path.length);
    this.#refuseStrangers(request);
    const given = url.searchParams.get('token');
    if (given !== null && request.method === 'GET') this.#letIn(given, url.pathname, response);
    else if (!this.#isToken(cookieOf(request, this.#cookie())))
      throw new Refusal(403, 'Open the address that agent serve printed, with its token.');
    else await this.#route(url, request, response);
  }

  /** Takes the token out of the address, so that it is in no history and no link. */
  #letIn(given: string, page: string, response: ServerResponse): void {
    if (!this.#isToken(given)) throw new Refusal(403, 'This is not the printed address.');
    const cookie = `${this.#cookie()}=${this.#token}; HttpOnly; SameSite=Strict; Path=${this.#path}/`;
    response.writeHead(303, { location: this.#path + page, 'set-cookie': cookie, ...always }).end();
  }

  /** All servers of this machine share one jar of cookies. */
  #cookie(): string {
    return `agent_${this.#port}`;
  }

  async #route({ pathname, searchParams }: URL, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [, id = '', rest = ''] = /^\/s\/([0-9A-Za-z]+)(\/events|\/answer)?$/.exec(pathname) ?? [];
    const what = `${request.method ?? ''} ${id === '' ? pathname : `/s${rest}`}`;
    const number = (name: string): number => Number(searchParams.get(name) ?? 0);
    if (what === 'GET /') await this.#list(searchParams.get('q') ?? '', response);
    else if (what === 'GET /s') await this.#show(id, searchParams.has('from') ? number('from') : null, response);
    else if (what === 'GET /s/events') await this.#follow(id, number('after'), request, response);
    else if (what === 'POST /s/answer') await this.#answer(id, request, response);
    else throw new Refusal(404, 'There is no such page.');
  }

  async #show(id: string, from: number | null, response: ServerResponse): Promise<void> {
    const row = await this.#store.session(id);
    if (!row) throw new Refusal(404, 'There is no such session.');
    const events = await this.#store.load(id);
    html(response, await sessionPage({ row, events, ...(await attachedBlobs(events, this.#store)) }, from));
  }

  /** Lets in only requests that a browser made for a page of ours, at the name we go by: another site cannot make one,
   * not even where it has its name lead to this machine. */
  #refuseStrangers({ headers }: IncomingMessage): void {
    const names = [`127.0.0.1:${this.#port}`, `localhost:${this.#port}`];
    if (!names.includes(headers.host ?? '')) throw new Refusal(421, 'This page is served only at 127.0.0.1.');
    const { origin, 'sec-fetch-site': site } = headers;
    if (origin !== undefined && !names.some((name) => origin === `http://${name}`))
      throw new Refusal(403, 'Requests from other sites are refused.');
    if (site !== undefined && site !== 'same-origin' && site !== 'none')
      throw new Refusal(403, 'Requests from other sites are refused.');
  }

  #isToken(given: string): boolean {
    const [one, other] = [Buffer.from(given), Buffer.from(this.#token)];
    return one.length === other.length && timingSafeEqual(one, other);
  }

  async #list(query: string, response: ServerResponse): Promise<void> {
    const rows = await this.#store.list(mostRows);
    const page = /[\p{L}\p{N}]/u.test(query)
      ? foundPage(query, await this.#store.search(query, mostHits), rows)
      : listPage(rows, await this.#store.count());
    html(response, page, searchPolicy);
  }

  /** A browser that connects again names the last event that it got. */
  async #follow(id: string, after: number, request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (!(await this.#store.session(id))) throw new Refusal(404, 'There is no such session.');
    if (response.destroyed) return;
    response.writeHead(200, { ...always, 'content-type': 'text/event-stream' });
    const last = Number(request.headers['last-event-id'] ?? after);
    const open = this.#rooms.get(id) ?? { room: Room.open(this.#store, this.#files, id), pages: 0 };
    this.#rooms.set(id, open);
    open.pages++;
    response.on('close', () => {
      open.pages--;
      if (open.pages === 0 && this.#rooms.get(id) === open) this.#rooms.delete(id);
      void open.room.then(async (room) => {
        room.leave(response);
        if (open.pages === 0) await room.close();
      });
    });
    (await open.room).enter(response, Number.isInteger(last) ? last : 0);
  }

  async #answer(id: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.headers['content-type'] !== 'application/json') throw new Refusal(415, 'Send the answer as JSON.');
    const said = parseBody(await bodyOf(request));
    const { id: question, answer, shown } = isRecord(said) ? said : {};
    if (
      typeof question !== 'string' ||
      typeof shown !== 'string' ||
      (answer !== 'once' && answer !== 'session' && answer !== 'deny')
    )
      throw new Refusal(400, 'Send an id, what was shown, and once, session or deny.');
    const room = await this.#rooms.get(id)?.room;
    const problem = room ? await room.answer(question, answer, shown) : 'This prompt is already closed.';
    if (problem !== null) throw new Refusal(409, problem);
    plain(response, 200, 'answered');
  }
}

/** A session that pages follow, and how many do, those that still open it among them. */
interface OpenRoom {
  readonly room: Promise<Room>;
  pages: number;
}

/** A page, and what it has. */
interface Client {
  readonly response: ServerResponse;
  /** The number of the last event whose entry it got. */
  seq: number;
  readonly parts: Map<string, string>;
}

/** The time between two updates of the pages, at least. */
const frameMs = 100;
const mostOutputBytes = 16 * 1024;

class Room {
  readonly #store: Store;
  readonly #clients = new Set<Client>();
  readonly #events: Event[] = [];
  /** The events of each call. */
  readonly #calls = new Map<string, Event[]>();
  readonly #openCalls = new Set<string>();
  readonly #questions = new Map<string, FollowerApproval>();
  #following: Following | null = null;
  #text = '';
  #output = '';
  /** Empty until it is known whether the session runs. */
  #state = '';
  /** The cost of the session, as far as prices are known. */
  #costUsd = 0;
  #timer: NodeJS.Timeout | null = null;
  #isPainting = false;
  /** Something has come since the last painting began. */
  #isDirty = false;
  #paintedAt = -Infinity;

  private constructor(store: Store) {
    this.#store = store;
  }

  static async open(store: Store, files: Files, id: string): Promise<Room> {
    const room = new Room(store);
    const see = (seen: SessionUpdate): void => {
      room.#see(seen);
      room.#soon();
    };
    room.#following = await followSession(store, files, id, see, { client: 'web' });
    return room;
  }

  /** Sends a page what is new since `after`, and from now on whatever comes. */
  enter(response: ServerResponse, after: number): void {
    if (response.destroyed) return;
    this.#clients.add({ response, seq: after, parts: new Map() });
    this.#soon();
  }

  leave(response: ServerResponse): void {
    for (const client of this.#clients) if (client.response === response) this.#clients.delete(client);
  }

  /** Returns null, or the reason why the answer does not count. */
  async answer(id: string, answer: 'once' | 'session' | 'deny', shown: string): Promise<string | null> {
    const done = await this.#following?.request({ type: 'answer', id, answer, shown });
    return done ? (done.problem ?? null) : 'This session does not run any more.';
  }

  async close(): Promise<void> {
    if (this.#timer) clearTimeout(this.#timer);
    await this.#following?.close();
    for (const { response } of this.#clients) response.end();
    this.#clients.clear();
  }

  #see(seen: SessionUpdate): void {
    switch (seen.type) {
      case 'events':
        this.#record(seen.events);
        return;
      case 'text':
        this.#text = seen.text;
        return;
      case 'void':
        this.#text = '';
        return;
      case 'output':
        if (this.#openCalls.has(seen.callId)) this.#output = tailBytes(this.#output + seen.text, mostOutputBytes);
        return;
      case 'live':
        this.#state = seen.live ? (seen.busy ? 'working' : 'waiting for you') : 'not running';
        if (seen.live) return;
        this.#questions.clear();
        this.#text = '';
        this.#output = '';
        return;
      case 'question':
        this.#questions.set(seen.question.id, seen.question);
        return;
      case 'answered':
        this.#questions.delete(seen.id);
        return;
      default:
        return seen satisfies never;
    }
  }

  #record(events: readonly Event[]): void {
    for (const event of events) {
      this.#events.push(event);
      const id = callOf(event);
      if (id !== null) this.#calls.set(id, [...(this.#calls.get(id) ?? []), event]);
      if (id === null) continue;
      if (event.kind === 'tool_call') this.#openCalls.add(id);
      if (event.kind === 'approval') this.#questions.delete(id);
      if (event.kind === 'tool_result') this.#openCalls.delete(id);
    }
    this.#costUsd += totalsOf(events).costUsd;
    if (events.some(endsText)) this.#text = '';
    if (events.some(({ kind }) => kind === 'tool_result')) this.#output = '';
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
    const parts = { text: this.#text, output: this.#output, state: this.#stateNow(), asks: this.#asksNow() };
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

  /** A session that has asked something does not work. */
  #stateNow(): string {
    const state = this.#questions.size > 0 ? 'waiting for an answer' : this.#state;
    return this.#costUsd > 0 && state !== '' ? `${state} · ${formatCost(this.#costUsd)}` : state;
  }

  #asksNow(): string {
    return askBlocks([...this.#questions.values()]);
  }
}

/** The call that an event belongs to. */
function callOf(event: Event): string | null {
  const known = knownEvent(event);
  if (known?.kind === 'tool_call') return known.data.id;
  return known?.kind === 'tool_result' || known?.kind === 'approval' ? known.data.tool_call_id : null;
}

/** Returns the index of the first event with a greater number. The events are in the order of their numbers. */
function firstAfter(events: readonly Event[], seq: number): number {
  let [low, high] = [0, events.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((events[middle]?.seq ?? 0) > seq) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** A page that does not read is let go; it comes again and gets what it missed. */
const mostUnreadBytes = 16 * 1024 * 1024;

/** `id`: a browser that connects again names it. */
function send(client: ServerResponse, name: string, value: unknown, id?: number): void {
  const mark = id === undefined ? '' : `id: ${id}\n`;
  if (client.writableLength > mostUnreadBytes) client.destroy();
  else if (!client.destroyed) client.write(`${mark}event: ${name}\ndata: ${JSON.stringify(value)}\n\n`);
}

const always = {
  'content-security-policy': pagePolicy,
  'cache-control': 'no-store',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'cross-origin-resource-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
} as const;

function html(response: ServerResponse, text: string, policy = pagePolicy): void {
  response
    .writeHead(200, { ...always, 'content-security-policy': policy, 'content-type': 'text/html; charset=utf-8' })
    .end(text);
}

function plain(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { ...always, 'content-type': 'text/plain; charset=utf-8' }).end(`${text}\n`);
}

function cookieOf({ headers }: IncomingMessage, name: string): string {
  const parts = (headers.cookie ?? '').split(';').map((part) => part.trim());
  return parts.find((part) => part.startsWith(`${name}=`))?.slice(name.length + 1) ?? '';
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > mostBodyBytes) throw new Refusal(413, 'The answer is too long.');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function parseBody(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return null;
  }
}
