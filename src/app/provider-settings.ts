import { type Leaf, originRank } from '../kernel/config/layers.js';
import { builtInPresets, mergePresets, type ProviderChoice } from '../kernel/providers/catalog.js';
import type { Settings } from '../kernel/console/run-settings.js';

/** The configuration, and the layer that each value is from. */
export type Configured = Pick<Settings, 'config' | 'loaded'>;

/** The model that the settings name, or that a resumed session keeps. `baseUrl` and `api` are recorded for a session;
 * without them those of the provider apply. */
export interface ModelChoice {
  readonly provider: string | null;
  readonly model: string | null;
  readonly baseUrl?: string | undefined;
  readonly api?: ProviderChoice['api'];
}

/** Returns the configured model. A model that names its provider wins over `provider` from a lower layer:
 * `-m anthropic/…` means Anthropic, whatever the file says. */
export function configuredModel(configured: Configured): ModelChoice {
  return choiceIn(configured, configured.loaded.leaves);
}

/** Returns the settings that belong to one provider, each with that provider: the one that its own layer or a lower one
 * names, else the one that all settings together name. A base URL without a provider is for `openai`. */
export function providerSettings(
  configured: Configured,
): Pick<ProviderChoice, 'baseUrl' | 'api' | 'extraBody' | 'owners'> {
  const { provider: section, request } = configured.config;
  const owner = (key: string): string => ownerOf(configured, key) ?? 'openai';
  const hasBody = Object.keys(request.extraBody).length > 0;
  return {
    ...(section.baseUrl === null ? {} : { baseUrl: section.baseUrl }),
    ...(section.api === null ? {} : { api: section.api }),
    ...(hasBody ? { extraBody: request.extraBody } : {}),
    owners: {
      ...(section.baseUrl === null ? {} : { baseUrl: owner('base_url') }),
      ...(section.api === null ? {} : { api: owner('provider_api') }),
      ...(hasBody ? ownerIfNamed(configured) : {}),
    },
  };
}

/** Without a named provider, `extra_body` is for any provider: it holds no host and no key. */
function ownerIfNamed(configured: Configured): { readonly extraBody?: string } {
  const owner = ownerOf(configured, 'extra_body');
  return owner === null ? {} : { extraBody: owner };
}

function ownerOf(configured: Configured, key: string): string | null {
  const { leaves } = configured.loaded;
  const rank = originRank(configured.loaded.origins[key]);
  return (
    providerOf(
      configured,
      leaves.filter((leaf) => originRank(leaf.origin) <= rank),
    ) ?? providerOf(configured, leaves)
  );
}

/** Returns the provider that the settings name, or null. */
function providerOf(configured: Configured, leaves: readonly Leaf[]): string | null {
  const choice = choiceIn(configured, leaves);
  return choice.provider ?? namedBy(configured, choice.model);
}

function choiceIn(configured: Configured, leaves: readonly Leaf[]): ModelChoice {
  const provider = leaves.findLast(({ path }) => path.length === 1 && path[0] === 'provider');
  const model = leaves.findLast(({ path }) => path.length === 1 && path[0] === 'model');
  const text = (leaf: Leaf | undefined): string | null =>
    typeof leaf?.value === 'string' && leaf.value !== '' ? leaf.value : null;
  const over = originRank(model?.origin) > originRank(provider?.origin) && namedBy(configured, text(model)) !== null;
  return { provider: over ? null : text(provider), model: text(model) };
}

/** Returns the provider in the first segment of a model's name, or null. */
function namedBy(configured: Configured, model: string | null): string | null {
  return splitName(configured, model ?? '')[0];
}

/** Splits `[provider/]model` into its two parts, each null where it is missing. */
export function splitName(
  configured: Configured,
  name: string,
): readonly [provider: string | null, model: string | null] {
  const [first = '', ...rest] = name.split('/');
  const isProvider = Object.hasOwn(mergePresets(builtInPresets, configured.config.provider.custom), first);
  return isProvider ? [first, rest.join('/') || null] : [null, name || null];
}

/** Returns whether the command line gives the setting. */
export function isSaid({ loaded }: Pick<Settings, 'loaded'>, key: string): boolean {
  return ['flag', 'set'].includes(loaded.origins[key]?.kind ?? '');
}
