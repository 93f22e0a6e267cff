import { withCommandKey } from '../kernel/secrets/key-commands.js';
import { type Leaf, isGivenOnCommandLine, originRank } from '../kernel/config/layers.js';
import { CliError, exit } from '../kernel/console/command.js';
import type { Notice, Settings } from '../kernel/console/run-settings.js';
import type { Event } from '../kernel/core/event.js';
import { isRecord } from '../kernel/core/json.js';
import { modelFamilies, parseModelName } from '../kernel/core/model-names.js';
import type { FallbackRef } from '../kernel/agent/dependencies.js';
import type { ModelRef } from '../kernel/core/projection.js';
import type { SessionRow } from '../kernel/core/store.js';
import { editDistance, nearestName } from '../kernel/core/text.js';
import {
  builtInPresets,
  configuredAddress,
  type Endpoint,
  findKey,
  mergePresets,
  type ModelMeant,
  type ProviderChoice,
  type Resolution,
  resolveProvider,
} from '../kernel/providers/catalog.js';
import { findModel } from '../kernel/providers/models.js';
import { isWireName } from '../kernel/providers/wires/known-wires.js';
import { isFamily, loadDiscovery, newestServed } from './model-family.js';

/** The configuration, and the layer that each value is from. */
export type Configured = Pick<Settings, 'config' | 'loaded'>;

/** The model that the settings name, or the one that a session continues with. `baseUrl` and `api` are recorded for a
 * session; without them those of the provider count. */
export interface ModelChoice {
  readonly provider: string | null;
  readonly model: string | null;
  readonly baseUrl?: string | undefined;
  readonly api?: ProviderChoice['api'];
}

/** The settings that name a provider and its key. */
export type ProviderSource = Configured & Pick<Settings, 'env' | 'keys'>;

/** Decides which model a session asks, and where. The first of these that applies:
 *
 * 1. A session that is resumed: its own model at its own address, where the command line does not name another
 *    (`resumedModel`).
 * 2. A new session of a REPL: the model in use (`inUse`).
 * 3. The settings: `model` and `provider` of the highest layer that names them (`configuredModel`).
 * 4. Nothing names a provider: the first one with a key, else a server on this machine that has a model, else the
 *    embedded one (`resolveReady`).
 *
 * A provider without a named model is asked for its default model, a server on this machine for the first that it
 * lists. Inside a session a name (`/model`, `fallback_model`, the model of a sub-agent) is `[provider/]model`; without
 * a provider it is a model of the session's own provider, at the same address (`resolveModel`). Everywhere a name may
 * be an alias, a family (`opus`), and end with an effort (`:high`). Titles and summaries are asked of the session's
 * model. Throws what `resumedModel` throws. */
export async function chooseModel(
  settings: ProviderSource,
  { row, restored }: { readonly row: SessionRow; readonly restored: readonly Event[] },
  load: LoadEvents,
  inUse: ModelRef | undefined,
): Promise<ModelChoice> {
  if (restored.length > 0) return await resumedModel(settings, row, load, inUse === undefined);
  return inUse === undefined || inUse.model === 'offline' ? configuredModel(settings) : choiceOf(inUse);
}

/** Returns the configured model. A model that names its provider wins over `provider` from a lower layer: `-m
 * anthropic/…` means Anthropic, whatever the file says. */
export function configuredModel(configured: Configured): ModelChoice {
  return choiceIn(configured, configured.loaded.leaves);
}

/** Returns the settings that belong to one provider, each with that provider: the one that its own layer or a lower one
 * names, else the one that all settings together name. A base URL without a provider is for `openai`. */
function providerSettings(configured: Configured): Pick<ProviderChoice, 'baseUrl' | 'api' | 'extraBody' | 'owners'> {
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
  const written = text(model);
  const name = written === null ? null : parseModelName(written, configured.config.provider.aliases).name;
  const over = originRank(model?.origin) > originRank(provider?.origin) && namedBy(configured, name) !== null;
  return { provider: over ? null : text(provider), model: name };
}

/** Returns the provider in the first segment of a model's name, or null. */
function namedBy(configured: Configured, model: string | null): string | null {
  return splitName(configured, model ?? '')[0];
}

/** Splits `[provider/]model` into its two parts, each null where it is missing. */
function splitName(configured: Configured, name: string): readonly [provider: string | null, model: string | null] {
  const [first = '', ...rest] = name.split('/');
  const isProvider = Object.hasOwn(mergePresets(builtInPresets, configured.config.provider.custom), first);
  return isProvider ? [first, rest.join('/') || null] : [null, name || null];
}

