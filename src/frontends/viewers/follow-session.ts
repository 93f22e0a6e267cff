import { parseJson } from '../../kernel/core/json.js';
import { chmodSync, rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { CliError, exit } from '../../kernel/console/command.js';
import { ensurePrivateDirectory } from '../../kernel/config/settings-file.js';
import type { Event } from '../../kernel/core/event.js';
import { isRecord } from '../../kernel/core/json.js';
import type { SessionLog } from '../../kernel/core/store.js';
import {
  endsText,
  onLines,
  removeDeadSockets,
  type FollowerMessage,
  type FollowerApproval,
} from '../../app/open-followers.js';

/** An update for a follower: the events of the log, each once and in order, and what is not in the log (yet). `text`: the
 * whole answer so far; the event of the answer replaces it. `live`: whether the process that runs the session is
 * connected. */
export type SessionUpdate =
  | { readonly type: 'events'; readonly events: readonly Event[] }
  | { readonly type: 'live'; readonly live: boolean; readonly busy: boolean }
  | { readonly type: 'question'; readonly question: FollowerApproval }
  | { readonly type: 'text'; readonly text: string }
  | Extract<FollowerMessage, { readonly type: 'void' | 'output' | 'answered' }>;

interface FollowAnswer {
  readonly id: string;
  readonly answer: 'once' | 'session' | 'deny';
  readonly message?: string;
}

export interface Following {
  /** False where the session is not heard. */
  answer(said: FollowAnswer): boolean;
  close(): Promise<void>;
}

/** The interval of reading the record again. An event that no process announced appears after this time. */
const betweenReadsMs = 500;
/** The way to follow a record on a server: it is read every `everyMs`, and at once if `listen` calls. */
export interface ChangeNotifier {
  readonly everyMs: number;
  listen(ring: () => void): Promise<(() => Promise<void>) | null>;
}

/** A socket's address takes no longer path. Source: unix(7), `sun_path`, of which macOS has 104 bytes. */
const longestPath = 103;

/** Follows a session, whether it runs now or later. `see` is called with all events on record first. Throws a
 * `CliError` where no socket can be opened. */
export async function followSession(
  store: Pick<SessionLog, 'load' | 'tail'>,
  folder: string,
  sessionId: string,
  see: (seen: SessionUpdate) => void,
  bell?: ChangeNotifier,
): Promise<Following> {
  ensurePrivateDirectory(folder);
  removeDeadSockets(folder);
  const path = join(folder, `${sessionId}.${process.pid}.sock`);
  const sockets = new Set<Socket>();
  const ended = new AbortController();
  const record = new Reader(store, sessionId, see);
  await record.readAll();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => {
      sockets.delete(socket);
      if (sockets.size === 0 && !ended.signal.aborted) void record.left(() => sockets.size === 0);
    });
    onLines(socket, (line) => {
      void record.take(line);
    });
  });
  await listening(server, path);
  const polling = poll(record, ended.signal, bell?.everyMs ?? betweenReadsMs);
  const silence = await bell?.listen(() => void record.readNew()).catch(() => null);
  return {
    answer: (said) => {
      for (const socket of sockets) socket.write(`${JSON.stringify(said)}\n`);
      return sockets.size > 0;
    },
    close: async () => {
      ended.abort();
      for (const socket of sockets) socket.destroy();
      server.close();
      rmSync(path, { force: true });
      await silence?.();
      await polling;
    },
  };
}

async function listening(server: Server, path: string): Promise<void> {
  if (path.length > longestPath)
    throw new CliError(exit.failed, `the socket path is too long: ${path}`, 'Set AGENT_HOME to a shorter path.');
  rmSync(path, { force: true });
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => {
      reject(new CliError(exit.failed, `the session cannot be followed: ${error.message}`, `Look at ${path}.`));
    });
    server.listen(path, resolve);
  });
  chmodSync(path, 0o600);
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

  /** Takes a line of the process that runs the session. */
  take(line: string): Promise<void> {
    return this.#next(async () => {
      const told = toldIn(line);
      if (told) await this.#take(told);
    });
  }

  /** Reports that this process has left, once its lines are taken and its last events read, if `isGone` then. */
  left(isGone: () => boolean): Promise<void> {
    return this.#next(async () => {
      await this.#readTo(this.#seen + 1);
      if (!isGone()) return;
      this.#text = '';
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

  async #take(told: FollowerMessage): Promise<void> {
    switch (told.type) {
      case 'event':
        if (told.seq > this.#seen) await this.#readTo(told.seq);
        return;
      case 'state':
        await this.#readTo(this.#seen + 1);
        await this.#takeText(told.text ?? '', told.after, true);
        this.#see({ type: 'live', live: true, busy: told.busy });
        for (const question of told.questions) this.#see({ type: 'question', question });
        return;
      case 'text':
        await this.#takeText(told.text, told.after, false);
        return;
      case 'busy':
        this.#see({ type: 'live', live: true, busy: told.busy });
        return;
      case 'void':
        this.#text = '';
        this.#see(told);
        return;
      case 'output':
      case 'question':
      case 'answered':
        this.#see(told);
        return;
      default:
        told satisfies never;
    }
  }

  /** Takes a part of the answer in flight, or all of it so far. An answer that the log has by now is left out. */
  async #takeText(part: string, after: number | undefined, isWhole: boolean): Promise<void> {
    if (after !== undefined && after > this.#seen) await this.#readTo(after);
    const isRecorded = after !== undefined && this.#answered > after;
    if (isRecorded && !isWhole) return;
    const text = isRecorded ? '' : isWhole ? part : this.#text + part;
    if (text === this.#text) return;
    this.#text = text;
    this.#see({ type: 'text', text });
  }
}

const kinds: readonly string[] = ['state', 'event', 'text', 'void', 'output', 'question', 'answered', 'busy'];

/** The other side is this program, of this version or another. */
function toldIn(line: string): FollowerMessage | null {
  try {
    const value: unknown = parseJson(line);
    return isRecord(value) && typeof value.type === 'string' && kinds.includes(value.type)
      ? (value as FollowerMessage)
      : null;
  } catch {
    return null;
  }
}
