import builtIn from '../../../config/providers.json' with { type: 'json' };
import type { JsonObject } from '../core/json.js';
import type { EffortLevel } from '../core/model-names.js';
import type { ModelRef } from '../core/projection.js';
import { didYouMean } from '../core/text.js';
import { isThisMachine } from '../network/proxies.js';
import {
  type Cloud,
  type FaultHint,
  fillParts,
  firstSet,
  listingPath,
  type PresetParts,
  regionOf,
  requestPath,
  routeBody,
  routeOf,
  withBasePath,
} from './preset-parts.js';
import type { Quirks, SearchFormatName } from './quirks.js';
import { type Api, defaultWire, isWireName, knownWires, type WireName, wireNames } from './wires/known-wires.js';

/** One entry of `config/providers.json`, or of `providers` in the user's configuration. */
export interface Preset extends PresetParts {
  readonly label?: string;
  /** The name of its wire, or `offline`. */
  readonly api: string;
  /** The wire of other hosts than that of `base_url`. */
  readonly other_host_api?: string;
  readonly other_host_quirks?: Quirks;
  readonly base_url: string;
  /** Variables that hold a base URL, first one set wins. Default: `<NAME>_BASE_URL`. */
  readonly base_url_env?: readonly string[];
  /** Port of a base URL given without one (`OLLAMA_HOST=myhost`). */
  readonly default_port?: number;
  /** Variables that hold the key, first one set wins. */
  readonly key_env: string | readonly string[];
  /** False: requests without a key are fine. Default true. */
  readonly key_required?: boolean;
  /** A command that prints the key. From the user's own settings only. */
  readonly key_command?: string;
  /** Seconds for which a printed key is used. Default 300. */
  readonly key_command_ttl_s?: number;
  /** True: a server on this machine, which is found by asking its port. */
  readonly local?: boolean;
  /** Null: the first model the server lists. */
  readonly default_model: string | null;
  /** Appended to the base URL for the list of models. Default `/models`. */
  readonly models_path?: string;
  /** Path that only a valid key may read, for providers whose list of models is public. */
  readonly key_check?: string;
  /** The page that gives out keys. */
  readonly key_page?: string;
  /** Sign-in in the browser (PKCE): the page that asks the user, and the address that issues the key. */
  readonly sign_in?: { readonly page: string; readonly keys: string };
  readonly headers?: Readonly<Record<string, string>>;
  readonly quirks?: Quirks;
  /** Format of its web search, at its own host. Absent: it has no search. */
  readonly search?: SearchFormatName;
  /** True: hints name this one where no model is connected. */
  readonly suggested?: boolean;
  /** Prefix that gateways put before the ids of this vendor's models: `x-ai` in `x-ai/grok-5`. */
  readonly gateway_name?: string;
  /** True: gateways write a dot where this vendor writes a dash (`claude-sonnet-4.5`). */
  readonly gateway_dots?: boolean;
  /** Names of this provider in the sources of the model table; read by `config/update-models.mjs`. */
  readonly table_sources?: Readonly<Record<string, string>>;
  /** Merged into every request body (`provider` routing and the like). */
  readonly extra_body?: JsonObject;
}

export type Presets = Readonly<Record<string, Preset>>;

/** The presets of the program, in the order in which a provider is chosen where nothing is configured. */
export const builtInPresets: Presets = builtIn as Presets;

/** Merges the user's entries over the presets, field by field; new names come last. */
export function mergePresets(presets: Presets, user: Readonly<Record<string, Partial<Preset>>>): Presets {
  const merged: Record<string, Preset> = { ...presets };
  for (const [name, entry] of Object.entries(user)) {
    const base: Preset = merged[name] ?? { api: defaultWire, base_url: '', key_env: [], default_model: null };
    merged[name] = {
      ...base,
      ...entry,
      quirks: { ...base.quirks, ...entry.quirks },
      // What the user says of the server is true of it at any address.
      other_host_quirks: { ...base.other_host_quirks, ...entry.quirks, ...entry.other_host_quirks },
      headers: { ...base.headers, ...entry.headers },
    };
  }
  return merged;
}

/** Returns the provider that hints name where no model is connected, and its key. Throws where no preset is
 * `suggested`. */
