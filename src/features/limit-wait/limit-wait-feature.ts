import type { Feature } from '../../kernel/console/feature.js';
import { limitWaits } from './limit-parts.js';
import { openLimitWaits } from './limit-wait-start.js';

const load = () => import('./limit-wait-code.js');

/** Waits for the end of usage limits of providers, and continues the turn. */
export const limitWait: Feature = {
  name: 'limit-wait',
  commands: [
    {
      heading: null,
      entries: [
        {
          slash: ['wait', 'Wait for the end of the usage limit and continue the turn', 'conversation'],
          also: 'usage limit rate reset resume continue quota',
          needsScreen: 'Continue the session with: agent -p -c --wait-for-limit',
          load: async () => (await load()).waitCommand,
        },
      ],
    },
  ],
  openRun: (host) => {
    const waits = openLimitWaits(host, load);
    host.parts.add(limitWaits, waits);
    return Promise.resolve(waits.part);
  },
  openRepl: ({ parts }) =>
    Promise.resolve({
      start: (notices) => {
        parts.get(limitWaits).begin(notices);
      },
    }),
};
