import { randomUUID } from 'node:crypto';
import { existsSync, lstatSync, readdirSync, rmSync } from 'node:fs';
import { createConnection, type Socket } from 'node:net';
import { join } from 'node:path';
import { version } from '../../kernel/console/version.js';
import { onLines, parseMessage, toLine } from './lines.js';
import type { ClientMessage, Done, Hello, OwnerFacts, OwnerMessage, OwnerState } from './messages.js';
import { isPrivate, isSocketName, socketFolders, socketPath } from './socket-path.js';

/** A connection of a client to the process that runs a session. */
export interface OwnerClient {
  /** The session as it was when the client came. */
  readonly state: OwnerState;
  send(message: ClientMessage): void;
  /** Sends a message and resolves to what became of it; null where the owner left before it answered, or does not
   * answer in time. A message without a `ref` gets a new one. */
  request(message: OwnerRequest, timeoutMs?: number): Promise<Done | null>;
  /** The bytes that the owner has not read yet. */
  unread(): number;
  close(): void;
  /** Resolves once the connection is closed, by whichever side. */
  readonly closed: Promise<void>;
}

type Referred = Extract<
  ClientMessage,
  { readonly type: 'message' | 'withdraw' | 'interrupt' | 'answer' | 'fill' | 'stop' }
>;
/** A message to which the owner reports the outcome. */
export type OwnerRequest = Referred extends infer Message
  ? Message extends { readonly ref: string }
    ? Omit<Message, 'ref'> & { readonly ref?: string }
    : never
  : never;

/** The client that connects. `onMessage` gets what the owner sends after the state, and states that come later. */
export interface ConnectOptions {
  readonly client: Hello['client'];
  readonly terminal?: NonNullable<Hello['terminal']>;
  readonly onMessage?: (message: OwnerMessage) => void;
  /** Default: 10 s. */
  readonly timeoutMs?: number;
}

const longestAnswerMs = 10_000;
/** The bound for each owner of a list. */
const longestFactsMs = 500;

/** An owner that accepts the connection and does not answer. */
class SilentOwner extends Error {}

interface Files {
  readonly data: string;
}

/** Connects to the process that runs a session. Resolves to null where none does. Rejects with `SilentOwner` where one
 * does not answer in time. */
export async function connectOwner(
  files: Files,
  sessionId: string,
  options: ConnectOptions,
): Promise<OwnerClient | null> {
  for (const folder of socketFolders(files)) {
    const client = isPrivate(folder) ? await connectTo(socketPath(folder, sessionId), options) : null;
    if (client) return client;
  }
  return null;
}

/** The sessions that run on this machine, as far as their processes answer in time. `silent`: the number of those that do
 * not. */
export async function listOwners(
  files: Files,
  timeoutMs = longestFactsMs,
): Promise<{ readonly owners: readonly OwnerFacts[]; readonly silent: number }> {
  const paths = socketFolders(files)
    .filter((folder) => existsSync(folder) && isPrivate(folder))
    .flatMap((folder) => readdirSync(folder).map((name) => join(folder, name)))
    .filter(isSocketName);
  let silent = 0;
  const found = await Promise.all(
    paths.map(async (path) => {
      const client = await connectTo(path, { client: 'ps', timeoutMs }).catch(() => {
        silent += 1;
        return null;
      });
      client?.close();
      return client ? [client.state.facts] : [];
    }),
  );
  return { owners: found.flat(), silent };
}

async function connectTo(path: string, options: ConnectOptions): Promise<OwnerClient | null> {
  const mark = markOf(path);
  if (mark === null) return null;
  const socket = createConnection(path);
  const refused = await new Promise<NodeJS.ErrnoException | null>((resolve) => {
    socket.once('connect', () => {
      resolve(null);
    });
    socket.once('error', resolve);
  });
  if (refused === null) return await greet(socket, options);
  // The process that listened there was killed. Another one may listen by now.
  if (refused.code === 'ECONNREFUSED' && markOf(path) === mark) rmSync(path, { force: true });
  if (refused.code === 'ECONNREFUSED' || refused.code === 'ENOENT') return null;
  if (refused.code === 'EAGAIN') throw new SilentOwner(path);
  throw refused;
}

/** Distinguishes a socket from a later one at the same path. */
function markOf(path: string): string | null {
  const found = lstatSync(path, { bigint: true, throwIfNoEntry: false });
  return found ? `${found.ino} ${found.ctimeNs}` : null;
}

async function greet(
  socket: Socket,
  { client, terminal, onMessage, timeoutMs = longestAnswerMs }: ConnectOptions,
): Promise<OwnerClient | null> {
  const waiting = new Map<string, Waiting>();
  let onState: ((state: OwnerState | null) => void) | null = null;
  const first = new Promise<OwnerState | null>((resolve) => {
    onState = resolve;
  });
  const closed = new Promise<void>((resolve) => {
    socket.on('error', () => undefined);
    socket.on('close', () => {
      onState?.(null);
      for (const { resolve: answer } of waiting.values()) answer(null);
      resolve();
    });
  });
  onLines(socket, (line) => {
    const message = parseMessage(line) as OwnerMessage | null;
    if (message?.type === 'state' && onState) {
      onState(message);
      onState = null;
    } else if (message?.type === 'done' && waiting.has(message.ref)) waiting.get(message.ref)?.resolve(message);
    else if (message) onMessage?.(message);
  });
  const hello: Hello = { type: 'hello', client, pid: process.pid, version, ...(terminal ? { terminal } : {}) };
  socket.write(toLine(hello));
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    socket.destroy();
  }, timeoutMs);
  const state = await first;
  clearTimeout(timer);
  if (isLate) throw new SilentOwner('the process that runs the session does not answer');
  if (state === null) return null;
  return {
    state,
    closed,
    send: (message) => {
      if (socket.writable) socket.write(toLine(message));
    },
    request: (message, longestMs = longestAnswerMs) => request(socket, waiting, message, longestMs),
    unread: () => socket.writableLength,
    close: () => {
      socket.destroySoon();
    },
  };
}

async function request(
  socket: Socket,
  waiting: Map<string, Waiting>,
  message: OwnerRequest,
  longestMs: number,
): Promise<Done | null> {
  const ref = message.ref ?? randomUUID();
  if (!socket.writable) return null;
  const answer = waiting.get(ref) ?? newWaiting();
  waiting.set(ref, answer);
  const late = setTimeout(() => {
    answer.resolve(null);
  }, longestMs);
  socket.write(toLine({ ...message, ref }));
  const done = await answer.promise;
  clearTimeout(late);
  waiting.delete(ref);
  return done;
}

/** A message whose `done` has not come. */
interface Waiting {
  readonly promise: Promise<Done | null>;
  readonly resolve: (done: Done | null) => void;
}

function newWaiting(): Waiting {
  let resolve: Waiting['resolve'] = () => undefined;
  const promise = new Promise<Done | null>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
