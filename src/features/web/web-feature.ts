import { imageAddresses, isWebAddress } from '../../kernel/console/pictures.js';
import { namedImages } from './named-images-start.js';
import type { Feature, FeatureToolset } from '../../kernel/console/feature.js';

const load = () => import('./web-code.js');

const webTools: FeatureToolset = {
  name: 'web',
  on: false,
  about: 'Offer web search, page reading and API calls.',
  tools: ['web_search', 'web_fetch', 'api_call'],
  load: async (host) => {
    const code = await load();
    const { config, env } = host.settings;
    const { modelOutputBytes } = config.limits;
    return [...code.searchTools(host), ...code.webTools({ ...config.web, env, modelOutputBytes, now: Date.now })];
  },
};

/** Searches in the web, pages, interfaces, and images by address. */
export const web: Feature = {
  name: 'web',
  provide: (provided) => {
    provided.add(imageAddresses, true);
  },
  // Without a user only the addresses of the command line are loaded: a prompt may come from anywhere.
  openRun: ({ settings, options, canAsk }) =>
    Promise.resolve({
      expand: async (message) => {
        const given = (options.image ?? []).filter(isWebAddress);
        const urls = namedImages(message, given).filter((url) => canAsk || given.includes(url));
        if (urls.length === 0) return null;
        const calls = (await load()).imageCalls(urls, settings, webTools);
        return { command: null, calls, text: () => message };
      },
    }),
  checks: async ({ config, env }) => (await load()).checkWeb(config, env),
  toolsets: [webTools],
};
