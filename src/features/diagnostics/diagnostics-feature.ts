import type { Feature } from '../../kernel/console/feature.js';
import { openDiagnosticNotes, openDiagnostics, projectServers } from './diagnostics-start.js';

const load = () => import('./diagnostics-code.js');

/** Errors that edits cause, found by language servers. */
export const diagnostics: Feature = {
  name: 'diagnostics',
  toolsets: [
    {
      name: 'diagnostics',
      on: true,
      lazy: true,
      about: 'Check edits by the language servers of this machine.',
      tools: [],
      load: () => Promise.resolve([]),
    },
  ],
  commands: [
    {
      heading: null,
      entries: [
        {
          slash: ['diagnostics', 'Show the language servers that check edits', 'tools'],
          also: 'lsp language server errors types lint',
          load: async () => (await load()).showDiagnostics,
        },
      ],
    },
  ],
  openTools: (host) => Promise.resolve(openDiagnostics(host)),
  openRun: (host) => Promise.resolve(openDiagnosticNotes(host)),
  projectParts: async (here) => await projectServers(here),
};
