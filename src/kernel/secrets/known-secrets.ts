import { accountHome } from '../config/account-home.js';
import { createHmac, randomBytes } from 'node:crypto';
import { closeSync, fsyncSync, linkSync, openSync, readFileSync, unlinkSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import searchServices from '../../../config/search-services.json' with { type: 'json' };
import { keysInFile } from './stored-keys.js';
import type { Config } from '../config/sections.js';
import type { ProviderValues } from '../config/settings-values.js';
import { agentPaths, ensurePrivateDirectory } from '../config/settings-file.js';
import type { Event } from '../core/event.js';
import { createSecretGuard, type SecretGuard } from '../core/secrets/guard.js';
import { isSecretVariable, secretForms } from '../core/secrets/scanner.js';
import { isProxyVariable } from '../network/proxies.js';
import type { BlobSeal, SessionHistory, Store } from '../core/store.js';
import {
  baseUrlNames,
  builtInPresets,
  keyNames,
  mergePresets,
  type Preset,
  type Presets,
} from '../providers/catalog.js';
import { withOverrides } from '../core/overrides.js';

/** A value that must never be written, and the name of the variable or header that holds it. */
export interface Secret {
  readonly name: string;
  readonly value: string;
}

type Environment = Readonly<Record<string, string | undefined>>;
type OwnProviders = Readonly<Record<string, ProviderValues>>;
/** The settings that name keys besides the presets. */
interface OwnKeys {
  readonly providers: OwnProviders;
  /** `web.api.allow`. */
  readonly api: Config['web']['api'];
  /** `store.url`. */
  readonly storeUrl?: string | null;
}
/** The keys that these settings name. */
export function ownKeys({ provider, web, store }: Pick<Config, 'provider' | 'store' | 'web'>): OwnKeys {
  return { providers: provider.custom, api: web.api, storeUrl: store.url };
}

const noKeys: OwnKeys = { providers: {}, api: [] };

/** Shorter values occur in ordinary words. */
const minLength = 8;
const keyHeader = /auth|key|token|secret|cookie|password/i;

/** The key of the endpoint in `docs.embeddings`. */
export const embeddingsKey = 'EMBEDDINGS_API_KEY';

/** May hold a password. */
const storeUrlVariable = 'AGENT_STORE_URL';

/** Returns the names of the variables that hold the keys of providers, search services and interfaces (`web.api`), by
 * the presets and the settings. No process of a tool gets them. */
export function secretVariables(
  env: Environment,
  { providers, api }: OwnKeys = noKeys,
  presets: Presets = builtInPresets,
): readonly string[] {
  const named = new Set([
    ...api.flatMap(({ auth }) => auth?.env ?? []),
    ...catalogue(providers, presets).flatMap(([, preset]) => [
      ...keyNames(preset),
      ...Object.values(preset.headers ?? {}).flatMap(variablesIn),
    ]),
    embeddingsKey,
    storeUrlVariable,
    ...Object.values(searchServices).flatMap(({ key_env: keyEnv }) => keyEnv ?? []),
  ]);
  return Object.keys(env).filter((name) => named.has(name));
}

/** Returns all secrets that this program has been given: keys in variables, headers that sign requests, passwords in
 * addresses. The longest come first, so that a secret that contains another is replaced as a whole. */
export function knownSecrets(
  env: Environment,
  own: OwnKeys = noKeys,
  presets: Presets = builtInPresets,
): readonly Secret[] {
  const keys = secretVariables(env, own, presets).map((name) => ({ name, value: (env[name] ?? '').trim() }));
  const all = catalogue(own.providers, presets);
  const headers = all
    .flatMap(([, preset]) => Object.entries(preset.headers ?? {}))
    .filter(([name]) => keyHeader.test(name))
    .map(([name, value]) => ({ name, value: value.replace(/^(?:bearer|basic|token)\s+/i, '').trim() }));
  const addressNames = new Set(all.flatMap(([name, preset]) => baseUrlNames(name, preset)));
  const addresses = [
    ...Object.entries(env).filter(
      ([name]) => addressNames.has(name) || /_BASE_URL$/i.test(name) || isProxyVariable(name),
    ),
    ...all.map(([name, { base_url: url }]) => [name, url] as const),
    ['store.url', own.storeUrl ?? ''] as const,
  ];
  const passwords = addresses.flatMap(([name, url]) => passwordsOf(url).map((value) => ({ name, value })));
  return [...keys, ...headers, ...passwords]
    .filter(({ value }) => value.length >= minLength)
    .toSorted((a, b) => b.value.length - a.value.length);
}

/** Returns a key that the program keeps as a secret; nothing for one that may be an ordinary word. */
export function keptSecret(provider: string, key: string): readonly Secret[] {
  return key.length < minLength ? [] : [{ name: `keys.json:${provider}`, value: key }];
}

/** Returns the values of `tools.bash.env` whose name or form says that they are secrets. */
export function commandSecrets(env: Readonly<Record<string, string>>): readonly Secret[] {
  return Object.entries(env)
    .filter(([name, value]) => value.length >= minLength && isSecretVariable(name, value.trim()))
    .map(([name, value]) => ({ name: `tools.bash.env.${name}`, value: value.trim() }));
}

/** Returns the keys in `keys.json`, for what is said where no settings could be read. */
export function keptSecrets(env: Environment): readonly Secret[] {
  const home = accountHome(env);
  if (home === null && !env['AGENT_HOME']) return [];
  const { keys } = agentPaths(env, home ?? '/');
  return Object.entries(keysInFile(keys)).flatMap(([provider, { key }]) => keptSecret(provider, key));
}

/** Returns the presets as they are and as the settings change them: both may name a key. */
function catalogue(providers: OwnProviders, presets: Presets): readonly (readonly [string, Preset])[] {
  return [...Object.entries(presets), ...Object.entries(mergePresets(presets, providers))];
}

/** Returns the variables in the value of a header: `$NAME` and `${NAME}`. */
function variablesIn(value: string): readonly string[] {
  return [...value.matchAll(/\$\{?([A-Za-z_]\w*)/g)].map((match) => match[1] ?? '');
}

/** Returns the password of an address as it is written, and decoded. */
function passwordsOf(url: string | undefined): readonly string[] {
  const written = /^(?:[a-z][a-z\d+.-]*:\/\/)?[^/?#@]*:([^/?#]*)@/i.exec(url ?? '')?.[1];
  if (written === undefined) return [];
  try {
    return [...new Set([written, decodeURIComponent(written)])];
  } catch {
    return [written];
  }
}

/** Returns the values of other variables whose name or form says that they are secrets. */
function environmentSecrets(env: Environment, keys: readonly Secret[]): readonly string[] {
  const values = Object.entries(env)
    .filter(([name, value]) => value !== undefined && isSecretVariable(name, value.trim()))
    .map(([, value]) => value?.trim() ?? '');
  return [...new Set(values)].filter((value) => !keys.some((key) => key.value === value));
}

type Masking = Config['secrets'];

/** The key of this installation: for fingerprints of secrets, and for contents that hold some. */
export interface InstallationKey {
  readonly ofInstallation: () => Buffer;
}

/** The parts that the guard of a session is made from. */
export interface SecretSource {
  readonly env: Environment;
  readonly secrets: readonly Secret[];
  readonly guard: SecretGuard;
  readonly config: Pick<Config, 'secrets'>;
  readonly keys: InstallationKey;
}

/** Makes the guard for text outside of sessions: the log file, the history, errors. */
export function plainGuard(
  env: Environment,
  secrets: readonly Secret[],
  masking: Masking = { mask: true, unmasked: [] },
): SecretGuard {
  return createSecretGuard(guarded(env, secrets, masking));
}

function guarded(
  env: Environment,
  keys: readonly Secret[],
  { mask, unmasked }: Masking,
): Pick<Parameters<typeof createSecretGuard>[0], 'forms' | 'keys' | 'environment'> {
  return {
    keys,
    forms: mask ? secretForms(unmasked) : [],
    environment: mask && !unmasked.includes('environment') ? environmentSecrets(env, keys) : [],
  };
}

/** Makes the guard of one session. It recognises the secrets that were seen in `events`. */
export function sessionGuard(source: SecretSource, events: readonly Event[] = []): SecretGuard {
  const guard = createSecretGuard({
    ...guarded(source.env, source.secrets, source.config.secrets),
    fingerprint: (value) => createHmac('sha256', source.keys.ofInstallation()).update(value).digest('hex').slice(0, 32),
  });
  guard.recall(events);
  return guard;
}

/** Makes the guard of exports, which hides everything that looks like a secret, whatever the settings say. */
export function exportGuard(env: Environment, secrets: readonly Secret[], replacement: string): SecretGuard {
  return createSecretGuard({ ...guarded(env, secrets, { mask: true, unmasked: [] }), replacement });
}

function maskedHistory(
  history: SessionHistory,
  masked: (events: readonly Event[]) => readonly Event[],
): SessionHistory {
  return {
    recent: async (id) => {
      const recent = await history.recent(id);
      return recent && { ...recent, events: masked(recent.events) };
    },
    earlier: (...which) => masked(history.earlier(...which)),
  };
}

/** Masks the pages of a session with one guard as long as each follows the one before: making a guard costs more than
 * to mask a page, and a secret keeps its number. */
function maskedPages({ page }: Pick<Store, 'page'>, source: SecretSource): Store['page'] {
  let last: { readonly id: string; readonly end: number; readonly guard: SecretGuard } | null = null;
  return async (id, seq, count) => {
    const events = await page(id, seq, count);
    const guard = last?.id === id && last.end === seq ? last.guard : sessionGuard(source);
    guard.recall(events);
    last = { id, end: events.at(-1)?.seq ?? seq, guard };
    return events.map((event) => guard.event(event));
  };
}

/** Wraps a store. Every text that is written beside events is masked here, whichever command writes it: titles and queued
 * messages. What is read is masked too, since older versions stored some secrets. */
export function guardedStore(store: Store, source: SecretSource): Store {
  const { guard } = source;
  const masked = (events: readonly Event[]): readonly Event[] => {
    const own = sessionGuard(source, events);
    return events.map((event) => own.event(event));
  };
  const titled = <T extends { readonly title: string | null }>(row: T): T =>
    row.title === null ? row : { ...row, title: guard.text(row.title) };
  const named = async <T extends { readonly title: string | null }>(found: Promise<T | null>): Promise<T | null> => {
    const row = await found;
    return row && titled(row);
  };
  return withOverrides(store, {
    ...(store.history ? { history: maskedHistory(store.history, masked) } : {}),
    load: async (id) => masked(await store.load(id)),
    tail: async (id, count) => masked(await store.tail(id, count)),
    page: maskedPages(store, source),
    createSession: (row) => store.createSession(titled(row)),
    fork: (parentId, row, uptoSeq) => store.fork(parentId, titled(row), uptoSeq),
    adopt: (row, events, blobs) => store.adopt(titled(row), events, blobs),
    update: (id, change) =>
      store.update(id, change.title === undefined ? change : { ...change, title: guard.text(change.title) }),
    setQueue: (id, messages) =>
      store.setQueue(
        id,
        messages.map((message) => guard.deep(message)),
      ),
    keepMessage: (id, message) => store.keepMessage(id, { ...message, text: guard.text(message.text) }),
    session: (id) => named(store.session(id)),
    newest: (cwd) => named(store.newest(cwd)),
    newestOfDirectory: (id) => named(store.newestOfDirectory(id)),
    list: async (...scope) =>
      (await store.list(...scope)).map((row) => ({
        ...titled(row),
        prompt: row.prompt === null ? null : guard.text(row.prompt),
      })),
    find: async (text) => {
      const match = await store.find(text);
      if (match.found === 'none') return { ...match, nearest: match.nearest.map((name) => guard.text(name)) };
      return match.found === 'one'
        ? { ...match, session: titled(match.session) }
        : { ...match, sessions: match.sessions.map(titled) };
    },
    search: async (...asked) =>
      (await store.search(...asked)).map((hit) => {
        const snippet = guard.text(hit.snippet);
        return titled(snippet === hit.snippet ? hit : { ...hit, snippet, matches: [] });
      }),
  });
}

/** Seals contents for undo that hold secrets: only this installation's key opens them. */
export function blobSeal(source: SecretSource): BlobSeal {
  const holds = (text: string): boolean => source.guard.text(text) !== text;
  return {
    key: () => createHmac('sha256', source.keys.ofInstallation()).update('contents kept for undo').digest(),
    holdsSecret: (bytes) => {
      const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      return holds(buffer.toString('utf8')) || (buffer.includes(0) && holds(buffer.toString('utf16le')));
    },
  };
}

const keyBytes = 32;

/** Returns this installation's key from its file (0600), which the first use makes. Where no file can be written, the
 * key holds for this run. */
export function openSecretKey(folder: string | null): () => Buffer {
  let key: Buffer | null = null;
  return () =>
    (key ??= (folder === null ? null : readKey(join(folder, 'secrets.key'), folder)) ?? randomBytes(keyBytes));
}

function readKey(path: string, folder: string): Buffer | null {
  try {
    return keyIn(path) ?? makeKey(path, folder);
  } catch {
    return null;
  }
}

function keyIn(path: string): Buffer | null {
  try {
    const key = Buffer.from(readFileSync(path, 'utf8').trim(), 'hex');
    return key.length === keyBytes ? key : null;
  } catch {
    return null;
  }
}

/** Writes the key file as a whole. Where two processes make one at the same time, the first stays. */
function makeKey(path: string, folder: string): Buffer | null {
  ensurePrivateDirectory(folder);
  const made = `${path}.${randomBytes(4).toString('hex')}`;
  const file = openSync(made, 'wx', 0o600);
  try {
    writeSync(file, `${randomBytes(keyBytes).toString('hex')}\n`);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  try {
    linkSync(made, path);
  } catch {
    /* somebody was faster, or what is there is no key */
  }
  unlinkSync(made);
  return keyIn(path);
}