/** Returns true for a setting that the command line gives. */
type Said = (key: string) => boolean;
/** Reads the session's events: only a session without an address on record needs them. */
type LoadEvents = () => Promise<readonly Event[]>;

/** Returns the model that a resumed session continues with. The command line wins over the record. A model of the
 * session's own provider is asked at the recorded address. A session of the embedded provider gets a real model as soon
 * as there is one. Throws a `CliError` (2) where a file or the environment names another address than the record: only
 * the command line may send a conversation elsewhere. `lineCounts`: false where the command line was meant for another
 * session. */
export async function resumedModel(
  settings: ProviderSource,
  row: SessionRow,
  load: LoadEvents,
  lineCounts: boolean,
): Promise<ModelChoice> {
  const said: Said = (key) => lineCounts && isGivenOnCommandLine(settings.loaded, key);
  const line = lineModel(settings, said);
  const { provider, model } = row;
  const noPreference = provider === null || model === null || model === 'offline';
  if (noPreference || (line.provider !== null && line.provider !== provider)) return configuredModel(settings);
  if (provider === 'offline')
    return line.model !== null || said('base_url') ? configuredModel(settings) : { provider, model };
  const place = await placeOfSession(settings, { ...row, provider }, load, line.provider !== null, said);
  return { provider, model: line.model ?? model, ...place };
}

/** Returns address and wire of a session that keeps its provider. */
async function placeOfSession(
  settings: ProviderSource,
  row: SessionRow & { readonly provider: string },
  load: LoadEvents,
  isNamed: boolean,
  said: Said,
): Promise<Pick<ModelChoice, 'baseUrl' | 'api'>> {
  const own = providerChoice(settings, { provider: row.provider, model: 'any' });
  const saidApi = said('provider_api');
  const api = saidApi ? own.api : wireNamed(row.api);
  if (said('base_url')) {
    const stays = configuredAddress(row.provider, { ...own, owners: {} })?.baseUrl === row.baseUrl;
    return { baseUrl: own.baseUrl, api: stays || saidApi ? api : undefined };
  }
  if (row.baseUrl === undefined) {
    if (!isNamed && !saidApi) refuseOtherWire(row, await load(), own);
    return { api };
  }
  const baseUrl = recordedAddress(settings, { ...row, baseUrl: row.baseUrl }, own, isNamed);
  return { baseUrl, api: saidApi || baseUrl !== undefined ? api : undefined };
}

/** Returns the address on record, unless the command line names the provider and the settings place it elsewhere. */
function recordedAddress(
  settings: Configured,
  row: SessionRow & { readonly provider: string; readonly baseUrl: string },
  own: ProviderChoice,
  isNamed: boolean,
): string | undefined {
  const now = configuredAddress(
    row.provider,
    isGivenOnCommandLine(settings.loaded, 'base_url') ? withoutBaseUrl(own) : own,
  );
  if (now === null || now.baseUrl === row.baseUrl) return row.baseUrl;
  if (!isNamed) throw elsewhere(row, row.baseUrl, now);
  return undefined;
}

/** Returns the model that the command line names, and its provider where it is named too. */
function lineModel(settings: Configured, said: Said): ModelChoice {
  const { provider, model } = settings.config.provider;
  const id = said('model') ? model : null;
  if (said('provider')) return { provider, model: id };
  const [named, rest] = splitName(settings, id ?? '');
  return { provider: named, model: rest };
}

function withoutBaseUrl({ baseUrl: _left, ...choice }: ProviderChoice): ProviderChoice {
  return choice;
}

function wireNamed(api: string | undefined): ProviderChoice['api'] {
  return isWireName(api) ? api : undefined;
}

function elsewhere(
  row: SessionRow,
  recorded: string,
  { baseUrl, by }: { readonly baseUrl: string; readonly by: string },
): CliError {
  return new CliError(
    exit.usage,
    `session ${row.id} was on ${recorded}, and ${by} now says ${baseUrl}`,
    `Choose where it continues: --base-url ${recorded} or --base-url ${baseUrl}.`,
  );
}

/** Throws where the session spoke another wire than its provider's address does: it was a conversation with another server. */
function refuseOtherWire(row: SessionRow, events: readonly Event[], own: ProviderChoice): void {
  const resolved = resolveProvider(own);
  if (!resolved.ok) return;
  const { api, baseUrl = '' } = resolved.ref;
  const spoken = spokenWire(events, row.provider ?? '');
  if (spoken === null || spoken === api) return;
  throw new CliError(
    exit.usage,
    `session ${row.id} has no recorded address, and ${spoken} is not what ${baseUrl} is spoken to in (${api}): ` +
      'it was a conversation with another server',
    `Choose where it continues: --base-url <address>, or --provider ${row.provider ?? ''} for ${baseUrl}.`,
  );
}