export function suggestedProvider(presets: Presets = builtInPresets): {
  readonly name: string;
  readonly key: string;
  readonly model: string;
} {
  const [name, preset] = Object.entries(presets).find(([, { suggested }]) => suggested === true) ?? [];
  if (name === undefined || preset === undefined) throw new Error('no preset is suggested');
  return { name, key: keyNames(preset)[0] ?? '', model: preset.default_model ?? '<model>' };
}

export function keyNames(preset: Pick<Preset, 'key_env'>): readonly string[] {
  return typeof preset.key_env === 'string' ? [preset.key_env] : preset.key_env;
}

export function baseUrlNames(name: string, preset: Preset): readonly string[] {
  return preset.base_url_env ?? [`${name.toUpperCase().replaceAll(/[^A-Z0-9]/g, '_')}_BASE_URL`];
}

/** A key that the program keeps for a provider. `entered`: it was given in this run, and goes before the variables. */
export interface KeptKey {
  readonly key: string;
  readonly entered?: true;
}

/** A command of the user's that prints a key, which is used for `ttlMs`. */
export interface KeyCommand {
  readonly command: string;
  readonly ttlMs: number;
}

/** By provider: such a key goes to that provider alone, whatever variables others read. */
export type KeptKeys = Readonly<Record<string, KeptKey>>;

/** Address of a provider, and what its requests carry. `key` goes to the host of `baseUrl` and nowhere else. */
export interface Endpoint {
  readonly provider: string;
  readonly label: string;
  readonly api: Api;
  /** Without trailing slash; empty for the embedded provider. */
  readonly baseUrl: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly keyEnv: readonly string[];
  readonly key: string | null;
  /** The key is none of a variable. */
  readonly keyIsKept?: true;
  /** Prints the key. Before it has run, `key` is null. */
  readonly keyCommand?: KeyCommand;
  readonly quirks: Quirks;
  readonly modelsPath: string;
  /** Replaces the path of the wire. */
  readonly path?: string;
  /** Authorizes requests where `key` is null. */
  readonly cloud?: Cloud & { readonly region: string | null };
  /** See `key_header`. */
  readonly keyHeader?: string;
  readonly faultHints?: readonly FaultHint[];
  /** See `key_check`. */
  readonly keyPath?: string;
  readonly local: boolean;
  readonly search?: SearchFormatName;
  readonly extraBody?: JsonObject;
}

export interface ProviderChoice {
  /** From `--provider` or the configuration. Where it is given, all of `model` is the id. */
  readonly name?: string;
  /** `[provider/]model`. */
  readonly model?: string;
  /** Wins over the environment. */
  readonly baseUrl?: string;
  /** The name of a wire. */
  readonly api?: string;
  /** Merged over the preset's `extra_body`. */
  readonly extraBody?: JsonObject;
  /** The provider that each of the three above was configured for. No other provider gets it, so that no key goes to a
   * host it was not meant for. Absent: whichever provider is resolved gets it. */
  readonly owners?: { readonly baseUrl?: string; readonly api?: string; readonly extraBody?: string };
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly keys?: KeptKeys;
  readonly presets: Presets;
  readonly userProviders?: Readonly<Record<string, Partial<Preset>>>;
  /** Used where neither `name` nor `model` names a provider: see `chooseProvider`. */
  readonly fallback?: { readonly provider: string; readonly model: string | null };
  /** Accept `http:` to other machines. */
  readonly allowInsecure?: boolean;
}

interface ProviderProblem {
  readonly kind:
    | 'unknown_provider'
    | 'key_missing'
    | 'bad_url'
    | 'insecure_url'
    | 'model_missing'
    | 'bad_api'
    | 'bad_header';
  readonly message: string;
  readonly hint: string;
}

export type Resolution =
  | { readonly ok: true; readonly ref: ModelRef; readonly endpoint: Endpoint }
  | { readonly ok: false; readonly problem: ProviderProblem };

/** The model that a name means. `family`: the name, where that is a family's; `effort`: the one that the name asks for. */
export type ModelMeant =
  | (Extract<Resolution, { ok: true }> & { readonly family?: string; readonly effort?: EffortLevel })
  | Extract<Resolution, { ok: false }>;

/** Returns the provider and model that a choice means. Pure: it reads `env` as given and sends nothing. */
export function resolveProvider(choice: ProviderChoice): Resolution {
  const presets = mergePresets(choice.presets, choice.userProviders ?? {});
  const { name, model, guessed } = splitModel(choice, presets);
  if (guessed && name === 'offline' && model !== null && choice.model) return noProviderFor(choice.model, presets);
  return resolveNamed(name, model, ownSettings(choice, name), presets);
}

