import { resolveProvider } from '../../providers/catalog.js';
import type { Transport } from '../../providers/http/exchange.js';
import { openTransport } from '../../providers/http/transport.js';
import type { DefinedTool } from '../../tools/define-tool.js';
import type { SendRequest } from '../../toolsets/web/search-engines.js';
import { chooseSearch, webSearchTool } from '../../toolsets/web/search-web.js';
import type { Settings } from '../settings.js';
import { providerChoice, type ProviderSource } from './open-model.js';
import { configuredModel } from './provider-settings.js';

interface SearchHost {
  readonly settings: ProviderSource & Pick<Settings, 'testMode'>;
  /** Tells the person why the tool is not offered. */
  readonly notify: (message: string) => void;
}

/** Makes `web_search` with what the settings and keys choose; none where nobody can search. */
export function searchTools({ settings, notify }: SearchHost): readonly DefinedTool[] {
  const { config, env, testMode } = settings;
  const model = resolveProvider(providerChoice(settings, configuredModel(settings)));
  const choice = chooseSearch(config.web.search, env, model.ok && model.endpoint.search !== undefined);
  if (!('problem' in choice)) return [webSearchTool({ choice, send: sender(env), now: Date.now })];
  // In test mode no search is made, so none has to be set up.
  if (testMode) return [webSearchTool({ choice: { service: 'native' }, send: sender(env), now: Date.now })];
  notify(`web_search is not offered: ${choice.problem}.`);
  return [];
}

/** Sends as requests to models are sent: through the proxies of the environment, without following redirects. */
function sender(env: Settings['env']): SendRequest {
  const opened = new Map<string, Promise<Transport>>();
  return async (request) => {
    const { origin } = new URL(request.url);
    const transport = opened.get(origin) ?? openTransport(origin, env);
    opened.set(origin, transport);
    return await (await transport).send(request);
  };
}