/** Returns the wire of the last answer of that provider, or null. */
function spokenWire(events: readonly Event[], provider: string): string | null {
  const last = events.findLast(
    ({ kind, data }) => kind === 'assistant' && isRecord(data) && data.provider === provider,
  );
  const api = isRecord(last?.data) ? last.data.api : null;
  return typeof api === 'string' && isWireName(api) ? api : null;
}

/** Returns the notice of a session that continues at another address. */
export function addressNotices(
  { provider, baseUrl: before }: SessionRow,
  { ref }: { readonly ref: ModelRef },
): readonly Notice[] {
  const { baseUrl } = ref;
  if (baseUrl === undefined || provider !== ref.provider || before === baseUrl) return [];
  const message =
    before === undefined
      ? 'This session has no recorded address (it was imported, ' +
        `or is from an earlier version). It continues at ${baseUrl}.`
      : `The session continues at ${baseUrl}; it was on ${before}.`;
  return [{ level: 'info', code: 'address_changed', message }];
}

/** Returns the chosen model and its endpoint. Throws a `CliError`: exit code 2 for a wrong name, 4 for a missing key, 1
 * for a local server that has to list its models and does not run. */
export async function resolveReady(settings: ProviderSource, chosen: ModelChoice): Promise<FoundModel> {
  const choice = providerChoice(settings, chosen);
  const named = chosen.provider !== null || namedBy(settings, chosen.model) !== null || choice.baseUrl !== undefined;
  const fallback = named
    ? undefined
    : await (
        await loadDiscovery()
      ).chooseProvider({
        env: settings.env,
        keys: settings.keys.all(),
        presets: builtInPresets,
        userProviders: settings.config.provider.custom,
      });
  const asked = { ...choice, ...(fallback ? { fallback } : {}) };
  const plain = resolveProvider(asked);
  const served = !plain.ok && plain.problem.kind === 'model_missing' ? await firstServed(settings, asked) : null;
  if (served !== null) return served;
  const isOpen = chosen.provider === null && choice.baseUrl === undefined && namedBy(settings, chosen.model) === null;
  const resolved = await resolveFamily(settings, refuseMisspelled(settings, chosen.model, plain), isOpen);
  if (resolved.ok) return resolved;
  const { kind, message, hint } = resolved.problem;
  throw new CliError(kind === 'key_missing' ? exit.credentials : exit.usage, message, hint);
}

/** Puts the newest model of a family in the place of its name; anything else stays. `mayLeave`: where the provider has
 * none, the first other one with a key that has some is used. */
async function resolveFamily(settings: ProviderSource, resolved: Resolution, mayLeave: boolean): Promise<ModelMeant> {
  if (!resolved.ok || !isFamily(resolved.ref.model) || resolved.ref.api === 'offline') return resolved;
  const family = resolved.ref.model;
  const { label, provider } = resolved.endpoint;
  const own = await newestServed(settings, resolved.endpoint, family);
  if (own.id !== null) return { ...resolved, ref: { ...resolved.ref, model: own.id }, family };
  const other = mayLeave ? await newestElsewhere(settings, provider, family) : null;
  if (other !== null) return other;
  const message = `${label} has no model of the family ${family}${own.failure === null ? '' : ` that is known here (${own.failure})`}`;
  const hint =
    `\`agent models --provider ${provider}\` lists its models. Name one as ${provider}/<model>, ` +
    `or another provider: <provider>/${family}`;
  return { ok: false, problem: { kind: 'model_missing', message, hint } };
}

/** Returns the newest model of a family at another provider that has a key, in the order of the presets; null where none
 * has any. */
async function newestElsewhere(settings: ProviderSource, except: string, family: string): Promise<FoundModel | null> {
  const presets = mergePresets(builtInPresets, settings.config.provider.custom);
  const sources = { env: settings.env, keys: settings.keys.all() };
  for (const [name, preset] of Object.entries(presets)) {
    if (name === except || findKey(name, preset, sources) === null) continue;
    const resolved = resolveProvider(providerChoice(settings, { provider: name, model: family }));
    const newest = resolved.ok ? await newestServed(settings, resolved.endpoint, family) : null;
    if (resolved.ok && newest?.id) return { ...resolved, ref: { ...resolved.ref, model: newest.id }, family };
  }
  return null;
}