/** Returns the choice without what was configured for another provider. */
function ownSettings({ baseUrl: url, api, extraBody, ...choice }: ProviderChoice, name: string): ProviderChoice {
  const { owners = {} } = choice;
  const own = (owner: string | undefined): boolean => owner === undefined || owner === name;
  return {
    ...choice,
    ...(url !== undefined && own(owners.baseUrl) ? { baseUrl: url } : {}),
    ...(api !== undefined && own(owners.api) ? { api } : {}),
    ...(extraBody !== undefined && own(owners.extraBody) ? { extraBody } : {}),
  };
}

function resolveNamed(name: string, model: string | null, choice: ProviderChoice, presets: Presets): Resolution {
  const preset = Object.hasOwn(presets, name) ? presets[name] : undefined;
  if (preset === undefined)
    return problem('unknown_provider', `unknown provider \`${name}\``, unknownHint(name, Object.keys(presets)));
  if (preset.api === 'offline') return offline(name, preset, model);
  const base = baseUrl(name, preset, choice);
  if (!base.ok) return problem(base.problem, base.message, base.hint ?? addressHints[base.problem]);
  return resolveAt({ name, preset, model, base }, choice);
}

interface Placed {
  readonly name: string;
  readonly preset: Preset;
  readonly model: string | null;
  readonly base: Extract<BaseUrl, { readonly ok: true }>;
}

/** Returns the provider and model at an address. */
function resolveAt({ name, preset, model, base }: Placed, choice: ProviderChoice): Resolution {
  const headers = filledHeaders(name, preset, choice);
  if (!('filled' in headers)) return headers.problem;
  const id = model ?? defaultModel(preset, choice.env);
  const endpoint = buildEndpoint(name, { ...preset, headers: headers.filled }, { ...base, model: id ?? '' }, choice);
  if (endpoint === null)
    return problem('bad_api', `${name} has no known wire format`, `Known: ${wireNames.join(', ')}`);
  const wrong = keyProblem(endpoint, preset);
  if (wrong !== null) return wrong;
  if (id === null)
    return problem(
      'model_missing',
      `no model chosen for ${endpoint.label}`,
      preset.model_hint ?? `name one with \`--model ${name}/<model>\`; \`agent models --provider ${name}\` lists them`,
    );
  return {
    ok: true,
    ref: { provider: name, api: endpoint.api, model: id, baseUrl: publicAddress(base.url) },
    endpoint,
  };
}

const addressHints = {
  bad_url: 'give it as `https://host/path`',
  insecure_url: 'use https, or allow it with `--set http.allow_insecure=true`',
} as const;

function defaultModel(preset: Preset, env: ProviderChoice['env']): string | null {
  return firstSet(preset.default_model_env ?? [], env) ?? preset.default_model;
}

/** Says how a provider gets its key. */
function keyHint({ provider, keyEnv }: Pick<Endpoint, 'provider' | 'keyEnv'>): string {
  const login = `\`agent login ${provider}\``;
  return keyEnv.length === 0 ? `enter one with ${login}` : `set ${keyEnv.join(' or ')}, or enter it with ${login}`;
}

function keyProblem(endpoint: Endpoint, preset: Preset): Resolution | null {
  if (endpoint.keyCommand !== undefined) return null;
  if (endpoint.key === null)
    return keyNeeded(preset, endpoint.baseUrl)
      ? problem('key_missing', `no key for ${endpoint.label}`, keyHint(endpoint))
      : null;
  return /[^\u0021-\u007e]/.test(endpoint.key)
    ? problem(
        'key_missing',
        `the key for ${endpoint.label} contains a character that no key has`,
        `${keyHint(endpoint)} again`,
      )
    : null;
}

/** Splits a model string. The provider is `name`, else the first segment where it names a known provider, else the
 * fallback. */
function splitModel(
  choice: ProviderChoice,
  presets: Presets,
): { readonly name: string; readonly model: string | null; readonly guessed: boolean } {
  const given = choice.model || null;
  if (choice.name) return { name: choice.name, model: given, guessed: false };
  const [first = '', ...rest] = (given ?? '').split('/');
  if (Object.hasOwn(presets, first)) return { name: first, model: rest.join('/') || null, guessed: false };
  const fallback = choice.fallback ?? unnamed(choice, presets);
  return { name: fallback.provider, model: given ?? fallback.model, guessed: true };
}

