import type { Feature } from '../../kernel/console/feature.js';

const load = () => import('./list-hooks.js');
const loadFiles = () => import('./hook-files.js');

/** Programs of the user that are asked at points of a session. */
export const hooks: Feature = {
  name: 'hooks',
  commands: [
    {
      heading: 'Tools, models and settings:',
      entries: [
        {
          line: ['hooks', 'List your hooks'],
          slash: ['hooks', 'List your hooks'],
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
  openRun: async (host) => {
    const { settings, options } = host;
    if (options.hooks === false || settings.testMode) return null;
    const { hookFiles } = await loadFiles();
    const found = await hookFiles(settings);
    return found === null ? null : await (await import('./open-hooks.js')).openHooks(found, host);
  },
  projectParts: async (here) => await (await loadFiles()).hookParts(here),
};
