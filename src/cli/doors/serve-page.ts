import { parseJson } from '../../core/json.js';
import { smallestOf } from '../../core/lists.js';
import { randomBytes, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { CliError, exit } from '../../commands/command.js';
import { attachedBlobs } from '../../commands/sessions/stored-session.js';
import { type Event, knownEvent } from '../../core/event.js';
import { isRecord } from '../../core/json.js';
import type { Store } from '../../core/store.js';
import { tailBytes } from '../../core/text.js';
import { formatCost } from '../../ui/item-lines.js';
import { totalsOf } from '../../ui/view.js';
import { endingSignals, onEndingSignal } from '../ending.js';
import type { RootOptions } from '../options.js';
import { onLostStream, print } from '../print.js';
import { followersFolder, type ToldQuestion } from '../session/open-followers.js';
import { openRecord } from '../session/open-record.js';
import { readSettings } from '../settings.js';
import { type Following, followSession, type Seen } from './follow-session.js';
import { askBlocks, entryParts, foundPage, listPage, pagePolicy, sessionPage } from './session-page.js';

/** Opens the record and the running sessions as pages on this machine's loopback address, until Ctrl-C. Whoever knows
 * the address that is printed may read all of it and answer questions: it holds a secret that is new with each start.
 * `port` 0: any free one. Returns the exit code. */
export async function servePages(options: RootOptions, { port }: { readonly port: number }): Promise<number> {
  const settings = await readSettings(options);
  const { store } = await openRecord(settings, () => undefined);
  try {
    const pages = new Pages(store, followersFolder(settings.config.files));
    const address = await pages.listen(port);
    print(`${address}\nWhoever has this address may read every session and answer its questions. Ctrl-C ends it.\n`);
    const code = await new Promise<number>((resolve) => {
      onLostStream(() => {
        resolve(exit.done);
      });
      onEndingSignal((signal) => {
        resolve(endingSignals[signal]);
      });
    });
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

class Pages {
  readonly #store: Store;
  readonly #folder: string;
  readonly #token = randomBytes(24).toString('base64url');
  readonly #rooms = new Map<string, Promise<Room>>();
  readonly #server: Server;
  #port = 0;

  constructor(store: Store, folder: string) {
    this.#store = store;
    this.#folder = folder;
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
    for (const room of this.#rooms.values()) await (await room).close();
  }

  async #respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', `http://127.0.0.1:${this.#port}`);
    this.#refuseStrangers(request);
    const given = url.searchParams.get('token');
    if (given !== null && request.method === 'GET') this.#letIn(given, url.pathname, response);
    else if (!this.#isToken(cookieOf(request, this.#cookie())))
      throw new Refusal(403, 'Open the address that agent serve has printed, with its token.');
    else await this.#route(url, request, response);
  }

  /** Takes the secret out of the address, so that it is in no history and no link. */
  #letIn(given: string, path: string, response: ServerResponse): void {
    if (!this.#isToken(given)) throw new Refusal(403, 'This is not the address that was printed.');
    const cookie = `${this.#cookie()}=${this.#token}; HttpOnly; SameSite=Strict; Path=/`;
    response.writeHead(303, { location: path, 'set-cookie': cookie, ...always }).end();
  }

  /** Cookies are shared by all ports. */
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
    if (!names.includes(headers.host ?? '')) throw new Refusal(421, 'This is served at 127.0.0.1 alone.');
    const { origin, 'sec-fetch-site': site } = headers;
    if (origin !== undefined && !names.some((name) => origin === `http://${name}`))
      throw new Refusal(403, 'Another site has no business here.');
    if (site !== undefined && site !== 'same-origin' && site !== 'none')
      throw new Refusal(403, 'Another site has no business here.');
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
    html(response, page);
  }

  async #follow(id: string, after: number, request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (!(await this.#store.session(id))) throw new Refusal(404, 'There is no such session.');
    response.writeHead(200, { ...always, 'content-type': 'text/event-stream' });
    const room = await this.#room(id);
    room.enter(response, Number.isInteger(after) ? after : 0);
    request.on('close', () => {
      if (room.leave(response)) return;
      this.#rooms.delete(id);
      void room.close();
    });
  }

  #room(id: string): Promise<Room> {
    const known = this.#rooms.get(id);
    if (known) return known;
    const opened = Room.open(this.#store, this.#folder, id);
    this.#rooms.set(id, opened);
    return opened;
  }

  async #answer(id: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.headers['content-type'] !== 'application/json') throw new Refusal(415, 'An answer is JSON.');
    const said = parsed(await bodyOf(request));
    const { id: question, answer } = isRecord(said) ? said : {};
    if (typeof question !== 'string' || (answer !== 'once' && answer !== 'session' && answer !== 'deny'))
      throw new Refusal(400, 'An answer has an id, and once, session or deny.');
    const room = await this.#rooms.get(id);
    if (!room?.answer(question, answer)) throw new Refusal(409, 'This question is not open any more.');
    plain(response, 200, 'answered');
  }
}

/** A session that pages follow. */
class Room {
  readonly #store: Store;
  readonly #clients = new Set<ServerResponse>();
  readonly #events: Event[] = [];
  readonly #calls = new Map<string, number>();
  readonly #questions = new Map<string, ToldQuestion>();
  #following: Following | null = null;
  #text = '';
  #output = '';
  #state = 'not running';
  /** What the session has cost, as far as prices are known. */
  #costUsd = 0;
  /** Pages get what is new in the order in which it came. */
  #sent: Promise<void> = Promise.resolve();

  private constructor(store: Store) {
    this.#store = store;
  }

  static async open(store: Store, folder: string, id: string): Promise<Room> {
    const room = new Room(store);
    room.#following = await followSession(store, folder, id, (seen) => {
      room.#see(seen);
    });
    return room;
  }

  /** Sends a page what is new since `after`, and from now on whatever comes. */
  enter(client: ServerResponse, after: number): void {
    const missed = this.#events.filter(({ seq }) => seq > after);
    this.#sent = this.#sent.then(async () => {
      send(client, 'entries', await this.#parts(missed));
      send(client, 'text', this.#text);
      send(client, 'state', this.#stateNow());
      send(client, 'asks', askBlocks([...this.#questions.values()]));
      this.#clients.add(client);
    });
  }

  /** Returns whether anybody is left. */
  leave(client: ServerResponse): boolean {
    this.#clients.delete(client);
    return this.#clients.size > 0;
  }

  answer(id: string, answer: 'once' | 'session' | 'deny'): boolean {
    return this.#questions.has(id) && this.#following?.answer({ id, answer }) === true;
  }

  async close(): Promise<void> {
    await this.#following?.close();
    for (const client of this.#clients) client.end();
  }

  #see(seen: Seen): void {
    switch (seen.type) {
      case 'events':
        this.#record(seen.events);
        return;
      case 'text':
        this.#text += seen.text;
        this.#tell('text', this.#text);
        return;
      case 'void':
        this.#text = '';
        this.#tell('text', '');
        return;
      case 'output':
        this.#output = tailBytes(this.#output + seen.text, 16 * 1024);
        this.#tell('output', this.#output);
        return;
      case 'live':
        this.#state = seen.live ? (seen.busy ? 'working' : 'waiting for you') : 'not running';
        if (!seen.live) this.#questions.clear();
        this.#tellQuestions();
        return;
      case 'question':
        this.#questions.set(seen.question.id, seen.question);
        this.#tellQuestions();
        return;
      case 'answered':
        this.#questions.delete(seen.id);
        this.#tellQuestions();
        return;
      default:
        return seen satisfies never;
    }
  }

  #record(events: readonly Event[]): void {
    for (const event of events) {
      this.#events.push(event);
      const known = knownEvent(event);
      if (known?.kind === 'tool_call') this.#calls.set(known.data.id, event.seq);
    }
    this.#costUsd += totalsOf(events).costUsd;
    if (this.#clients.size === 0) return;
    if (events.some(({ kind }) => kind === 'assistant' || kind === 'tool_call')) this.#text = '';
    if (events.some(({ kind }) => kind === 'tool_result')) this.#output = '';
    const [text, output] = [this.#text, this.#output];
    const state = this.#stateNow();
    this.#sent = this.#sent.then(async () => {
      const parts = await this.#parts(events);
      for (const client of this.#clients) {
        send(client, 'entries', parts);
        send(client, 'text', text);
        send(client, 'output', output);
        send(client, 'state', state);
      }
    });
  }

  /** Renders the entries that events make or change: a result changes the entry of its call. */
  async #parts(events: readonly Event[]): ReturnType<typeof entryParts> {
    const changed = new Set(
      events.map((event) => {
        const known = knownEvent(event);
        const call = known?.kind === 'tool_result' || known?.kind === 'approval' ? known.data.tool_call_id : '';
        return this.#calls.get(call) ?? event.seq;
      }),
    );
    const first = smallestOf(changed);
    const shown = this.#events.filter(({ seq }) => seq >= first);
    const { blobs = [] } = await attachedBlobs(shown, this.#store);
    return await entryParts(shown, changed, blobs);
  }

  #tell(name: string, value: string): void {
    this.#sent = this.#sent.then(() => {
      for (const client of this.#clients) send(client, name, value);
    });
  }

  /** A session that has asked something does not work. */
  #stateNow(): string {
    const state = this.#questions.size > 0 ? 'waiting for an answer' : this.#state;
    return this.#costUsd > 0 ? `${state} · ${formatCost(this.#costUsd)}` : state;
  }

  #tellQuestions(): void {
    this.#tell('state', this.#stateNow());
    this.#tell('asks', askBlocks([...this.#questions.values()]));
  }
}

/** A page that does not read is let go; it comes again and gets what it missed. */
const mostUnreadBytes = 16 * 1024 * 1024;

function send(client: ServerResponse, name: string, value: unknown): void {
  if (client.writableLength > mostUnreadBytes) client.destroy();
  else if (!client.destroyed) client.write(`event: ${name}\ndata: ${JSON.stringify(value)}\n\n`);
}

const always = {
  'content-security-policy': pagePolicy,
  'cache-control': 'no-store',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'cross-origin-resource-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
} as const;

function html(response: ServerResponse, text: string): void {
  response.writeHead(200, { ...always, 'content-type': 'text/html; charset=utf-8' }).end(text);
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
    if (bytes > mostBodyBytes) throw new Refusal(413, 'An answer is shorter.');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function parsed(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return null;
  }
}
