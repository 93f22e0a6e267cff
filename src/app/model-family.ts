import type { Settings } from '../kernel/console/run-settings.js';
import { modelFamilies, newestOf } from '../kernel/core/model-names.js';
import type { Endpoint } from '../kernel/providers/catalog.js';
import { findModel, knownModels } from '../kernel/providers/models.js';

/** Loads what asks servers about their models. */
export const loadDiscovery = () => import('../kernel/providers/discover.js');

export function isFamily(name: string): boolean {
  return modelFamilies.includes(name);
}

/** The time that a provider has to list its models; after that the built-in table counts. */
const listMs = 1_500;

/** Returns the newest model of a family at one endpoint: by the list of the server, else by the table. A model that the
 * server lists under the very name of the family is that one. `failure`: why the server gave no list. */
export async function newestServed(
  settings: Pick<Settings, 'config' | 'env'>,
  endpoint: Endpoint,
  family: string,
): Promise<{ readonly id: string | null; readonly failure: string | null }> {
  const { models: own } = settings.config.provider;
  const { provider } = endpoint;
  const price = (id: string): number | null => findModel(provider, id, own)?.price?.input ?? null;
  const isCurrent = (id: string): boolean => findModel(provider, id, own)?.retired !== true;
  const listed = await (await loadDiscovery()).listModels(endpoint, settings.env, listMs);
  if (listed.ok) {
    const ids = listed.models.map(({ id }) => id).filter(isCurrent);
    return { id: ids.includes(family) ? family : newestOf(family, ids, price), failure: null };
  }
  const lead = `${provider}/`;
  const known = Object.keys({ ...knownModels, ...own })
    .filter((name) => name.startsWith(lead))
    .map((name) => name.slice(lead.length));
  return { id: newestOf(family, known.filter(isCurrent), price), failure: listed.message };
}
