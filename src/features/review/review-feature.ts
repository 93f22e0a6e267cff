import type { Feature } from '../../kernel/console/feature.js';

const load = () => import('./review-code.js');

/** Reviews of a change whose findings programs read. `/review` in a conversation is a command in a file. */
export const review: Feature = {
  name: 'review',
  commands: [
    {
      heading: 'Sessions and the record:',
      entries: [
        {
          line: ['review [words...]', 'Review a change; with --diff, print findings for a CI job'],
          load: async () => (await load()).reviewChange,
        },
      ],
    },
  ],
};
