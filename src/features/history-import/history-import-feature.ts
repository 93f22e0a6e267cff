import type { Feature } from '../../kernel/console/feature.js';

/** Imports sessions of other programs. */
export const historyImport: Feature = {
  name: 'history-import',
  checks: async (host) => await (await import('./check-histories.js')).checkHistories(host),
  commands: [
    {
      heading: 'Sessions and the record:',
      entries: [
        {
          line: ['sessions import [file]', 'Import a session from JSON Lines, or history from other programs'],
          load: async () => (await import('./import-sessions.js')).importSession,
        },
      ],
    },
  ],
};