/** Returns the problem of a model that is named while no provider is configured for it. The embedded provider answers
 * anything, so it must not answer instead. */
function noProviderFor(model: string, presets: Presets): Resolution {
  const names = Object.values(presets)
    .filter((preset) => preset.key_required !== false && preset.local !== true)
    .flatMap((preset) => keyNames(preset).slice(0, 1));
  return problem(
    'key_missing',
    `no key is set, so no provider serves the model \`${model}\``,
    `set ${names.slice(0, 3).join(', ')}, … or name a provider that needs none: \`--model ollama/${model}\``,
  );
}

/** Returns the provider where nothing names one: that of the base URL, else the first whose key is set. */
function unnamed(choice: ProviderChoice, presets: Presets): NonNullable<ProviderChoice['fallback']> {
  if (choice.baseUrl !== undefined) return { provider: choice.owners?.baseUrl ?? 'openai', model: null };
  return { provider: firstWithKey(presets, choice) ?? 'offline', model: null };
}

/** Returns the first provider, in the order of the presets, whose key is set; null where none is. */
export function firstWithKey(presets: Presets, sources: KeySources): string | null {
  return Object.entries(presets).find(([name, preset]) => hasKey(name, preset, sources))?.[0] ?? null;
}

/** Returns true where a provider has a key, or a command that prints one. The provider of a cloud also needs an address
 * and a model. */
function hasKey(name: string, preset: Preset, sources: KeySources): boolean {
  if (preset.key_command === undefined && findKey(name, preset, sources) === null) return false;
  const { env } = sources;
  return (
    preset.cloud === undefined || (defaultModel(preset, env) !== null && baseUrl(name, preset, { env, presets: {} }).ok)
  );
}

/** Sources of keys. */
export type KeySources = Pick<ProviderChoice, 'env' | 'keys'>;

/** A key, and the variable that it is from; null: it is a kept one. */
interface FoundKey {
  readonly key: string;
  readonly variable: string | null;
}

/** Returns the key of a provider: one that was entered in this run, else one of the environment, else a kept one. Null
 * where a command prints it. */
export function findKey(
  name: string,
  preset: Pick<Preset, 'key_env' | 'key_command'>,
  { env, keys = {} }: KeySources,
): FoundKey | null {
  const kept = Object.hasOwn(keys, name) ? keys[name] : undefined;
  if (kept?.entered) return { key: kept.key, variable: null };
  for (const variable of keyNames(preset)) {
    const value = env[variable]?.trim();
    if (value !== undefined && value !== '') return { key: value, variable };
  }
  return kept && preset.key_command === undefined ? { key: kept.key, variable: null } : null;
}

function keyNeeded(preset: Preset, baseUrl: string): boolean {
  return preset.cloud === undefined && preset.key_required !== false && !isThisMachine(new URL(baseUrl).hostname);
}

/** Returns the address that settings or the environment give a provider, in its public form, and the name of the
 * setting or variable. Null where only the built-in preset gives one, for an address that cannot be read, and for an
 * unknown provider. */
export function configuredAddress(
  name: string,
  choice: ProviderChoice,
): { readonly baseUrl: string; readonly by: string } | null {
  const presets = mergePresets(choice.presets, choice.userProviders ?? {});
  const preset = Object.hasOwn(presets, name) ? presets[name] : undefined;
  if (preset === undefined || preset.api === 'offline') return null;
  const own = ownSettings(choice, name);
  const configured = choice.userProviders?.[name]?.base_url === undefined ? null : `providers.${name}.base_url`;
  const by = own.baseUrl === undefined ? (addressVariable(name, preset, choice.env) ?? configured) : 'base_url';
  const base = baseUrl(name, preset, own);
  return by === null || !base.ok ? null : { baseUrl: publicAddress(base.url), by };
}

function addressVariable(name: string, preset: Preset, env: ProviderChoice['env']): string | null {
  return baseUrlNames(name, preset).find((variable) => (env[variable] ?? '').trim() !== '') ?? null;
}

