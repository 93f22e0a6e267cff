import type { Feature } from '../../kernel/console/feature.js';
import { openStylePart, styleParts } from './output-styles-start.js';

const load = () => import('./output-styles-code.js');

/** Instructions on how a whole session answers. */
export const outputStyles: Feature = {
  name: 'output-styles',
  commands: [
    {
      heading: 'Tools, models and settings:',
      entries: [
        {
          line: ['output-styles', 'List output styles and their files'],
          load: async () => (await load()).listStyles,
        },
        {
          line: ['output-styles list', 'List output styles and their files'],
          load: async () => (await load()).listStyles,
        },
        {
          line: ['output-styles show <name>', 'Show an output style with its text'],
          load: async () => (await load()).showStyle,
        },
      ],
    },
    {
      heading: null,
      entries: [
        {
          slash: ['output-style [name]', 'Choose how new sessions answer; --session for this run only', 'model'],
          also: 'style tone',
          load: async () => (await load()).chooseStyle,
        },
      ],
    },
  ],
  openRun: (host) => Promise.resolve(openStylePart(host, load)),
  projectParts: async (here) => await styleParts(here, load),
};
