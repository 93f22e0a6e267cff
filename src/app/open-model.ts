import { parseJson } from '../kernel/core/json.js';
import { createHash } from 'node:crypto';
import { existsSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, isAbsolute, join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { CliError, exit } from '../kernel/console/command.js';
import { agentPaths, ensurePrivateDirectory } from '../kernel/config/settings-file.js';
import type { ModelRef } from '../kernel/core/projection.js';
import type { Fault, PaidSearch, Provider } from '../kernel/core/provider.js';
import { type LoadedOnce, loadOnce } from '../kernel/core/runtime.js';
import { addAll } from '../kernel/core/lists.js';
import { keptSecret } from '../kernel/secrets/known-secrets.js';
import { withCommandKey } from '../kernel/secrets/key-commands.js';
import type { SecretGuard } from '../kernel/core/secrets/guard.js';
import { didYouMean } from '../kernel/core/text.js';
import { readBoundedText } from '../kernel/disk/bounded-file.js';
import { type Endpoint, findKey, resolveProvider } from '../kernel/providers/catalog.js';
import {
  createHttpProvider,
  type HttpDependencies,
  type HttpProvider,
  type KeySource,
} from '../kernel/providers/http/endpoint-provider.js';
import { realSchedule } from '../kernel/providers/http/watch.js';
import { maskProvider } from '../kernel/providers/masked-provider.js';
import { findModel } from '../kernel/providers/models.js';
import type { TextModels } from '../kernel/providers/text/protocol.js';
import { loadWire, type WireName } from '../kernel/providers/wires/known-wires.js';
import type { WireFacts } from '../kernel/providers/wires/wire.js';
import type { Settings } from '../kernel/console/run-settings.js';
import {
  choiceOf,
  choseOffline,
  type ModelChoice,
  providerChoice,
  type ProviderSource,
  resolveReady,
} from './model-resolution.js';
import { loadDiscovery } from './model-family.js';
import { loadPermissions } from './open-policy.js';
import { loadVerdict } from '../kernel/permissions/shell/load-verdict.js';
import { loadArgumentChecks } from '../kernel/tools/registry.js';
import { loadStartChild } from '../kernel/tools/process/load-start-child.js';

/** Loads the provider that is built into the program, with its scripts. */
const loadOffline = () => import('../kernel/providers/offline/offline.js');

/** The settings that a connection to a model needs. */
type ModelSource = ProviderSource &
  Pick<Settings, 'cwd' | 'home' | 'ephemeral' | 'rateLimits' | 'secrets' | 'servedWindows'>;

/** A model ready to be asked. `warm` opens the connection early; `close` ends it. */
export interface OpenedModel {
  readonly provider: Provider;
  readonly ref: ModelRef;
  /** The family by whose name the model was chosen. */
  readonly family?: string;
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
  const { ref, endpoint, ...chosenBy } = await resolveReady(settings, chosen);
  if (endpoint.api === 'offline') {
    const provider = await openOffline(settings, ref, interactive);
    const nothing = (): void => undefined;
    return {
      ref,
      provider: maskProvider({ open: () => Promise.resolve(provider) }, secrets),
      warm: nothing,
      close: nothing,
    };
  }
  const keys = createKeySource(settings, ref, endpoint);
  const http = loadHttp(settings, endpoint, endpoint.api, keys);
  return {
    ref,
    ...(chosenBy.family === undefined ? {} : { family: chosenBy.family }),
    provider: maskProvider({ open: () => http.get(), ...searchOf(settings, endpoint, keys) }, secrets),
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

/** Loads the client of a provider once, with the first request or with `warm`. */
function loadHttp(settings: ModelSource, endpoint: Endpoint, api: WireName, keys: KeySource): LoadedOnce<HttpProvider> {
  return loadOnce(async () => {
    const wire = await loadWire(api);
    return createHttpProvider(endpoint, wire, settings.config.http, {
      ...httpDependencies(settings, endpoint),
      keys,
      whileThinking: loadForCalls,
      ...(endpoint.local ? { checkWindow: await windowCheck(settings, endpoint) } : {}),
    });
  });
}

/** Returns the key of an endpoint as it changes: a key that is entered or forgotten counts from the next request. */
function createKeySource(settings: ProviderSource, ref: ModelRef, first: Endpoint): KeySource {
  const { keys, env } = settings;
  let current = first;
  const own = settings.config.provider.custom[ref.provider];
  const preset = { key_env: first.keyEnv, ...(own?.key_command === undefined ? {} : { key_command: own.key_command }) };
  const resolved = (): Endpoint | Fault => {
    const key = findKey(ref.provider, preset, { env, keys: keys.all() })?.key ?? null;
    if (key === current.key) return current;
    const again = resolveProvider(providerChoice(settings, choiceOf(ref)));
    if (!again.ok) return { code: 'auth', message: again.problem.message, hint: again.problem.hint };
    current = again.endpoint;
    return current;
  };
  let filled: { readonly from: Endpoint; readonly endpoint: Endpoint } | null = null;
  const endpoint = async (): Promise<Endpoint | Fault> => {
    const from = resolved();
    if ('code' in from || from.keyCommand === undefined) return from;
    const made = await withCommandKey(keys.commands, from);
    if ('code' in made) return made;
    if (filled?.from !== from || filled.endpoint.key !== made.key) filled = { from, endpoint: made };
    return filled.endpoint;
  };
  return {
    endpoint,
    renew: async () => {
      const refused = filled?.endpoint;
      if (refused === undefined || refused.keyCommand === undefined) return false;
      keys.commands.forget(ref.provider);
      const next = await endpoint();
      return !('code' in next) && next.key !== refused.key;
    },
    ask: ({ message }, signal) => keys.refused.ask(ref.provider, message, signal),
  };
}

const sleep = async (delayMs: number, signal: AbortSignal): Promise<void> => {
  await wait(delayMs, undefined, { signal }).catch(() => undefined);
};

/** Loads what the first call of a model will need. */
function loadForCalls(): void {
  const parts = [loadPermissions(), loadVerdict(), loadArgumentChecks(), loadStartChild()];
  Promise.all(parts).catch(() => {
    /* The call says it. */
  });
}

async function openOffline(settings: ModelSource, ref: ModelRef, interactive: boolean): Promise<Provider> {
  await checkScript(settings.cwd, ref.model);
  const { createOfflineProvider } = await loadOffline();
  return createOfflineProvider({
    cwd: settings.cwd,
    sleep,
    isInstalled: (program) => isOnPath(settings.env, program),
    standsIn: !interactive && !choseOffline(settings.config.provider),
  });
}

/** Returns the web search of a provider that has one. Its code is loaded with the first search. */
function searchOf(
  settings: Pick<Settings, 'config' | 'env'>,
  first: Endpoint,
  keys: KeySource,
): Pick<Provider, 'search'> {
  if (first.search === undefined) return {};
  const { search, provider } = first;
  return {
    search: async (request, ref) => {
      const endpoint = await keys.endpoint();
      if ('code' in endpoint) return noSearch;
      const { searchNatively } = await loadDiscovery();
      return await searchNatively({ ...endpoint, search }, request, ref, {
        env: settings.env,
        now: Date.now,
        facts: (model) => findModel(provider, model, settings.config.provider.models),
      });
    },
  };
}

const noSearch: PaidSearch = {
  answer: { ok: false, reason: 'failed', message: 'The key for this search is gone.' },
  usage: null,
  costUsd: null,
};

/** `cd` is built into the shell. */
function isOnPath({ PATH = '' }: NodeJS.ProcessEnv, program: string): boolean {
  return (
    program === 'cd' || PATH.split(delimiter).some((folder) => isAbsolute(folder) && existsSync(join(folder, program)))
  );
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
    onSecret: (provider, value) => {
      addAll(settings.secrets, keptSecret(provider, value));
    },
    onLimits: (limits) => settings.rateLimits?.set(endpoint.provider, limits),
    textModels: textModelsOf(settings, endpoint),
    ...(endpoint.local
      ? {
          takesTools: async (model) => await (await loadDiscovery()).takesTools(endpoint, model, settings.env),
        }
      : {}),
    facts: (model) => factsOf(settings, endpoint.provider, model),
    price: (model) => findModel(endpoint.provider, model, settings.config.provider.models)?.price ?? null,
  };
}

async function windowCheck(
  settings: WindowSource,
  endpoint: Endpoint,
): Promise<NonNullable<HttpDependencies['checkWindow']>> {
  const { createWindowCheck } = await loadDiscovery();
  return createWindowCheck(endpoint.label, (model) => servedWindow(settings, endpoint, model));
}

type WindowSource = Pick<Settings, 'env' | 'servedWindows'>;

/** Asks the server of a model for its context window; null where it does not say. */
export async function askWindow(settings: ProviderSource & WindowSource, ref: ModelRef): Promise<number | null> {
  const resolved = resolveProvider(providerChoice(settings, choiceOf(ref)));
  if (!resolved.ok || resolved.endpoint.api === 'offline') return null;
  const endpoint = await withCommandKey(settings.keys.commands, resolved.endpoint);
  return 'code' in endpoint ? null : await servedWindow(settings, endpoint, ref.model);
}

async function servedWindow(
  { env, servedWindows }: WindowSource,
  endpoint: Endpoint,
  model: string,
): Promise<number | null> {
  const tokens = await (await loadDiscovery()).servedWindow(endpoint, model, env);
  if (tokens !== null) servedWindows?.set(`${endpoint.provider}/${model}`, tokens);
  return tokens;
}

/** Throws a usage error for a script that cannot be played. */
async function checkScript(cwd: string, model: string): Promise<void> {
  if (model === 'offline') return;
  const { isScript, readScript, shippedScripts } = await loadOffline();
  if (!isScript(model))
    throw new CliError(
      exit.usage,
      `the offline provider has no conversation \`${model}\``,
      `${didYouMean(model, shippedScripts)} Known: ${shippedScripts.join(', ')}; or name a script with .json.`.trim(),
    );
  const script = await readScript(model, cwd);
  if (!script.ok) throw new CliError(exit.usage, script.fault.message, script.fault.hint ?? 'Name a readable script.');
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
