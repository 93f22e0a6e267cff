import type { Feature } from '../../kernel/console/feature.js';
import { claudeParts, hookFiles, hookParts } from './hooks-start.js';

const load = () => import('./hooks-code.js');

/** Programs of the user that are asked at points of a session. */
export const hooks: Feature = {
  name: 'hooks',
  commands: [
    {
      heading: 'Tools, models and settings:',
      entries: [
        {
          line: ['hooks', 'List your hooks'],
          slash: ['hooks', 'List your hooks', 'tools'],
          also: 'automation',
          isHarmless: true,
          load: async () => (await load()).hooks,
        },
        {
          line: ['hooks list', 'List hooks and whether they are trusted'],
          load: async () => (await load()).listHooks,
        },
        {
          line: ['hooks show <event>', 'Show the hooks of one event'],
          load: async () => (await load()).showHooks,
        },
        {
          line: ['hooks check', 'Check hook files; exits with 2 if there are problems'],
          load: async () => (await load()).checkHooks,
        },
      ],
    },
  ],
  importers: async () => [(await import('./plan-hook-import.js')).hookImporter],
  openRun: async (host) => {
    const { settings, options } = host;
    if (options.hooks === false || options.bare === true || settings.testMode) return null;
    const found = await hookFiles(settings, load);
    return found === null ? null : await (await load()).openHooks(found, host);
  },
  projectParts: async (here) => await hookParts(here, load),
  userParts: async (here) => await claudeParts(here, load),
};
