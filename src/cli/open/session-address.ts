import type { Event } from '../../core/event.js';
import { isRecord } from '../../core/json.js';
import type { SessionRow } from '../../core/store.js';
import { resolveProvider, saidAddress, type ProviderChoice } from '../../providers/catalog.js';
import { CliError, exit } from '../../commands/cli-error.js';
import type { Notice } from '../setup.js';
import type { Setup } from '../setup.js';
import { providerChoice, type OpenedModel } from './model-opening.js';
import { configuredWish, isSaid, splitName, type ModelWish } from './provider-settings.js';

const wires: readonly string[] = [
  'openai-chat',
  'openai-responses',
  'anthropic-messages',
] satisfies readonly ProviderChoice['api'][];

type Said = (key: string) => boolean;

/** What a session that is resumed goes on with. What the command line says wins, then what is on record: a model of the
 * session's own provider is asked where the session's was. A session of the embedded provider has no preference: once
 * there is a real model, it goes on with that. Throws a `CliError` (2) where a file or the environment puts another
 * address in the place of the recorded one: only the command line may send a conversation elsewhere. `lineCounts`:
 * false where the command line was meant for another session. */
export function resumedWish(setup: Setup, row: SessionRow, events: readonly Event[], lineCounts: boolean): ModelWish {
  const said: Said = (key) => lineCounts && isSaid(setup, key);
  const line = lineModel(setup, said);
  const { provider, model } = row;
  const noPreference = provider === null || model === null || model === 'offline';
  if (noPreference || (line.provider !== null && line.provider !== provider)) return configuredWish(setup);
  if (provider === 'offline')
    return line.model !== null || said('base_url') ? configuredWish(setup) : { provider, model };
  const place = placeOfSession(setup, { ...row, provider }, events, line.provider !== null, said);
  return { provider, model: line.model ?? model, ...place };
}

/** Address and wire of a session that goes on with its own provider. */
function placeOfSession(
  setup: Setup,
  row: SessionRow & { readonly provider: string },
  events: readonly Event[],
  isNamed: boolean,
  said: Said,
): Pick<ModelWish, 'baseUrl' | 'api'> {
  const own = providerChoice(setup, { provider: row.provider, model: 'any' });
  const saidApi = said('provider_api');
  const api = saidApi ? own.api : wireNamed(row.api);
  if (said('base_url')) {
    const stays = saidAddress(row.provider, { ...own, owners: {} })?.baseUrl === row.baseUrl;
    return { baseUrl: own.baseUrl, api: stays || saidApi ? api : undefined };
  }
  if (row.baseUrl === undefined) {
    if (!isNamed && !saidApi) refuseOtherWire(row, events, own);
    return { api };
  }
  const baseUrl = recordedAddress(setup, { ...row, baseUrl: row.baseUrl }, own, isNamed);
  return { baseUrl, api: saidApi || baseUrl !== undefined ? api : undefined };
}

/** The address on record, unless the command line names the provider and that is said to be elsewhere. */
function recordedAddress(
  setup: Setup,
  row: SessionRow & { readonly provider: string; readonly baseUrl: string },
  own: ProviderChoice,
  isNamed: boolean,
): string | undefined {
  const now = saidAddress(row.provider, isSaid(setup, 'base_url') ? withoutBaseUrl(own) : own);
  if (now === null || now.baseUrl === row.baseUrl) return row.baseUrl;
  if (!isNamed) throw elsewhere(row, row.baseUrl, now);
  return undefined;
}

/** The model that the command line names, and its provider where it names that too. */
function lineModel(setup: Setup, said: Said): ModelWish {
  const { provider, model } = setup.config.provider;
  const id = said('model') ? model : null;
  if (said('provider')) return { provider, model: id };
  const [named, rest] = splitName(setup, id ?? '');
  return { provider: named, model: rest };
}

function withoutBaseUrl({ baseUrl: _left, ...choice }: ProviderChoice): ProviderChoice {
  return choice;
}

function wireNamed(api: string | undefined): ProviderChoice['api'] {
  return wires.includes(api ?? '') ? (api as ProviderChoice['api']) : undefined;
}

function elsewhere(
  row: SessionRow,
  recorded: string,
  { baseUrl, by }: { readonly baseUrl: string; readonly by: string },
): CliError {
  return new CliError(
    exit.usage,
    `session ${row.id} was on ${recorded}, and ${by} now says ${baseUrl}`,
    `Say where it goes on: --base-url ${recorded} or --base-url ${baseUrl}.`,
  );
}

/** A session without an address on record that spoke another wire than its provider's address speaks was held with
 * another server. */
function refuseOtherWire(row: SessionRow, events: readonly Event[], own: ProviderChoice): void {
  const resolved = resolveProvider(own);
  if (!resolved.ok) return;
  const { api, baseUrl = '' } = resolved.ref;
  const spoken = spokenWire(events, row.provider ?? '');
  if (spoken === null || spoken === api) return;
  throw new CliError(
    exit.usage,
    `session ${row.id} has no address on record, and ${spoken} is not what ${baseUrl} is spoken to in (${api}): it was held with another server`,
    `Say where it goes on: --base-url <address>, or --provider ${row.provider ?? ''} for ${baseUrl}.`,
  );
}

/** The wire of the last answer of that provider, or null. */
function spokenWire(events: readonly Event[], provider: string): string | null {
  const last = events.findLast(
    ({ kind, data }) => kind === 'assistant' && isRecord(data) && data.provider === provider,
  );
  const api = isRecord(last?.data) ? last.data.api : null;
  return typeof api === 'string' && wires.includes(api) ? api : null;
}

/** What there is to be said of where a resumed session goes on. */
export function addressNotices({ provider, baseUrl: before }: SessionRow, { ref }: OpenedModel): readonly Notice[] {
  const { baseUrl } = ref;
  if (baseUrl === undefined || provider !== ref.provider || before === baseUrl) return [];
  const message =
    before === undefined
      ? `No address is on record for this session (it was imported, or is from an earlier version). It goes on at ${baseUrl}.`
      : `The session goes on at ${baseUrl}; it was on ${before}.`;
  return [{ level: 'info', code: 'address_changed', message }];
}
