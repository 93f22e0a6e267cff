import { parseJson } from '../../core/json.js';
import { chmodSync, rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { CliError, exit } from '../../commands/command.js';
import { ensurePrivateDirectory } from '../../config/settings-file.js';
import type { Event } from '../../core/event.js';
import { isRecord } from '../../core/json.js';
import type { SessionLog } from '../../core/store.js';
import { onLines, type Told, type ToldQuestion } from '../session/open-followers.js';

/** What a follower sees: the events of the record, each once and in order, and what is not on record (yet). `live`:
 * whether the process that runs the session is heard. */
export type Seen =
  | { readonly type: 'events'; readonly events: readonly Event[] }
  | { readonly type: 'live'; readonly live: boolean; readonly busy: boolean }
  | { readonly type: 'question'; readonly question: ToldQuestion }
  | Extract<Told, { readonly type: 'text' | 'void' | 'output' | 'answered' }>;

export interface FollowAnswer {
  readonly id: string;
  readonly answer: 'once' | 'session' | 'deny';
  readonly message?: string;
}

export interface Following {
  /** False where the session is not heard. */
  answer(said: FollowAnswer): boolean;
  close(): Promise<void>;
}

/** The record is read anew so often: an event that nobody told of shows up after this time. */
const betweenReadsMs = 500;
/** How a record on a server is followed: read so often, and at once where `listen` calls. */
export interface Bell {
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
  see: (seen: Seen) => void,
  bell?: Bell,
): Promise<Following> {
  ensurePrivateDirectory(folder);
  const path = join(folder, `${sessionId}.${process.pid}.sock`);
  const sockets = new Set<Socket>();
  const record = createReader(store, sessionId, see);
  await record.readAll();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => {
      sockets.delete(socket);
      if (sockets.size === 0) see({ type: 'live', live: false, busy: false });
    });
    onLines(socket, (line) => {
      void record.take(line);
    });
  });
  await listening(server, path);
  const ended = new AbortController();
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
    throw new CliError(exit.failed, `no socket fits ${path}`, 'Set AGENT_HOME to a shorter path.');
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

interface Reader {
  readAll(): Promise<void>;
  readNew(): Promise<void>;
  /** Takes a line of the process that runs the session. */
  take(line: string): Promise<void>;
}

/** Reads the record and hands out each event once. What is told in between waits for the events before it. */
function createReader(store: Pick<SessionLog, 'load' | 'tail'>, sessionId: string, see: (seen: Seen) => void): Reader {
  let seen = 0;
  let last: Promise<void> = Promise.resolve();
  const hand = (events: readonly Event[]): void => {
    const fresh = events.filter(({ seq }) => seq > seen);
    if (fresh.length === 0) return;
    seen = fresh.at(-1)?.seq ?? seen;
    see({ type: 'events', events: fresh });
  };
  const next = (work: () => Promise<void> | void): Promise<void> => {
    last = last.then(work).catch(() => undefined);
    return last;
  };
  const readAll = async (): Promise<void> => {
    hand(await store.load(sessionId));
  };
  const readNew = async (): Promise<void> => {
    let events = await store.tail(sessionId, 1);
    // More may have come since the end was looked up: nothing is left out in between.
    for (let first = events[0]; first && first.seq > seen + 1; [first] = events)
      events = await store.tail(sessionId, (events.at(-1)?.seq ?? seen) - seen);
    hand(events);
  };
  return {
    readAll: () => next(readAll),
    readNew: () => next(readNew),
    take: (line) =>
      next(async () => {
        const told = toldIn(line);
        if (told?.type === 'event') await readNew();
        else if (told) for (const one of seenOf(told)) see(one);
      }),
  };
}

function seenOf(told: Exclude<Told, { type: 'event' }>): readonly Seen[] {
  switch (told.type) {
    case 'state':
      return [
        { type: 'live', live: true, busy: told.busy },
        ...told.questions.map((question): Seen => ({ type: 'question', question })),
      ];
    case 'busy':
      return [{ type: 'live', live: true, busy: told.busy }];
    default:
      return [told];
  }
}

const kinds: readonly string[] = ['state', 'event', 'text', 'void', 'output', 'question', 'answered', 'busy'];

/** The other side is this program, of this version or another. */
function toldIn(line: string): Told | null {
  try {
    const value: unknown = parseJson(line);
    return isRecord(value) && typeof value.type === 'string' && kinds.includes(value.type) ? (value as Told) : null;
  } catch {
    return null;
  }
}
