import { withCommandKey } from '../kernel/secrets/key-commands.js';
import {
  builtInPresets,
  findKey,
  keyNames,
  mergePresets,
  type Endpoint,
  type Preset,
  type ProviderChoice,
  resolveProvider,
} from '../kernel/providers/catalog.js';
import {
  checkKey,
  findLocalServers,
  type ListedModel,
  listModels,
  type LocalServer,
} from '../kernel/providers/discover.js';
import { findModel, knownModels } from '../kernel/providers/models.js';
import type { HiddenQuestion } from '../kernel/console/slash-command.js';
import type { Picking, PickItem } from '../kernel/console/slash-command.js';
import { CliError, exit } from '../kernel/console/command.js';
import type { Settings } from '../kernel/console/run-settings.js';
import { beginSignIn, codeIn } from './browser-sign-in.js';

/** The prompts that connecting a model needs, on the screen or line by line. */
export interface Asking {
  pick<T>(picking: Picking<T>): Promise<T | null>;
  hidden(question: HiddenQuestion): Promise<string | null>;
  say(level: 'info' | 'warn' | 'error', text: string): void;
  /** Text to copy: its lines are not broken. */
  show(text: string): void;
}

/** The dependencies of connecting a model. */
export interface Connecting {
  readonly asking: Asking;
  readonly settings: Settings;
  /** A provider with all that the settings say of it. */
  choice(provider: string, model: string): Promise<ProviderChoice>;
  /** Opens a page in the browser; false where there is none. */
  browse(url: string): Promise<boolean>;
  /** True if the process ends after connecting: a key that cannot be stored is then a failure, because nothing can use
   * it. */
  readonly ends: boolean;
}

/** The request of the user. `manual`: the browser runs on another machine, so the user pastes its code. */
export interface Wanted {
  readonly provider: string | null;
  readonly manual: boolean;
  /** Null: it is picked from the list. */
  readonly model: string | null;
  /** The model that is used now; it is selected in the list of its provider. */
  readonly current?: ConnectedModel;
  /** The heading of the list of providers. */
  readonly title: string;
}

/** The first choice: a server on this machine, a key, or a sign-in in the browser. */
type Way =
  | { readonly by: 'server'; readonly server: LocalServer }
  | { readonly by: 'key' | 'browser'; readonly name: string };

export interface ConnectedModel {
  readonly provider: string;
  /** Null: none was chosen. */
  readonly model: string | null;
}

/** Connects a model: a provider, its key, which is checked and kept, and a model from its own list. Null where the
 * person leaves. */
export async function connectModel(d: Connecting, wanted: Wanted): Promise<ConnectedModel | null> {
  const way = await chooseWay(d, wanted);
  if (way === null) return null;
  const server = way.by === 'server' ? way.server : null;
  const endpoint = server?.endpoint ?? (await reach(d, way, wanted.manual));
  if (endpoint === null) return null;
  return { provider: endpoint.provider, model: wanted.model ?? (await pickModel(d, endpoint, wanted, server?.models)) };
}

async function reach(d: Connecting, way: Way, manual: boolean): Promise<Endpoint | null> {
  if (way.by === 'server') return way.server.endpoint;
  return way.by === 'browser' ? await signIn(d, way.name, manual) : await withKey(d, way.name);
}

/** Asks for another key of a provider, until one is right. False where the user leaves. */
export async function enterKey(d: Connecting, provider: string, why: string): Promise<boolean> {
  return (await typedKey(d, provider, why)) !== null;
}

function presetsOf({ settings }: Connecting): Readonly<Record<string, Preset>> {
  return mergePresets(builtInPresets, settings.config.provider.custom);
}

async function chooseWay(d: Connecting, { provider, manual, title }: Wanted): Promise<Way | null> {
  const { env, keys, config } = d.settings;
  const presets = presetsOf(d);
  const servers = (
    await findLocalServers({ env, keys: keys.all(), presets: builtInPresets, userProviders: config.provider.custom })
  ).filter(({ models }) => models.length > 0);
  if (provider !== null) {
    const server = servers.find(({ endpoint }) => endpoint.provider === provider);
    if (server) return { by: 'server', server };
    return { by: manual && presets[provider]?.sign_in ? 'browser' : 'key', name: provider };
  }
  const found = servers.map((server): PickItem<Way> => ({
    label: server.endpoint.label,
    detail: `runs on this machine: ${server.models.map(({ id }) => id).join(', ')}`,
    value: { by: 'server', server },
  }));
  const named = Object.entries(presets)
    .filter(([name, { api }]) => api !== 'offline' && !servers.some(({ endpoint }) => endpoint.provider === name))
    .toSorted(([, one], [, other]) => Number(other.suggested === true) - Number(one.suggested === true));
  return await d.asking.pick({ title, items: [...found, ...named.flatMap(([name, preset]) => ways(d, name, preset))] });
}

