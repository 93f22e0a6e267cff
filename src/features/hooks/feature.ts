import type { Feature } from '../../kernel/console/feature.js';

/** Programs of the user that are asked at points of a session. */
export const hooks: Feature = {
  name: 'hooks',
  projectParts: async (here) => await (await import('./hook-files.js')).hookParts(here),
};
