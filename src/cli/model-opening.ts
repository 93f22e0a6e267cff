import { setTimeout as wait } from 'node:timers/promises';
import type { Api, ModelRef } from '../core/conversation.js';
import type { Provider } from '../core/provider.js';
import { resolveProvider, type Endpoint, type ProviderChoice } from '../providers/catalog.js';
import { builtInPresets } from '../providers/catalog-presets.js';
import type { Wire } from '../providers/wire.js';
import { CliError, exit } from './cli-error.js';
import type { Setup } from './setup.js';

/** A model ready to be asked. `warm` opens the connection early; `close` ends it. */
export interface OpenedModel { readonly provider: Provider; readonly ref: ModelRef; warm(): void; close(): void }

/** Which model: from options and configuration, or from the row of the session that is resumed. */
export interface ModelWish { readonly provider: string | null; readonly model: string | null }

/** Opens the model that is wished for, or the best there is: the first provider with a key, a local server, the embedded provider.
 *  Throws a `CliError`: exit code 2 for an unknown provider, 4 for a missing key. */
export async function openModel(setup: Setup, wish: ModelWish): Promise<OpenedModel> {
  const choice = choiceOf(setup, wish);
  const named = wish.provider !== null || wish.model !== null;
  const fallback = named ? undefined : await (await import('../providers/discover.js')).chooseProvider({ env: setup.env, presets: builtInPresets, userProviders: setup.config.provider.custom });
  const resolved = resolveProvider({ ...choice, ...(fallback ? { fallback } : {}) });
  if (!resolved.ok) {
    const { kind, message, hint } = resolved.problem;
    throw new CliError(kind === 'key_missing' ? exit.credentials : exit.usage, message, hint);
  }
  return await connect(setup, resolved.ref, resolved.endpoint);
}

function choiceOf(setup: Setup, wish: ModelWish): ProviderChoice {
  const { provider: section, http } = setup.config;
  return {
    env: setup.env, presets: builtInPresets, userProviders: section.custom, allowInsecure: http.allowInsecure,
    ...(wish.provider === null ? {} : { name: wish.provider }),
    ...(wish.model === null ? {} : { model: wish.model }),
    ...(section.baseUrl === null ? {} : { baseUrl: section.baseUrl }),
    ...(section.api === null ? {} : { api: section.api }),
  };
}

const sleep = async (delayMs: number, signal: AbortSignal): Promise<void> => {
  await wait(delayMs, undefined, { signal }).catch(() => undefined);
};

async function connect(setup: Setup, ref: ModelRef, endpoint: Endpoint): Promise<OpenedModel> {
  if (endpoint.api === 'offline') {
    const { createOfflineProvider } = await import('../providers/offline.js');
    return { ref, provider: createOfflineProvider({ cwd: setup.cwd, sleep }), warm: () => undefined, close: () => undefined };
  }
  const [{ createHttpProvider }, wire, { findModel }] = await Promise.all([import('../providers/http-provider.js'), wireOf(endpoint.api), import('../providers/models.js')]);
  const provider = createHttpProvider(endpoint, wire, setup.config.http, {
    now: Date.now, random: Math.random, sleep, env: setup.env,
    schedule: (callback, delayMs) => {
      const timer = setTimeout(callback, delayMs);
      return () => { clearTimeout(timer); };
    },
    price: (model) => findModel(endpoint.provider, model, setup.config.provider.models)?.price ?? null,
  });
  return { ref, provider, warm: () => { provider.warm(); }, close: () => { provider.close(); } };
}

/** The wire's code, loaded for the wire in use alone. */
export async function wireOf(api: Exclude<Api, 'offline'>): Promise<Wire> {
  switch (api) {
    case 'openai-chat': return (await import('../providers/chat-wire.js')).chatWire;
    case 'openai-responses': return (await import('../providers/responses-wire.js')).responsesWire;
    case 'anthropic-messages': return (await import('../providers/messages-wire.js')).messagesWire;
    default: return api satisfies never;
  }
}

/** The endpoint data of a provider for showing a request; needs no key. */
export function endpointFor(setup: Setup, provider: string | null, api: Exclude<Api, 'offline'>): Pick<Endpoint, 'quirks' | 'extraBody'> {
  const env = Object.fromEntries(Object.entries(setup.env).map(([name, value]) => [name, value]));
  const resolved = resolveProvider({ ...choiceOf({ ...setup, env }, { provider, model: 'any' }), api });
  return resolved.ok && resolved.ref.api === api ? resolved.endpoint : { quirks: {} };
}
