import { openTrustFile } from '../../kernel/config/trust-file.js';
import type { Feature } from '../../kernel/console/feature.js';
import { customToolFiles } from '../../kernel/console/tool-files-port.js';

const load = () => import('./custom-tools-code.js');

/** Custom tools of the user and of projects. */
export const customTools: Feature = {
  name: 'custom-tools',
  toolsets: [
    {
      name: 'custom',
      on: false,
      about: 'Offer custom tools.',
      tools: null,
      // Source: contracts 10, "Custom tools".
      isOffered: ({ trust }) => openTrustFile(trust).tools.list().length > 0,
      load: async (host, taken) => (await load()).openCustom(host, taken),
    },
  ],
  commands: [
    {
      heading: 'Tools, models and settings:',
      entries: [
        {
          line: ['tools add <path>', 'Allow custom tools: the folder of a tool.json, or an .mjs file'],
          load: async () => (await load()).addTools,
        },
        {
          line: ['tools remove <what>', 'Remove custom tools by name, folder or file'],
          load: async () => (await load()).removeTools,
        },
      ],
    },
  ],
  provide: (provided) => {
    provided.add(customToolFiles, async (settings) => (await load()).openToolFiles(settings));
  },
  askAgain: async (settings, chosen, openQuestion) => {
    if (openTrustFile(settings.config.files.trust).tools.list().length === 0) return;
    await (await load()).askForChangedTools(settings, chosen, openQuestion);
  },
};