function ways({ settings }: Connecting, name: string, preset: Preset): readonly PickItem<Way>[] {
  const label = preset.label ?? name;
  const key = findKey(name, preset, { env: settings.env, keys: settings.keys.all() });
  const state =
    key !== null
      ? key.variable === null
        ? 'its key is saved'
        : `${key.variable} is set`
      : preset.local
        ? 'does not run on this machine'
        : preset.key_required === false
          ? 'needs no key'
          : 'paste a key';
  const byKey: PickItem<Way> = { label, detail: state, value: { by: 'key', name } };
  const byBrowser: PickItem<Way> = {
    label: `${label}, signing in`,
    detail: 'in the browser; no key to paste',
    value: { by: 'browser', name },
  };
  return preset.sign_in ? [byKey, byBrowser] : [byKey];
}

/** Returns the endpoint of a provider with a key that it takes, or with none where it needs none. */
async function withKey(d: Connecting, name: string): Promise<Endpoint | null> {
  const resolved = resolveProvider(await d.choice(name, 'any'));
  if (!resolved.ok && resolved.problem.kind !== 'key_missing') {
    d.asking.say('error', `${resolved.problem.message}: ${resolved.problem.hint}`);
    return null;
  }
  if (!resolved.ok) return await typedKey(d, name, '');
  const endpoint = await withCommandKey(d.settings.keys.commands, resolved.endpoint);
  if ('code' in endpoint) {
    d.asking.say('error', `${endpoint.message}: ${endpoint.hint ?? ''}`);
    return null;
  }
  return await chosenKey(d, name, endpoint);
}

/** Returns the endpoint with the key that is there or with another one; null if the user cancels. */
async function chosenKey(d: Connecting, name: string, endpoint: Endpoint): Promise<Endpoint | null> {
  const wantsKey = presetsOf(d)[name]?.key_required !== false;
  if (wantsKey && endpoint.key === null) return await typedKey(d, name, '');
  if (endpoint.key === null) return (await isThere(d, endpoint)) ? endpoint : null;
  const other = await wantsOther(d, endpoint);
  if (other === null) return null;
  return other ? await typedKey(d, name, '') : endpoint;
}

/** Asks if the user wants to enter another key than the existing one. Returns null if the user cancels. */
async function wantsOther({ asking }: Connecting, endpoint: Endpoint): Promise<boolean | null> {
  const from = endpoint.keyCommand
    ? 'what its key_command prints'
    : endpoint.keyIsKept
      ? 'the kept one'
      : `of ${endpoint.keyEnv.join(' or ')}`;
  return await asking.pick({
    title: `Key of ${endpoint.label}`,
    items: [
      { label: 'Use the key that is there', detail: from, value: false },
      { label: 'Enter another key', value: true },
    ],
  });
}

async function isThere({ asking, settings }: Connecting, endpoint: Endpoint): Promise<boolean> {
  const listed = await listModels(endpoint, settings.env, 2000);
  if (!listed.ok) asking.say('error', `${listed.message}.`);
  return listed.ok;
}

/** Asks for a key until one is right, or until the user keeps one that cannot be checked. The key is kept then.
 * `why`: nobody has called for it, and this is the reason. */
async function typedKey(d: Connecting, name: string, why: string): Promise<Endpoint | null> {
  const preset = presetsOf(d)[name];
  const { label = name, key_page: page } = preset ?? {};
  const variables = preset && why === '' ? keyNames(preset).join(' or ') : '';
  let rows = [
    why,
    page === undefined ? '' : `Keys are at ${page}`,
    variables === '' ? '' : `Or set ${variables} instead`,
  ].filter((row) => row !== '');
  for (;;) {
    const key = await d.asking.hidden({ title: `Key of ${label}`, rows, asks: why !== '' });
    if (key === null) return null;
    const tried = await tryKey(d, name, key);
    if (tried.endpoint !== null) {
      await keepKey(d, name, { key, isRight: tried.isRight });
      return tried.endpoint;
    }
    if (tried.problem === '') return null;
    rows = [];
    d.asking.say('error', tried.problem);
  }
}

/** `isRight`: the provider has said so. */
type TriedKey =
  | { readonly endpoint: Endpoint; readonly isRight: boolean }
  | { readonly endpoint: null; readonly problem: string };

/** Checks a key. Without an endpoint and without a problem, the user has left. */
async function tryKey(d: Connecting, name: string, key: string): Promise<TriedKey> {
  const choice = await d.choice(name, 'any');
  const resolved = resolveProvider({ ...choice, keys: { ...choice.keys, [name]: { key, entered: true } } });
  if (!resolved.ok) return { endpoint: null, problem: `${resolved.problem.message}.` };
  const { endpoint } = resolved;
  for (;;) {
    const { verdict, message, hint } = await checkKey(endpoint, d.settings.env);
    if (verdict === 'right') return { endpoint, isRight: true };
    const problem = [message, hint].filter((part) => part !== '').join('; ');
    if (verdict === 'wrong') return { endpoint: null, problem };
    d.asking.say('warn', `${problem}.`);
    const next = await d.asking.pick({
      title: 'The key could not be checked',
      items: [
        { label: 'Try again', value: 'again' },
        { label: 'Keep the key unchecked', value: 'keep' },
      ],
    });
    if (next === 'keep') return { endpoint, isRight: false };
    if (next === null) return { endpoint: null, problem: '' };
  }
}

