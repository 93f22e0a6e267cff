import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Feature } from '../../kernel/console/feature.js';
import type { Here } from '../../kernel/config/project.js';

const load = () => import('./plugins-code.js');

/** Returns true if the user has ever added a plugin. */
function hasPlugins({ config }: Pick<Here, 'config'>): boolean {
  return existsSync(join(config.files.data, 'plugins', 'plugins.json'));
}

/** Folders of skills, commands, agents, hooks, servers and output styles that others publish. */
export const plugins: Feature = {
  name: 'plugins',
  commands: [
    {
      heading: 'Tools, models and settings:',
      entries: [
        {
          line: ['plugin', 'List, add and remove plugins and marketplaces'],
          slash: ['plugin|plugins [add, update, remove, enable or disable]', 'List, add and remove plugins', 'tools'],
          also: 'extensions marketplace',
          load: async () => (await load()).plugins,
        },
        {
          line: ['plugin list', 'List plugins with what they bring'],
          load: async () => (await load()).listPlugins,
        },
        {
          line: [
            'plugin add <source>',
            'Add a plugin or marketplace: a folder, a git address, owner/repo, name@marketplace',
          ],
          load: async () => (await load()).addPlugins,
        },
        {
          line: ['plugin available', 'List the plugins of all marketplaces'],
          load: async () => (await load()).searchPlugins,
        },
        {
          line: ['plugin update [name]', 'Fetch plugins again; asks about what has changed'],
          load: async () => (await load()).updatePlugins,
        },
        {
          line: ['plugin remove <name>', 'Remove a plugin or a marketplace'],
          load: async () => (await load()).removePlugin,
        },
        {
          line: ['plugin enable <name>', 'Use a plugin again'],
          load: async () => (await load()).enablePlugin,
        },
        {
          line: ['plugin disable <name>', 'Keep a plugin without using it'],
          load: async () => (await load()).disablePlugin,
        },
        {
          line: ['plugin trust <name>', 'Review a plugin whose files have changed'],
          load: async () => (await load()).trustPlugin,
        },
      ],
    },
  ],
  sources: async (here) => (hasPlugins(here) ? (await load()).pluginSources(here) : []),
  askAgain: async (settings, _chosen, openQuestion) => {
    if (hasPlugins(settings)) await (await load()).askAboutChanged(settings, openQuestion);
  },
  openRun: async ({ settings }) => {
    if (!hasPlugins(settings)) return null;
    return { notices: (await load()).pluginNotices(settings) };
  },
};
