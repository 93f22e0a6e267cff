import { chmodSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { loadOnce, type Log } from '../../kernel/core/runtime.js';
import type { MessageDelivery } from './message-delivery.js';
import type { OwnedSession, Owner, OwnerHost, OwnerParts } from './owner-host.js';
import type { OwnerServer } from './owner-server.js';
import { OwnedState } from './session-state.js';
import { makePrivateFolder, socketFolders, socketPath } from './socket-path.js';

/** The socket opens after this time, or with the first request, whichever comes first. */
const openDelayMs = 250;

/** A session that no other process sees. */
const noOwner: Owner = {
  serve: () => undefined,
  deliverKept: () => Promise.resolve(),
  clients: () => 0,
  close: () => undefined,
};

/** Opens a session to other processes of the same user: they follow it, send messages, answer its questions, and end
 * it. Nothing is loaded before the first client comes. */
export function openOwner(session: OwnedSession, parts: OwnerParts): Owner {
  const { ephemeral, log, config } = parts.settings;
  if (ephemeral) return noOwner;
  const state = new OwnedState(session);
  let host: OwnerHost = {};
  let loaded: OwnerCode | null = null;
  // Loaded with the first client, or the first message of one.
  const code = loadOnce(async () => {
    const { MessageDelivery, OwnerServer } = await import('./owner-code.js');
    const delivery = new MessageDelivery(session, parts, () => host);
    loaded = { delivery, server: new OwnerServer({ session, state, parts, host: () => host, delivery }) };
    return loaded;
  });
  const failed = failureLog(log);
  let isClosed = false;
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.unref();
    code.get().then(({ server: clients }) => {
      if (isClosed) socket.destroy();
      else clients.connect(socket);
    }, failed('a client was not served'));
  });
  server.on('error', failed('the socket of the session failed'));
  const open = (): void => {
    if (isClosed || server.listening) return;
    try {
      listen(server, session.id, config.files);
    } catch (error) {
      failed('the session cannot be reached by other processes')(error);
    }
  };
  const timer = setTimeout(open, openDelayMs).unref();
  const unsubscribe = session.subscribe((event) => {
    state.take(event);
    loaded?.delivery.take(event);
    loaded?.server.take(event);
    if (event.type === 'request_started' && !server.listening) setImmediate(open);
  });
  return {
    serve: (next) => {
      host = next;
      loaded?.delivery.handOver();
    },
    deliverKept: async () => {
      const deliver = async (): Promise<void> => {
        if ((await parts.store.keptMessages(session.id)).length > 0) await (await code.get()).delivery.deliverKept();
      };
      await deliver().catch(failed('the saved messages of other processes were not read'));
    },
    clients: () => loaded?.server.clients() ?? 0,
    close: () => {
      isClosed = true;
      clearTimeout(timer);
      unsubscribe();
      server.close();
      loaded?.server.close();
    },
  };
}

function failureLog(log: Log): (message: string) => (error: unknown) => void {
  return (message) => (error) => {
    log({ at: 'live', message, error: String(error) });
  };
}

/** The part of the owner that serves clients. */
interface OwnerCode {
  readonly delivery: MessageDelivery;
  readonly server: OwnerServer;
}

function listen(server: Server, sessionId: string, files: { readonly data: string }): void {
  const [folder] = socketFolders(files);
  if (folder === undefined) throw new Error('no folder has a path that is short enough for a socket');
  makePrivateFolder(folder, files);
  const path = socketPath(folder, sessionId);
  // The lease makes this process the only owner: a socket that is there belongs to a process that was killed.
  rmSync(path, { force: true });
  server.listen(path, () => {
    chmodSync(path, 0o600);
  });
  server.unref();
}
