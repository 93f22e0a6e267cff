import type { Feature } from '../../kernel/console/feature.js';

/** Programs of the user that are asked at points of a session. */
export const hooks: Feature = {
  name: 'hooks',
  commands: [
    {
      heading: 'Tools, models and settings:',
      entries: [
        {
          line: ['hooks', 'your own programs that are asked at points of a session'],
          slash: ['hooks', 'your own programs that are asked at points of a session'],
          load: async () => (await import('./list-hooks.js')).hooks,
        },
        {
          line: ['hooks list', 'list them, and whether they are trusted'],
          load: async () => (await import('./list-hooks.js')).listHooks,
        },
        {
          line: ['hooks show <event>', 'those of one event, in full'],
          load: async () => (await import('./list-hooks.js')).showHooks,
        },
        {
          line: ['hooks check', 'read their files and say what is wrong; ends with 2 where something is'],
          load: async () => (await import('./list-hooks.js')).checkHooks,
        },
      ],
    },
  ],
  openRun: async (host) => {
    const { settings, options } = host;
    if (options.hooks === false || settings.testMode) return null;
    const { hookFiles } = await import('./hook-files.js');
    const found = await hookFiles(settings);
    return found === null ? null : await (await import('./open-hooks.js')).openHooks(found, host);
  },
  projectParts: async (here) => await (await import('./hook-files.js')).hookParts(here),
};