/** Returns the first model that a server on this machine lists; null for other servers. */
async function firstServed(
  settings: ProviderSource,
  asked: ProviderChoice,
): Promise<Extract<Resolution, { ok: true }> | null> {
  const named = { ...asked, name: asked.name ?? asked.model ?? '', model: 'any' };
  const resolved = resolveProvider(named);
  if (!resolved.ok || !resolved.endpoint.local) return null;
  const endpoint = await withCommandKey(settings.keys.commands, resolved.endpoint);
  if ('code' in endpoint) throw new CliError(exit.credentials, endpoint.message, endpoint.hint ?? '');
  const listed = await (await loadDiscovery()).listModels(endpoint, settings.env, 2000);
  if (!listed.ok)
    throw new CliError(exit.failed, listed.message, 'Start it, or choose another provider with --provider.');
  const first = listed.models[0];
  if (first === undefined)
    throw new CliError(
      exit.usage,
      `${resolved.endpoint.label} at ${resolved.endpoint.baseUrl} has no model`,
      'Load a model there first.',
    );
  return { ...resolved, ref: { ...resolved.ref, model: first.id } };
}

/** Adds to a choice what the settings and the environment say of providers. */
export function providerChoice(settings: ProviderSource, chosen: ModelChoice): ProviderChoice {
  const choice: ProviderChoice = {
    env: settings.env,
    keys: settings.keys.all(),
    presets: builtInPresets,
    userProviders: settings.config.provider.custom,
    allowInsecure: settings.config.http.allowInsecure,
    ...(chosen.provider === null ? {} : { name: chosen.provider }),
    ...(chosen.model === null ? {} : { model: chosen.model }),
    ...providerSettings(settings),
  };
  return chosen.provider === null ? choice : addRecordedAddress(choice, chosen.provider, chosen);
}

/** Adds the recorded address and wire of a session. Where the settings name the same address, theirs is used: it may
 * hold a query, which is not on record. */
function addRecordedAddress(choice: ProviderChoice, name: string, { baseUrl, api }: ModelChoice): ProviderChoice {
  const owners = { ...choice.owners, ...(api === undefined ? {} : { api: name }) };
  const kept = { ...choice, owners, ...(api === undefined ? {} : { api }) };
  if (baseUrl === undefined || configuredAddress(name, choice)?.baseUrl === baseUrl) return kept;
  return { ...kept, baseUrl, owners: { ...owners, baseUrl: name } };
}

/** A model that was found. */
type FoundModel = Extract<ModelMeant, { ok: true }>;

/** Returns the model that `text` means in a session that uses `current`. A name without a provider is a model of the
 * same provider, at the same address. A family is looked up at its provider, and where that has none of it, at the
 * others that have a key, unless `stays`. */
export async function resolveModel(
  settings: ProviderSource,
  text: string,
  current: ModelRef,
  { stays = false }: { readonly stays?: boolean } = {},
): Promise<ModelMeant> {
  const { name, effort } = parseModelName(text, settings.config.provider.aliases);
  const mayLeave = !stays && splitName(settings, name)[0] === null;
  const resolved = await resolveFamily(
    settings,
    refuseMisspelled(settings, name, resolveName(settings, name, current)),
    mayLeave,
  );
  return resolved.ok && effort !== null ? { ...resolved, effort } : resolved;
}

/** Does the same for a name that is no alias, family or effort. Sends no request. */
function resolveName(settings: ProviderSource, name: string, current: ModelRef): Resolution {
  if (current.api === 'offline') return resolveProvider(providerChoice(settings, { provider: null, model: name }));
  const [named, id] = splitName(settings, name);
  if (named !== null && named !== current.provider)
    return resolveProvider(providerChoice(settings, { provider: named, model: id }));
  return resolveProvider(providerChoice(settings, choiceOf({ ...current, model: id ?? '' })));
}

/** Returns a problem for a name that is nearly a family or an alias and that no table has: no vendor's id is one plain
 * word. */
function refuseMisspelled(settings: ProviderSource, name: string | null, resolved: Resolution): Resolution {
  if (!resolved.ok || name === null || resolved.endpoint.local || !/^[a-z]{3,}$/i.test(name)) return resolved;
  const { aliases, models } = settings.config.provider;
  const known = [...modelFamilies, ...Object.keys(aliases)];
  const meant = nearestName(name, known);
  const isNear = meant !== null && meant !== name && editDistance(name, meant) === 1;
  if (!isNear || findModel(resolved.ref.provider, name, models) !== null) return resolved;
  const message = `there is no model or alias \`${name}\``;
  const hint = `Did you mean ${meant}? A model with this id: ${resolved.ref.provider}/${name}`;
  return { ok: false, problem: { kind: 'model_missing', message, hint } };
}

