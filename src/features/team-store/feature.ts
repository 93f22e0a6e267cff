import type { Feature } from '../../kernel/console/feature.js';

/** Sessions that a team shares through PostgreSQL. */
export const teamStore: Feature = {
  name: 'team-store',
  commands: [
    {
      heading: 'Team:',
      entries: [
        {
          line: ['db', 'the PostgreSQL database of `store.url` that a team shares its sessions through'],
          load: async () => (await import('./manage-database.js')).database,
        },
        {
          line: ['db init', 'make its tables, or bring them up to date; for its owner'],
          load: async () => (await import('./manage-database.js')).initDatabase,
        },
        {
          line: ['db status', 'who you are there, what it holds, and who else may read it'],
          load: async () => (await import('./manage-database.js')).databaseStatus,
        },
        {
          line: ['db push', 'send it the sessions of this machine'],
          load: async () => (await import('./exchange-sessions.js')).pushSessions,
        },
        {
          line: ['db pull', 'fetch sessions of your other machines and of the team'],
          load: async () => (await import('./exchange-sessions.js')).pullSessions,
        },
        {
          line: ['db sync', 'both, one after the other'],
          load: async () => (await import('./exchange-sessions.js')).syncSessions,
        },
      ],
    },
  ],
};
