import type { Feature } from '../../kernel/console/feature.js';
import { remoteStores } from '../../kernel/console/remote-stores.js';
import { sharedRecord } from '../../kernel/console/shared-record-port.js';

const load = () => import('./team-store-code.js');

/** Sessions that a team shares through PostgreSQL. */
export const teamStore: Feature = {
  name: 'team-store',
  checks: async (host) => (host.config.store.url === null ? [] : [await (await load()).checkServer(host)]),
  provide: (provided) => {
    provided.add(remoteStores, async () => (await load()).onPostgres);
    provided.add(sharedRecord, async () => (await load()).recordOnServer);
  },
  openRun: async (host) => {
    const { url, mode } = host.settings.config.store;
    if (url === null || mode === 'remote' || !host.isLasting) return null;
    return (await load()).openSyncPart(host);
  },
  commands: [
    {
      heading: 'Team:',
      entries: [
        {
          line: ['db', 'Manage the shared PostgreSQL session store (`store.url`)'],
          load: async () => (await load()).database,
        },
        {
          line: ['db init', 'Create or update its tables, as the database owner'],
          load: async () => (await load()).initDatabase,
        },
        {
          line: ['db status', 'Show the server, your role and what you may read'],
          load: async () => (await load()).databaseStatus,
        },
        {
          line: ['db push', 'Send the sessions of this machine'],
          load: async () => (await load()).pushSessions,
        },
        {
          line: ['db pull', 'Fetch sessions of your other machines and of the team'],
          load: async () => (await load()).pullSessions,
        },
        {
          line: ['db sync', 'Push, then pull'],
          load: async () => (await load()).syncSessions,
        },
      ],
    },
  ],
};