async function keepKey(
  { settings, asking, ends }: Connecting,
  name: string,
  { key, isRight }: { readonly key: string; readonly isRight: boolean },
): Promise<void> {
  const { keys, env, config } = settings;
  keys.enter(name, key);
  const { done, said } = await keys.keep(name, key, config.provider.keyStore);
  if (!done && ends) {
    const other =
      config.provider.keyStore === 'keyring'
        ? '`agent config set key_store file` stores it in a file.'
        : 'A variable can hold it: `agent providers` names them.';
    throw new CliError(exit.failed, said.replace(/\.$/, ''), other);
  }
  asking.say(done ? 'info' : 'warn', `${isRight ? 'Key accepted. ' : ''}${said}`);
  const preset = mergePresets(builtInPresets, config.provider.custom)[name];
  const variable = preset === undefined ? null : findKey(name, preset, { env })?.variable;
  if (variable)
    asking.say(
      'warn',
      `${variable} is set in the environment, too, and wins at the next start: unset it there to use this key.`,
    );
}

const signInMs = 300_000;

/** Gets a key in the browser. */
async function signIn(d: Connecting, name: string, manual: boolean): Promise<Endpoint | null> {
  const places = presetsOf(d)[name]?.sign_in;
  if (places === undefined) return null;
  const { asking, settings } = d;
  const begun = await beginSignIn(places, settings.env);
  try {
    const isOpen = !manual && (await d.browse(begun.page));
    asking.say('info', isOpen ? 'The browser shows this page:' : 'Open this page in a browser:');
    asking.show(begun.page);
    const code = await comingCode(begun, asking, manual);
    if (code === null) return null;
    const got = await begun.key(code);
    if (!got.ok) {
      asking.say('error', `${got.message}.`);
      return null;
    }
    const tried = await tryKey(d, name, got.key);
    if (tried.endpoint === null) asking.say('error', tried.problem);
    else await keepKey(d, name, { key: got.key, isRight: tried.isRight });
    return tried.endpoint;
  } finally {
    begun.close();
  }
}

/** Returns the code that the browser brings, or the one that is pasted, whichever comes first. */
async function comingCode(
  begun: Awaited<ReturnType<typeof beginSignIn>>,
  asking: Asking,
  manual: boolean,
): Promise<string | null> {
  const over = new AbortController();
  const timer = setTimeout(() => {
    asking.say('warn', `Nobody signed in within ${signInMs / 60_000} minutes; /login starts again.`);
    over.abort();
  }, signInMs);
  const question = {
    title: 'Code',
    rows: [
      manual
        ? 'Paste the code, or the address that the browser ends at.'
        : 'Waiting for the browser. Or paste the code.',
    ],
    signal: over.signal,
  };
  const pasted = asking.hidden(question).then((text) => (text === null ? null : codeIn(text)));
  const code = await (manual ? pasted : Promise.race([begun.code(over.signal), pasted]));
  clearTimeout(timer);
  over.abort();
  return code === '' ? null : code;
}

/** Lets the user choose a model of an endpoint; the one that is used now is selected, or its default model. */
async function pickModel(
  { asking, settings }: Connecting,
  endpoint: Endpoint,
  { current: now }: Wanted,
  given?: readonly ListedModel[],
): Promise<string | null> {
  const { provider, label } = endpoint;
  const listed = given ?? (await liveModels(endpoint, settings, asking));
  const preset = mergePresets(builtInPresets, settings.config.provider.custom)[provider];
  const items = listed.map((model) => modelItem(settings, { ...model, provider }));
  if (items.length === 0) return preset?.default_model ?? null;
  const current = (now?.provider === provider ? now.model : null) ?? preset?.default_model;
  return await asking.pick({ title: `Model of ${label}`, items, ...(current ? { current } : {}) });
}

async function liveModels(endpoint: Endpoint, settings: Settings, asking: Asking): Promise<readonly ListedModel[]> {
  const live = await listModels(endpoint, settings.env);
  if (live.ok && live.models.length > 0) return live.models;
  if (!live.ok) asking.say('warn', `${live.message}; the list is what is known here.`);
  const prefix = `${endpoint.provider}/`;
  return Object.keys({ ...knownModels, ...settings.config.provider.models })
    .filter((name) => name.startsWith(prefix))
    .map((name) => ({ id: name.slice(prefix.length), contextWindow: null }));
}

/** A model with its window and its price, as a list shows it. */
export function modelItem(
  { config }: Pick<Settings, 'config'>,
  { provider, id, contextWindow, price: listed }: ListedModel & { readonly provider: string },
): PickItem<string> {
  const facts = findModel(provider, id, config.provider.models);
  const window = facts?.contextWindow ?? contextWindow;
  const price = facts?.price ?? listed;
  const parts = [
    window === null ? '' : `${Math.round(window / 1000)}k`,
    price ? `$${price.input} in, $${price.output} out` : '',
  ];
  return { label: id, detail: parts.filter((part) => part !== '').join(' · '), value: id };
}
