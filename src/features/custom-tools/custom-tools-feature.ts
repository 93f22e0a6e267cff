import type { Feature } from '../../kernel/console/feature.js';

/** Custom tools of the user and of projects. */
export const customTools: Feature = {
  name: 'custom-tools',
  toolsets: [
    {
      name: 'custom',
      on: false,
      about: 'Offer tools of your own.',
      tools: null,
      load: async (host, taken) => (await import('./open-custom.js')).openCustom(host, taken),
    },
  ],
};