function baseUrl(name: string, preset: Preset, choice: ProviderChoice): ReturnType<typeof readBaseUrl> {
  const variable = addressVariable(name, preset, choice.env);
  const given = choice.baseUrl ?? (variable === null ? undefined : choice.env[variable]);
  const written = fillParts(given ?? preset.base_url, preset, choice.env);
  const path = fillParts(preset.base_path ?? '', preset, choice.env);
  if (!written.ok) return missingPart(name, preset, written.missing);
  const short = preset.default_port === undefined ? {} : { defaultPort: preset.default_port, defaultPath: '/v1' };
  const base = readBaseUrl(written.text, { ...short, allowInsecure: choice.allowInsecure === true });
  if (!base.ok || preset.base_path === undefined) return base;
  const url = withBasePath(base.url, preset.base_path, path.ok ? path.text : '');
  return path.ok || url === base.url ? { ...base, url } : missingPart(name, preset, path.missing);
}

function missingPart(name: string, preset: Preset, missing: string): Extract<BaseUrl, { ok: false }> {
  const { label = name, address_hint: hint } = preset;
  const message = `no ${missing} for ${label}`;
  return { ok: false, problem: 'bad_url', message, ...(hint === undefined ? {} : { hint }) };
}

const headerVariable = /\$\{([A-Za-z_]\w*)(?::-([^}]*))?\}/g;

/** Puts variables into the headers of a provider: `${NAME}` and `${NAME:-default}`. A variable that the provider's key
 * is read from means its key, wherever that is kept. */
function filledHeaders(
  provider: string,
  preset: Preset,
  choice: ProviderChoice,
): { readonly filled: Readonly<Record<string, string>> } | { readonly problem: Resolution } {
  const filled: Record<string, string> = {};
  for (const [header, value] of Object.entries(preset.headers ?? {})) {
    const { text, missing } = filledHeader(value, provider, preset, choice);
    filled[header] = text;
    const what = `the header ${header} of ${preset.label ?? provider}`;
    const place = `providers.${provider}.headers`;
    if (missing !== null) {
      const hint = `set ${missing}, or write \`\${${missing}:-value}\` in ${place}`;
      return { problem: problem('bad_header', `${what} names \`\${${missing}}\`, which is not set`, hint) };
    }
    if (/[^\t\u0020-\u007e\u0080-\u00ff]/.test(text)) {
      const hint = `correct ${place}, or the variables it names`;
      return { problem: problem('bad_header', `${what} contains a character that no header may contain`, hint) };
    }
  }
  return { filled };
}

/** Fills the variables of one header. `missing` is the first one that is not set. */
function filledHeader(value: string, provider: string, preset: Preset, choice: ProviderChoice) {
  let missing: string | null = null;
  const text = value.replaceAll(headerVariable, (_, name: string, otherwise?: string) => {
    const key = keyNames(preset).includes(name) ? findKey(provider, preset, choice)?.key : undefined;
    const found = choice.env[name]?.trim() || key || otherwise;
    if (found === undefined) missing ??= name;
    return found ?? '';
  });
  return { text, missing: missing as string | null };
}

/** Returns the endpoint of a preset; null where its wire is not known. */
function buildEndpoint(
  provider: string,
  preset: Preset,
  { url, pastedApi, model }: Extract<BaseUrl, { readonly ok: true }> & { readonly model: string },
  choice: ProviderChoice,
): Endpoint | null {
  const own = isOwnHost(url, preset, choice.env);
  const otherHost = !own && preset.other_host_api !== undefined;
  const route = routeOf(preset, model);
  const api = namedApi(provider, choice, { route: route?.api, pasted: pastedApi }) ?? usualApi(preset, otherHost);
  if (!isWireName(api)) return null;
  return {
    provider,
    ...plainFacts(provider, preset),
    api,
    baseUrl: url,
    keyEnv: keyNames(preset),
    ...keyOf(provider, preset, choice),
    quirks: { ...quirksAt(preset, otherHost), ...route?.quirks },
    ...cloudFacts(preset, url, choice.env),
    ...extras(preset, choice, own, routeBody(route, model)),
    modelsPath: listingPath(preset.models_path ?? '/models', preset, own, choice.env),
    ...requestPath(route?.path ?? knownWires[api].path, knownWires[api].path, model),
  };
}