/** Returns the models that may step in for `ref`, in the order of `fallback_model`, each once and without the model
 * itself. Where `ref` has stepped in already, only those after it. Names without a provider are models of the provider
 * of `own`, the model of the session. */
export async function fallbackModels(
  settings: ProviderSource,
  ref: ModelRef,
  own: ModelRef,
): Promise<readonly FallbackRef[]> {
  const found: FallbackRef[] = [];
  for (const name of settings.config.provider.fallbackModels) {
    const resolved = await resolveModel(settings, name, own);
    if (resolved.ok && !isSameModel(resolved.ref, own) && !found.some((other) => isSameModel(other, resolved.ref)))
      found.push({ ...resolved.ref, ...(resolved.effort === undefined ? {} : { effort: resolved.effort }) });
  }
  return found.slice(found.findIndex((other) => isSameModel(other, ref)) + 1);
}

function isSameModel(one: ModelRef, other: ModelRef): boolean {
  return one.provider === other.provider && one.model === other.model;
}

/** Says at the beginning what would be noticed only once the model is needed. Sends no request. */
export function fallbackNotices(settings: ProviderSource, ref: ModelRef): readonly Notice[] {
  return settings.config.provider.fallbackModels.flatMap((text) => {
    const { name } = parseModelName(text, settings.config.provider.aliases);
    const found = refuseMisspelled(settings, name, resolveName(settings, name, ref));
    if (found.ok) return [];
    const { message, hint } = found.problem;
    return [{ level: 'warn', code: 'fallback_model', message: `fallback_model: ${message}: ${hint}` }] as const;
  });
}

/** Returns the name of the configured model where its price is not known. Null where it is, where it costs nothing, and
 * where no model can be used as things are. Sends no request. */
export function unpricedModel(settings: ProviderSource): string | null {
  const found = resolveProvider(providerChoice(settings, configuredModel(settings)));
  if (!found.ok || found.ref.api === 'offline' || isFamily(found.ref.model)) return null;
  const { provider, model } = found.ref;
  return findModel(provider, model, settings.config.provider.models)?.price ? null : `${provider}/${model}`;
}

/** Returns the choice that opens the model of `ref` at its address again. */
export function choiceOf({ provider, model, api, baseUrl }: ModelRef): ModelChoice {
  return { provider, model: model || null, ...(api === 'offline' ? {} : { api, baseUrl }) };
}

/** Returns true for the name of a model as GitHub Copilot shows it: `Claude Sonnet 4`, `GPT-5.4`. No provider has it. */
function isDisplayName(name: string): boolean {
  return /\s/.test(name) || name.startsWith('GPT-');
}

/** Returns the model that an agent is to use; null where it uses that of its session: the name is a family of which
 * this provider has no model, or one of Claude's at another provider, or a name for the screen. An agent's file may
 * come with a repository, so a family never sends its work to another provider. */
export async function resolveAgentModel(
  settings: ProviderSource,
  text: string,
  current: ModelRef,
): Promise<ModelMeant | null> {
  const { name } = parseModelName(text, settings.config.provider.aliases);
  if (isDisplayName(name)) return null;
  if (name.startsWith('claude-') && current.provider !== 'anthropic') return null;
  const found = await resolveModel(settings, text, current, { stays: true });
  return isFamily(name) && !found.ok ? null : found;
}

/** Returns whether the user asked for the embedded provider, rather than get it because there is no other. */
export function choseOffline({ provider, model }: Pick<Settings['config']['provider'], 'provider' | 'model'>): boolean {
  return provider === 'offline' || /^offline(?:\/|$)/.test(model ?? '');
}

/** Returns the endpoint of a provider for a request that is only shown. Needs no key. */
export function endpointFor(
  settings: ProviderSource,
  { provider, baseUrl }: Pick<SessionRow, 'provider' | 'baseUrl'>,
  api: string,
): Pick<Endpoint, 'quirks' | 'extraBody'> & Partial<Endpoint> {
  const env = Object.fromEntries(Object.entries(settings.env).map(([name, value]) => [name, value]));
  const resolved = resolveProvider({
    ...providerChoice({ ...settings, env }, { provider, model: 'any', baseUrl }),
    api,
  });
  return resolved.ok && resolved.ref.api === api ? resolved.endpoint : { quirks: {} };
}
