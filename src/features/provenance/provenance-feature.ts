import type { Feature } from '../../kernel/console/feature.js';

const load = () => import('./provenance-code.js');

/** Finds the call, the command, the person or the commit that wrote each line of a file. */
export const provenance: Feature = {
  name: 'provenance',
  commands: [
    {
      heading: 'Sessions and the record:',
      entries: [
        {
          line: ['blame <file>', 'Show for each line of a file the prompt and the call that wrote it'],
          slash: ['blame <file[:lines]>', 'Show the prompt and the call that wrote each line of a file', 'files'],
          also: 'annotate provenance author origin',
          isHarmless: true,
          load: async () => (await load()).blame,
        },
        {
          line: ['why <file:line>', 'Show the prompt, the plan and the calls that led to a line'],
          load: async () => (await load()).why,
        },
      ],
    },
  ],
};