/** Returns the wire that is named for a model. With routes the model decides, whatever the session spoke before. */
function namedApi(
  provider: string,
  choice: ProviderChoice,
  { route, pasted }: { readonly route: string | undefined; readonly pasted: Api | undefined },
): string | undefined {
  const named = choice.userProviders?.[provider]?.api;
  return route === undefined ? (choice.api ?? named ?? pasted) : (named ?? route);
}

function isOwnHost(url: string, preset: Preset, env: ProviderChoice['env']): boolean {
  const usual = fillParts(preset.base_url, preset, env);
  return usual.ok && usual.text !== '' && new URL(url).host === new URL(usual.text).host;
}

function quirksAt(preset: Preset, isOtherHost: boolean): Quirks {
  return (isOtherHost ? preset.other_host_quirks : preset.quirks) ?? {};
}

function cloudFacts(
  preset: Preset,
  url: string,
  env: ProviderChoice['env'],
): Pick<Endpoint, 'cloud' | 'keyHeader' | 'faultHints'> {
  const { cloud, key_header: keyHeader, fault_hints: faultHints } = preset;
  return {
    ...(cloud === undefined ? {} : { cloud: { ...cloud, region: regionOf(url, preset, env) } }),
    ...(keyHeader === undefined ? {} : { keyHeader }),
    ...(faultHints === undefined ? {} : { faultHints }),
  };
}

function plainFacts(provider: string, preset: Preset): Pick<Endpoint, 'headers' | 'label' | 'local'> {
  const { label = provider, headers = {}, local = false } = preset;
  return { label, headers, local };
}

function usualApi({ api, other_host_api: elsewhere = api }: Preset, isOtherHost: boolean): string {
  return isOtherHost ? elsewhere : api;
}

const keyCommandTtlS = 300;

function keyOf(
  provider: string,
  preset: Preset,
  choice: ProviderChoice,
): Pick<Endpoint, 'key' | 'keyIsKept' | 'keyCommand'> {
  const found = findKey(provider, preset, choice);
  const { key_command: command, key_command_ttl_s: ttlS = keyCommandTtlS } = preset;
  if (found === null && command !== undefined) return { key: null, keyCommand: { command, ttlMs: ttlS * 1000 } };
  return { key: found?.key ?? null, ...(found?.variable === null ? { keyIsKept: true } : {}) };
}

function extras(
  { search, extra_body: body, key_check: keyPath }: Preset,
  { extraBody: configured }: ProviderChoice,
  own: boolean,
  ofRoute: JsonObject | undefined,
): Pick<Endpoint, 'search' | 'keyPath' | 'extraBody'> {
  return {
    ...(own && search !== undefined ? { search } : {}),
    ...(own && keyPath !== undefined ? { keyPath } : {}),
    ...(body === undefined && configured === undefined && ofRoute === undefined
      ? {}
      : { extraBody: { ...ofRoute, ...body, ...configured } }),
  };
}

function offline(provider: string, preset: Preset, model: string | null): Resolution {
  const endpoint: Endpoint = {
    provider,
    label: preset.label ?? provider,
    api: 'offline',
    baseUrl: '',
    headers: {},
    keyEnv: [],
    key: null,
    quirks: {},
    modelsPath: '',
    local: true,
  };
  return { ok: true, ref: { provider, api: 'offline', model: model ?? preset.default_model ?? 'offline' }, endpoint };
}

function unknownHint(name: string, names: readonly string[]): string {
  return `${didYouMean(name, names)} Known: ${names.join(', ')}`.trim();
}

function problem(kind: ProviderProblem['kind'], message: string, hint: string): Resolution {
  return { ok: false, problem: { kind, message, hint } };
}

/** A base URL that can be used, or one sentence that says what is wrong with it. */
type BaseUrl =
  /** `pastedApi`: the wire of an address that was pasted with the path of its requests. */
  | { readonly ok: true; readonly url: string; readonly pastedApi?: Api }
  | {
      readonly ok: false;
      readonly problem: 'bad_url' | 'insecure_url';
      readonly message: string;
      readonly hint?: string;
    };

interface BaseUrlRules {
  /** Port of a value without scheme and port. */
  readonly defaultPort?: number;
  /** Path of a value without scheme, for example `/v1`. */
  readonly defaultPath?: string;
  /** True: `http:` to other machines is accepted. */
  readonly allowInsecure: boolean;
}

/** Reads a base URL as people write it. A URL stays as it is, without trailing slashes; `host`, `host:port` and `:port`
 * become `http://host:port<defaultPath>`. An address to listen on (0.0.0.0, ::) means this machine. `http:` is accepted
 * for this machine only. */
