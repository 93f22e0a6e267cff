import { parseJson } from '../kernel/core/json.js';
import { createHash } from 'node:crypto';
import { existsSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, isAbsolute, join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { CliError, exit } from '../kernel/console/command.js';
import { agentPaths, ensurePrivateDirectory } from '../kernel/config/settings-file.js';
import type { ModelRef } from '../kernel/core/projection.js';
import type { Provider } from '../kernel/core/provider.js';
import { loadOnce } from '../kernel/core/runtime.js';
import type { SecretGuard } from '../kernel/core/secrets/guard.js';
import type { SessionRow } from '../kernel/core/store.js';
import { didYouMean } from '../kernel/core/text.js';
import { readBoundedText } from '../kernel/disk/bounded-file.js';
import {
  builtInPresets,
  configuredAddress,
  type Endpoint,
  findKey,
  mergePresets,
  type ProviderChoice,
  type Resolution,
  resolveProvider,
} from '../kernel/providers/catalog.js';
import type { HttpDependencies, HttpProvider } from '../kernel/providers/http/endpoint-provider.js';
import { realSchedule } from '../kernel/providers/http/watch.js';
import { maskProvider } from '../kernel/providers/masked-provider.js';
import { findModel } from '../kernel/providers/models.js';
import { type KeyedProvider, renewProvider } from '../kernel/providers/renewed-provider.js';
import type { TextModels } from '../kernel/providers/text/protocol.js';
import { loadWire } from '../kernel/providers/wires/known-wires.js';
import type { WireFacts } from '../kernel/providers/wires/wire.js';
import type { Notice, Settings } from '../kernel/console/run-settings.js';
import {
  type Configured,
  configuredModel,
  type ModelChoice,
  providerSettings,
  splitName,
} from './provider-settings.js';

/** The settings that name a provider and its key. */
export type ProviderSource = Configured & Pick<Settings, 'env' | 'keys'>;
/** The settings that a connection to a model needs. */
type ModelSource = ProviderSource & Pick<Settings, 'cwd' | 'home' | 'ephemeral'>;

/** A model ready to be asked. `warm` opens the connection early; `close` ends it. */
export interface OpenedModel {
  readonly provider: Provider;
  readonly ref: ModelRef;
  warm(): void;
  close(): void;
}

/** Opens the chosen model; without a choice the first provider with a key, a local server, or the embedded provider.
 * `interactive`: a user sees its answers. Throws a `CliError`: exit code 2 for an unknown provider, 4 for a missing
 * key. */
export async function openModel(
  settings: ModelSource,
  chosen: ModelChoice,
  secrets: SecretGuard,
  interactive: boolean,
): Promise<OpenedModel> {
  const { ref, endpoint } = await resolveReady(settings, chosen);
  const keyed = async (found: Endpoint): Promise<OpenedModel & KeyedProvider> => ({
    ...(await connect(settings, ref, found, interactive)),
    key: found.key,
  });
  const { keys } = settings;
  const opened = renewProvider(await keyed(endpoint), {
    keyNow: () =>
      findKey(ref.provider, { key_env: endpoint.keyEnv }, { env: settings.env, keys: keys.all() })?.key ?? null,
    reopen: async () => {
      const again = resolveProvider(providerChoice(settings, choiceOf(ref)));
      if (again.ok) return await keyed(again.endpoint);
      return { code: 'auth', message: again.problem.message, hint: again.problem.hint };
    },
    refusesKey: async (fault) => (await import('../kernel/providers/discover.js')).refusesKey(fault),
    askForKey: ({ message }, signal) => keys.refused.ask(ref.provider, message, signal),
  });
  return { ...opened, ref, provider: maskProvider(opened.provider, secrets) };
}

/** Returns the chosen model and its endpoint. Throws a `CliError`: exit code 2 for a wrong name, 4 for a missing key, 1
 * for a local server that has to list its models and does not run. */
export async function resolveReady(
  settings: ProviderSource,
  chosen: ModelChoice,
): Promise<Extract<Resolution, { ok: true }>> {
  const choice = providerChoice(settings, chosen);
  const named = chosen.provider !== null || namesProvider(settings, chosen.model) || choice.baseUrl !== undefined;
  const fallback = named
    ? undefined
    : await (
        await import('../kernel/providers/discover.js')
      ).chooseProvider({
        env: settings.env,
        keys: settings.keys.all(),
        presets: builtInPresets,
        userProviders: settings.config.provider.custom,
      });
  const asked = { ...choice, ...(fallback ? { fallback } : {}) };
  const resolved = resolveProvider(asked);
  if (resolved.ok) return resolved;
  const { kind, message, hint } = resolved.problem;
  const served = kind === 'model_missing' ? await firstServed(settings, asked) : null;
  if (served !== null) return served;
  throw new CliError(kind === 'key_missing' ? exit.credentials : exit.usage, message, hint);
}

function namesProvider(settings: Configured, model: string | null): boolean {
  return (
    model !== null &&
    Object.hasOwn(mergePresets(builtInPresets, settings.config.provider.custom), model.split('/')[0] ?? '')
  );
}

/** Returns the first model that a server on this machine lists; null for other servers. */
async function firstServed(
  settings: ProviderSource,
  asked: ProviderChoice,
): Promise<Extract<Resolution, { ok: true }> | null> {
  const named = { ...asked, name: asked.name ?? asked.model ?? '', model: 'any' };
  const resolved = resolveProvider(named);
  if (!resolved.ok || !resolved.endpoint.local) return null;
  const listed = await (
    await import('../kernel/providers/discover.js')
  ).listModels(resolved.endpoint, settings.env, 2000);
  if (!listed.ok)
    throw new CliError(exit.failed, listed.message, 'Start it, or choose another provider with --provider.');
  const first = listed.models[0];
  if (first === undefined)
    throw new CliError(
      exit.usage,
      `${resolved.endpoint.label} at ${resolved.endpoint.baseUrl} has no model`,
      'Load one there first.',
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
  return chosen.provider === null ? choice : withRecordedAddress(choice, chosen.provider, chosen);
}

/** Adds the recorded address and wire of a session. Where the settings name the same address, theirs is used: it may
 * hold a query, which is not on record. */
function withRecordedAddress(choice: ProviderChoice, name: string, { baseUrl, api }: ModelChoice): ProviderChoice {
  const owners = { ...choice.owners, ...(api === undefined ? {} : { api: name }) };
  const kept = { ...choice, owners, ...(api === undefined ? {} : { api }) };
  if (baseUrl === undefined || configuredAddress(name, choice)?.baseUrl === baseUrl) return kept;
  return { ...kept, baseUrl, owners: { ...owners, baseUrl: name } };
}

/** Returns the model that `name` means in a session that uses `current`. A name without a provider is a model of the
 * same provider, at the same address. Sends no request. */
export function resolveModel(settings: ProviderSource, name: string, current: ModelRef): Resolution {
  if (current.api === 'offline') return resolveProvider(providerChoice(settings, { provider: null, model: name }));
  const [named, id] = splitName(settings, name);
  if (named !== null && named !== current.provider)
    return resolveProvider(providerChoice(settings, { provider: named, model: id }));
  return resolveProvider(providerChoice(settings, choiceOf({ ...current, model: id ?? '' })));
}

/** Returns the model that steps in for `ref` (`fallback_model`); null where there is none, or where it is the same. */
export function fallbackModel(settings: ProviderSource, ref: ModelRef): ModelRef | null {
  const name = settings.config.provider.fallbackModel;
  const found = name === null ? null : resolveModel(settings, name, ref);
  if (!found?.ok) return null;
  return found.ref.provider === ref.provider && found.ref.model === ref.model ? null : found.ref;
}

/** Says at the beginning what would be noticed only once the model is needed. */
export function fallbackNotices(settings: ProviderSource, ref: ModelRef): readonly Notice[] {
  const name = settings.config.provider.fallbackModel;
  const found = name === null ? null : resolveModel(settings, name, ref);
  if (found === null || found.ok) return [];
  const { message, hint } = found.problem;
  return [{ level: 'warn', code: 'fallback_model', message: `fallback_model: ${message}: ${hint}` }];
}

/** Returns the name of the configured model where its price is not known. Null where it is, where it costs nothing, and
 * where no model can be used as things are. Sends no request. */
export function unpricedModel(settings: ProviderSource): string | null {
  const found = resolveProvider(providerChoice(settings, configuredModel(settings)));
  if (!found.ok || found.ref.api === 'offline') return null;
  const { provider, model } = found.ref;
  return findModel(provider, model, settings.config.provider.models)?.price ? null : `${provider}/${model}`;
}

/** Returns the choice that opens the model of `ref` at its address again. */
export function choiceOf({ provider, model, api, baseUrl }: ModelRef): ModelChoice {
  return { provider, model: model || null, ...(api === 'offline' ? {} : { api, baseUrl }) };
}

const sleep = async (delayMs: number, signal: AbortSignal): Promise<void> => {
  await wait(delayMs, undefined, { signal }).catch(() => undefined);
};

/** A model that takes longer for its answer leaves the time to load what its first call will need. */
const thinkingMs = 500;

function loadForCalls(): void {
  const parts = [
    import('../kernel/permissions/permission-policy.js'),
    import('../kernel/permissions/shell/verdict.js'),
    import('../kernel/tools/argument-checks.js'),
    import('../kernel/tools/process/start-child.js'),
  ];
  Promise.all(parts).catch(() => {
    /* The call says it. */
  });
}

/** Connects to a model. The client is loaded with the first request, or by `warm`. */
async function connect(
  settings: ModelSource,
  ref: ModelRef,
  endpoint: Endpoint,
  interactive: boolean,
): Promise<OpenedModel> {
  if (endpoint.api === 'offline') return await connectOffline(settings, ref, interactive);
  const { api } = endpoint;
  const http = loadOnce(async (): Promise<HttpProvider> => {
    const [{ createHttpProvider }, wire] = await Promise.all([
      import('../kernel/providers/http/endpoint-provider.js'),
      loadWire(api),
    ]);
    return createHttpProvider(endpoint, wire, settings.config.http, httpDependencies(settings, endpoint));
  });
  const provider: Provider = {
    async *stream(request) {
      const opened = await http.get();
      const cancel = realSchedule(() => {
        if (request.conversation.tools.length > 0) loadForCalls();
      }, thinkingMs);
      try {
        yield* opened.stream(request);
      } finally {
        cancel();
      }
    },
    ...searchOf(settings, endpoint),
  };
  return {
    ref,
    provider: endpoint.local ? await watched(settings, provider, endpoint) : provider,
    warm: () => {
      http.get().then(
        (loaded) => {
          loaded.warm();
        },
        () => {
          /* The request says it. */
        },
      );
    },
    close: () => {
      http.started()?.then(
        (loaded) => {
          loaded.close();
        },
        () => undefined,
      );
    },
  };
}

async function connectOffline(settings: ModelSource, ref: ModelRef, interactive: boolean): Promise<OpenedModel> {
  await checkScript(settings.cwd, ref.model);
  const { createOfflineProvider } = await import('../kernel/providers/offline/offline.js');
  return {
    ref,
    provider: createOfflineProvider({
      cwd: settings.cwd,
      sleep,
      isInstalled: (program) => isOnPath(settings.env, program),
      standsIn: !interactive && !choseOffline(settings.config.provider),
    }),
    warm: () => undefined,
    close: () => undefined,
  };
}

/** Returns the web search of a provider that has one. Its code is loaded with the first search. */
function searchOf(settings: Pick<Settings, 'config' | 'env'>, endpoint: Endpoint): Pick<Provider, 'search'> {
  const { search, provider } = endpoint;
  if (search === undefined) return {};
  return {
    search: async (request, ref) =>
      await (
        await import('../kernel/providers/native-search.js')
      ).searchNatively({ ...endpoint, search }, request, ref, {
        env: settings.env,
        now: Date.now,
        facts: (model) => findModel(provider, model, settings.config.provider.models),
      }),
  };
}

/** `cd` is built into the shell. */
function isOnPath({ PATH = '' }: NodeJS.ProcessEnv, program: string): boolean {
  return (
    program === 'cd' || PATH.split(delimiter).some((folder) => isAbsolute(folder) && existsSync(join(folder, program)))
  );
}

/** Returns whether the user asked for the embedded provider, rather than get it because there is no other. */
export function choseOffline({ provider, model }: Pick<Settings['config']['provider'], 'provider' | 'model'>): boolean {
  return provider === 'offline' || /^offline(?:\/|$)/.test(model ?? '');
}

/** Returns what the user's models and the built-in table know of a model that shapes requests. */
export function factsOf(settings: Pick<Settings, 'config'>, provider: string, model: string): WireFacts {
  const facts = findModel(provider, model, settings.config.provider.models);
  return { efforts: facts?.efforts ?? null, maxOutputTokens: facts?.maxOutputTokens ?? null };
}

/** The clock, the environment and the tables for an HTTP provider. */
export function httpDependencies(settings: ModelSource, endpoint: Endpoint): HttpDependencies {
  return {
    now: Date.now,
    random: Math.random,
    sleep,
    env: settings.env,
    schedule: realSchedule,
    textModels: textModelsOf(settings, endpoint),
    ...(endpoint.local
      ? {
          takesTools: async (model) =>
            await (await import('../kernel/providers/discover.js')).takesTools(endpoint, model, settings.env),
        }
      : {}),
    facts: (model) => factsOf(settings, endpoint.provider, model),
    price: (model) => findModel(endpoint.provider, model, settings.config.provider.models)?.price ?? null,
  };
}

async function watched({ env }: Pick<Settings, 'env'>, provider: Provider, endpoint: Endpoint): Promise<Provider> {
  const [{ watchLocalWindow }, { localContextWindow }] = await Promise.all([
    import('../kernel/providers/discover.js'),
    import('../kernel/providers/discover.js'),
  ]);
  return watchLocalWindow(provider, {
    label: endpoint.label,
    ask: (model) => localContextWindow(endpoint, model, env, 500),
  });
}

/** Throws a usage error for a script that cannot be played. */
async function checkScript(cwd: string, model: string): Promise<void> {
  if (model === 'offline') return;
  const { isScript, readScript, shippedScripts } = await import('../kernel/providers/offline/script.js');
  if (!isScript(model))
    throw new CliError(
      exit.usage,
      `the offline provider has no conversation \`${model}\``,
      `${didYouMean(model, shippedScripts)} Known: ${shippedScripts.join(', ')}; or name a script with .json.`.trim(),
    );
  const script = await readScript(model, cwd);
  if (!script.ok)
    throw new CliError(exit.usage, script.fault.message, script.fault.hint ?? 'Name a script that can be read.');
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

const maxKept = 200;

/** Remembers the models of an endpoint that take no tool calls, as digests in the cache directory, so that the next run
 * does not try them again. Without that file they are remembered for this run. */
export function textModelsOf(
  { env, home, ephemeral }: Pick<Settings, 'env' | 'home' | 'ephemeral'>,
  { provider, baseUrl }: Pick<Endpoint, 'provider' | 'baseUrl'>,
): TextModels {
  const file = join(agentPaths(env, home).cache, 'text-models.json');
  const own = new Set<string>();
  let stored: readonly string[] | null = null;
  const digest = (model: string): string =>
    createHash('sha256').update([provider, baseUrl, model].join('\0')).digest('hex').slice(0, 24);
  return {
    has: (model) => own.has(digest(model)) || (stored ??= read(file)).includes(digest(model)),
    add(model) {
      own.add(digest(model));
      if (!ephemeral)
        write(file, [digest(model), ...read(file).filter((known) => known !== digest(model))].slice(0, maxKept));
    },
  };
}

function read(file: string): readonly string[] {
  try {
    const value: unknown = parseJson(
      readBoundedText(file, { maxBytes: 65_536, longer: 'refuse', links: 'follow' }) ?? '[]',
    );
    return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
  } catch {
    return [];
  }
}

/** Renames the new file into place, so that two runs at once leave a whole one. */
function write(file: string, digests: readonly string[]): void {
  const draft = `${file}.${process.pid}`;
  try {
    ensurePrivateDirectory(dirname(file));
    writeFileSync(draft, JSON.stringify(digests), { mode: 0o600 });
    renameSync(draft, file);
  } catch {
    rmSync(draft, { force: true });
  }
}
