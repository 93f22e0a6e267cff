import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { CliError, exit } from '../../kernel/console/command.js';
import { attachedBlobs } from '../../kernel/console/stored-session.js';
import type { Store } from '../../kernel/core/store.js';
import { endedFromOutside } from '../../ui/ending.js';
import type { RootOptions } from '../../kernel/console/options.js';
import { print, printData } from '../../kernel/console/print.js';
import { openRecord } from '../../app/open-record.js';
import { readSettings } from '../../app/settings.js';
import { HttpApi, isApiPath } from './api/answer-api.js';
import { openAttachedFiles } from './api/attached-uploads.js';
import { LiveSessions, type LiveSessionsParts } from './api/live-sessions.js';
import { sessionLauncher } from './api/session-launcher.js';
import { HttpGuard, integerOf, Refusal } from './http-guard.js';
import { PageRoom } from './page-room.js';
import { SessionFeeds } from './session-feed.js';
import { foundPage, listPage, pagePolicy, searchPolicy, sessionPage } from './session-page.js';

/** Serves the record and the running sessions on this machine's loopback address, until Ctrl-C: as pages for a browser,
 * and as an HTTP API. Whoever has the token that is printed may read all of it, send messages and answer questions; it is
 * new with each start. `port` 0: any free one. `json`: prints one line of JSON for a program. Returns the exit code. */
export async function servePages(
  options: RootOptions,
  { port, json }: { readonly port: number; readonly json: boolean },
): Promise<number> {
  const settings = await readSettings(options);
  const { files } = settings.config;
  const mask = (text: string): string => settings.guard.text(text);
  const { store } = await openRecord(settings, () => undefined);
  try {
    const ended = endedFromOutside();
    const server = await serveSessions(
      { store, files, launcher: sessionLauncher(options), mask, cwd: settings.cwd },
      port,
    );
    const { url, token } = server;
    const page = `${url}/?token=${token}`;
    if (json) printData(`${JSON.stringify({ url, token, page, pid: process.pid })}\n`);
    else
      print(
        `${page}\nAnyone with this address can read every session, send messages and answer prompts. Ctrl-C ends it.\n`,
      );
    const code = await ended;
    await server.close();
    return code;
  } finally {
    await store.close();
  }
}

/** The sessions that are served, and the start of new ones. */
export type Served = Pick<LiveSessionsParts, 'store' | 'files' | 'launcher' | 'mask' | 'cwd'>;

export interface OpenServer {
  readonly url: string;
  readonly token: string;
  readonly close: () => Promise<void>;
}

/** Serves sessions at this port of 127.0.0.1. Throws a `CliError` where the port cannot be used. */
export async function serveSessions(served: Served, port: number): Promise<OpenServer> {
  const { store, files, cwd } = served;
  const feeds = new SessionFeeds(store, files);
  const uploads = openAttachedFiles(files, Date.now);
  const sessions = new LiveSessions({ ...served, feeds, uploads, headers: apiHeaders });
  const server = new SessionServer({ store, feeds, api: new HttpApi(sessions, apiHeaders), sessions, cwd });
  const { url, token } = await server.listen(port);
  return { url, token, close: () => server.close() };
}

const mostRows = 200;
const mostHits = 100;

interface ServerParts {
  readonly store: Store;
  readonly feeds: SessionFeeds;
  readonly api: HttpApi;
  readonly sessions: LiveSessions;
  /** The directory of new sessions. */
  readonly cwd: string;
}

/** A session that pages follow, and how many do, those that still open it among them. */
interface OpenRoom {
  readonly room: Promise<PageRoom>;
  pages: number;
}

class SessionServer {
  readonly #d: ServerParts;
  readonly #guard = new HttpGuard();
  readonly #rooms = new Map<string, OpenRoom>();
  readonly #server: Server;