export function readBaseUrl(value: string, rules: BaseUrlRules): BaseUrl {
  const url = parse(value.trim(), rules);
  if (url === null || !/^https?:$/.test(url.protocol))
    return { ok: false, problem: 'bad_url', message: `\`${value}\` is not an http or https URL` };
  if (url.username + url.password !== '')
    return { ok: false, problem: 'bad_url', message: `the base URL for ${url.host} contains a user name or password` };
  // An address to listen on.
  if (['0.0.0.0', '[::]'].includes(url.hostname)) url.hostname = '127.0.0.1';
  if (rules.defaultPath !== undefined && url.pathname === '/') url.pathname = rules.defaultPath;
  if (url.protocol === 'http:' && !rules.allowInsecure && !isThisMachine(url.hostname)) {
    return {
      ok: false,
      problem: 'insecure_url',
      message: `${url.origin} is not encrypted: http is allowed only for this machine`,
    };
  }
  const { pathname, pastedApi } = withoutRequestPath(url.pathname);
  url.pathname = pathname;
  return { ok: true, url: url.href.replace(/\/+$/, ''), ...(pastedApi === null ? {} : { pastedApi }) };
}

/** Cuts off what requests append to a base URL, for an address that was pasted whole, and says which wire appends it.
 * The list of models names none, and is cut off behind a version alone: `/models` is a base URL in itself on Azure. */
function withoutRequestPath(pathname: string): { readonly pathname: string; readonly pastedApi: WireName | null } {
  const whole = pathname.replace(/\/+$/, '');
  for (const name of wireNames) {
    const path = knownWires[name].path.replace(/^\/v\d+/, '');
    if (whole.endsWith(path)) return { pathname: whole.slice(0, -path.length) || '/', pastedApi: name };
  }
  return { pathname: whole.replace(/(?<=\/v\d\w*)\/models$/, '') || '/', pastedApi: null };
}

/** Returns a base URL that is safe to store and show: without user name, password, query and fragment, which may hold
 * keys. */
function publicAddress(baseUrl: string): string {
  const { origin, pathname } = new URL(baseUrl);
  return (origin + pathname).replace(/\/+$/, '');
}

function parse(text: string, rules: BaseUrlRules): URL | null {
  const bare = !/^[a-z][a-z0-9+.-]*:\/\//i.test(text);
  const full = bare ? `http://${text.startsWith(':') ? '127.0.0.1' : ''}${text}` : text;
  if (!URL.canParse(full)) return null;
  const url = new URL(full);
  if (bare && url.port === '' && rules.defaultPort !== undefined) url.port = String(rules.defaultPort);
  return url;
}

const privateRanges = /^(?:10|192\.168|169\.254|172\.(?:1[6-9]|2\d|3[01])|100\.(?:6[4-9]|[7-9]\d|1[01]\d|12[0-7]))\./;

/** Returns true for this machine and for addresses of private networks, by their form. Source: RFC 1918, RFC 4193, RFC
 * 3927, RFC 6598 (which VPNs use), RFC 6762 (`.local`). */
export function isPrivateHost(hostname: string): boolean {
  const host = hostname.replace(/^\[|\]$/g, '').toLowerCase();
  if (isThisMachine(hostname)) return true;
  if (/^\d+(?:\.\d+){3}$/.test(host)) return privateRanges.test(host);
  if (host.includes(':')) return /^f[cd]|^fe[89ab]/.test(host);
  return !host.includes('.') || /\.(?:local|lan|home|internal|localdomain)$/.test(host);
}

/** Appends `path` to a base URL and keeps its query. A version that both have (`…/v1` and `/v1/messages`) appears
 * once. */
export function joinUrl(baseUrl: string, path: string): string {
  if (URL.canParse(path)) return path;
  const url = new URL(baseUrl);
  const [pathname = '', query = ''] = path.split('?', 2);
  const base = url.pathname.replace(/\/+$/, '');
  const first = /^\/v\d+(?=\/)/.exec(pathname)?.[0];
  url.pathname = first !== undefined && base.endsWith(first) ? base + pathname.slice(first.length) : base + pathname;
  for (const [name, value] of new URLSearchParams(query)) url.searchParams.set(name, value);
  return url.href;
}
