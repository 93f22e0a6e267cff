import { loadOnce } from '../../kernel/core/runtime.js';
import type { SessionPort } from '../../kernel/core/session-port.js';
import type { Owner, OwnerHost, OwnerParts } from './owner-host.js';
import { MessageDelivery } from './message-delivery.js';
import { OwnedState } from './session-state.js';

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
 * it. Nothing is loaded before the first request is on its way. */
export function openOwner(session: SessionPort, parts: OwnerParts): Owner {
  if (parts.settings.ephemeral) return noOwner;
  const { log } = parts.settings;
  const state = new OwnedState(session);
  let host: OwnerHost = {};
  let isClosed = false;
  const delivery = new MessageDelivery(session, parts, () => host);
  const server = loadOnce(async () => {
    const { OwnerServer } = await import('./owner-server.js');
    return new OwnerServer({ session, state, parts, host: () => host, delivery });
  });
  let opened: Awaited<ReturnType<typeof server.get>> | null = null;
  const open = async (): Promise<void> => {
    const loaded = await server.get();
    if (isClosed || opened) return;
    opened = loaded;
    loaded.listen();
  };
  const openSoon = (): void => {
    open().catch((error: unknown) => {
      log({ at: 'live', message: 'the session cannot be reached by other processes', error: String(error) });
    });
  };
  const timer = setTimeout(openSoon, openDelayMs).unref();
  const unsubscribe = session.subscribe((event) => {
    state.take(event);
    delivery.take(event);
    if (opened) opened.take(event);
    else if (event.type === 'request_started' || event.type === 'approval_requested') setImmediate(openSoon);
  });
  return {
    serve: (next) => {
      host = next;
      delivery.handOver();
    },
    deliverKept: async () => {
      await delivery.deliverKept().catch((error: unknown) => {
        log({ at: 'live', message: 'the messages that are kept for this session were not read', error: String(error) });
      });
    },
    clients: () => opened?.clients() ?? 0,
    close: () => {
      isClosed = true;
      clearTimeout(timer);
      unsubscribe();
      opened?.close();
    },
  };
}
