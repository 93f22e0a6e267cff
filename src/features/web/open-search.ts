import type { Transport } from '../../kernel/providers/http/exchange.js';
import { openTransport } from '../../kernel/providers/http/transport.js';
import type { DefinedTool } from '../../kernel/tools/define-tool.js';
import type { SendRequest } from './search-engines.js';
import { chooseSearch, webSearchTool } from './search-web.js';
import type { Settings } from '../../kernel/console/run-settings.js';
import type { ConfiguredModel } from '../../kernel/console/feature.js';

interface SearchHost {
  readonly settings: Pick<Settings, 'config' | 'env' | 'testMode'>;
  readonly model: Pick<ConfiguredModel, 'canSearch'>;
  /** Notifies the user why the tool is not offered. */
  readonly notify: (message: string) => void;
}

/** Makes `web_search` with what the settings and keys choose; none where nobody can search. */
export function searchTools({ settings, model, notify }: SearchHost): readonly DefinedTool[] {
  const { config, env, testMode } = settings;
  const choice = chooseSearch(config.web.search, env, model.canSearch());
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
