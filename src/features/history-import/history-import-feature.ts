import type { Feature } from '../../kernel/console/feature.js';
import { otherPrograms } from '../../kernel/console/other-programs-port.js';
import { programs } from './program-tables.js';

const load = () => import('./history-import-code.js');

/** Imports sessions of other programs. */
export const historyImport: Feature = {
  name: 'history-import',
  checks: async (host) => await (await load()).checkHistories(host),
  provide: (provided) => {
    provided.add(otherPrograms, {
      names: Object.keys(programs),
      writers: {
        'claude-code': async (session) => (await load()).forClaudeCode(session),
        codex: async (session) => (await load()).forCodex(session),
      },
    });
  },
  importers: async () => [(await load()).sessionImporter],
  commands: [
    {
      heading: 'Sessions and the record:',
      entries: [
        {
          line: ['sessions import [file]', 'Import a session from JSON Lines, or history from other programs'],
          load: async () => (await load()).importSession,
        },
      ],
    },
  ],
};
