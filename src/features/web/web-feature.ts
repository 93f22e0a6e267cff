import type { Feature } from '../../kernel/console/feature.js';

const load = () => import('./web-code.js');

/** Searches in the web, pages and interfaces. */
export const web: Feature = {
  name: 'web',
  checks: async ({ config, env }) => (await load()).checkWeb(config, env),
  toolsets: [
    {
      name: 'web',
      on: false,
      about: 'Offer web search, page reading and API calls.',
      tools: ['web_search', 'web_fetch', 'api_call'],
      load: async (host) => {
        const { searchTools, webTools } = await load();
        const { config, env } = host.settings;
        const { modelOutputBytes } = config.limits;
        return [...searchTools(host), ...webTools({ ...config.web, env, modelOutputBytes, now: Date.now })];
      },
    },
  ],
};
