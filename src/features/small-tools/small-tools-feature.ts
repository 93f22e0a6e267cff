import type { Feature } from '../../kernel/console/feature.js';

const load = () => import('./small-tools-code.js');

/** Tools for the time, arithmetic, folders and files, and small values. */
export const smallTools: Feature = {
  name: 'small-tools',
  toolsets: [
    {
      name: 'time',
      on: false,
      about: 'Offer the current time.',
      tools: ['get_time'],
      load: async () => (await load()).clockTools({ now: Date.now }),
    },
    {
      name: 'math',
      on: false,
      about: 'Offer arithmetic.',
      tools: ['math_eval'],
      load: async () => (await load()).mathTools(),
    },
    {
      name: 'files',
      on: false,
      about: 'Offer questions about folders and files.',
      tools: ['fs_list', 'fs_exists', 'fs_metadata'],
      load: async () => (await load()).fileFactTools(),
    },
    {
      name: 'kv',
      on: false,
      about: 'Offer small values stored in the session.',
      tools: ['kv_set', 'kv_get'],
      load: async () => (await load()).keyValueTools(),
    },
  ],
};