  constructor(parts: ServerParts) {
    this.#d = parts;
    this.#server = createServer((request, response) => {
      this.#respond(request, response).catch((error: unknown) => {
        const refusal =
          error instanceof Refusal ? error : new Refusal(500, error instanceof Error ? error.message : String(error));
        if (response.headersSent) response.end();
        else plain(response, refusal);
      });
    });
  }

  async listen(port: number): Promise<Pick<OpenServer, 'url' | 'token'>> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', (error) => {
        reject(new CliError(exit.failed, `port ${port} cannot be used: ${error.message}`, 'Give another --port.'));
      });
      this.#server.listen(port, '127.0.0.1', resolve);
    });
    const address = this.#server.address();
    this.#guard.port = address !== null && typeof address === 'object' ? address.port : port;
    const { origin: url, token } = this.#guard;
    return { url, token };
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    for (const { room } of this.#rooms.values()) (await room).close();
    await this.#d.feeds.close();
  }

  async #respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const guard = this.#guard;
    const url = new URL(request.url ?? '/', guard.origin);
    if (url.pathname.startsWith(`${guard.path}/`)) url.pathname = url.pathname.slice(guard.path.length);
    if (isApiPath(url.pathname))
      return await this.#d.api.answer(request, response, url, {
        refuseStrangers: () => {
          guard.refuseStrangers(request);
        },
        callerOf: () => guard.callerOf(request),
      });
    guard.refuseStrangers(request);
    const given = url.searchParams.get('token');
    if (given !== null && request.method === 'GET')
      // The token is taken out of the address, so that it is in no history and no link.
      response
        .writeHead(303, { location: guard.path + url.pathname, 'set-cookie': guard.cookieFor(given), ...always })
        .end();
    else {
      guard.callerOf(request);
      await this.#page(url, request, response);
    }
  }

  async #page({ pathname, searchParams }: URL, request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method !== 'GET') throw new Refusal(405, 'Pages take GET.', { headers: { allow: 'GET' } });
    const [, id = '', rest = ''] = /^\/s\/([\w-]+)(\/events)?$/.exec(pathname) ?? [];
    const from = searchParams.get('from');
    if (pathname === '/') await this.#list(searchParams.get('q') ?? '', response);
    else if (id !== '' && rest === '') await this.#show(id, from === null ? null : integerOf('from', from), response);
    else if (id !== '') await this.#follow(id, searchParams.get('after') ?? '0', request, response);
    else throw new Refusal(404, 'There is no such page.');
  }

  async #show(id: string, from: number | null, response: ServerResponse): Promise<void> {
    const row = await this.#d.store.session(id);
    if (!row) throw new Refusal(404, 'There is no such session.');
    const events = await this.#d.store.load(id);
    html(response, await sessionPage({ row, events, ...(await attachedBlobs(events, this.#d.store)) }, from));
  }

  async #list(query: string, response: ServerResponse): Promise<void> {
    const { store, sessions, cwd } = this.#d;
    const rows = await store.list(mostRows);
    if (/[\p{L}\p{N}]/u.test(query))
      html(response, foundPage(query, await store.search(query, mostHits), rows), searchPolicy);
    else {
      const running = await sessions.running();
      html(response, listPage({ rows, running, total: await store.count(), cwd }), searchPolicy);
    }
  }

  /** A browser that connects again names the last event that it got. */
  async #follow(id: string, after: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { store, feeds } = this.#d;
    if (!(await store.session(id))) throw new Refusal(404, 'There is no such session.');
    const { 'last-event-id': last } = request.headers;
    const from = integerOf('after', typeof last === 'string' && last !== '' ? last : after);
    if (response.destroyed) return;
    const { feed, release } = await feeds.use(id);
    response.once('close', release);
    if (response.destroyed) {
      release();
      return;
    }
    response.writeHead(200, { ...always, 'content-type': 'text/event-stream' });
    const open = this.#rooms.get(id) ?? { room: PageRoom.open(store, feed, id), pages: 0 };
    this.#rooms.set(id, open);
    open.pages++;
    response.once('close', () => {
      open.pages--;
      if (open.pages > 0) return;
      if (this.#rooms.get(id) === open) this.#rooms.delete(id);
      void open.room.then((room) => {
        room.close();
      });
    });
    (await open.room).enter(response, from);
  }
}

const always = {
  'content-security-policy': pagePolicy,
  'cache-control': 'no-store',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'cross-origin-resource-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
} as const;

/** Nothing of the API is a page. */
const apiHeaders = { ...always, 'content-security-policy': "default-src 'none'; frame-ancestors 'none'" } as const;

function html(response: ServerResponse, text: string, policy = pagePolicy): void {
  response
    .writeHead(200, { ...always, 'content-security-policy': policy, 'content-type': 'text/html; charset=utf-8' })
    .end(text);
}

function plain(response: ServerResponse, { status, message, hint, headers }: Refusal): void {
  response
    .writeHead(status, { ...always, ...headers, 'content-type': 'text/plain; charset=utf-8' })
    .end(`${[message, hint].filter((text) => text !== '').join(' ')}\n`);
}
