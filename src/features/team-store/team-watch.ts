import type { StoredEvent, TeamWatch } from './team.js';
import { eventOfRow } from '../../kernel/store/event-rows.js';
import type { ServerConnection } from './server-connection.js';
import { chainRow } from './stored-events.js';

/** Reads events of the session `$1`; `order` is the end of the question. */
type ReadEvents = (order: string, values: readonly unknown[]) => Promise<readonly StoredEvent[]>;

/** Reads a session live while another machine writes it. */
export function createWatch(server: Pick<ServerConnection, 'listen'>, read: ReadEvents): TeamWatch {
  const events = async (order: string, values: readonly unknown[]) =>
    (await read(order, values)).map((event) => eventOfRow(chainRow(event)));
  return {
    load: async (id) => await events('ORDER BY seq', [id]),
    tail: async (id, count) => (await events('ORDER BY seq DESC LIMIT $2', [id, count])).toReversed(),
    listen: async (id, ring) =>
      await server.listen('agent_events', (payload) => {
        if (payload.startsWith(`${id} `)) ring();
      }),
  };
}
