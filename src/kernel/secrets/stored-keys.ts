import { parseJson } from '../core/json.js';
import { readConfigFile, replaceFile } from '../config/settings-file.js';
import { isRecord } from '../core/json.js';
import type { KeptKey, KeptKeys } from '../providers/catalog.js';
import { type CommandKey, createKeyCommands, type KeyCommands } from './key-commands.js';
import { createRefusedKeys, type RefusedKeys } from './refused-keys.js';

/** The keyring of the system. A failure is one sentence. */
export interface Keyring {
  /** Null where it holds none. */
  read(provider: string): Promise<{ readonly key: string | null } | { readonly failure: string }>;
  /** Null: it is kept. */
  write(provider: string, key: string): Promise<string | null>;
  remove(provider: string): Promise<string | null>;
}

/** The keys of providers that the program keeps, in `keys.json` (0600) beside the user's settings or in the keyring of
 * the system:
 *
 *     { "keys": { "openai": { "key": "sk-…" }, "xai": { "keyring": true } } } */
export interface StoredKeys {
  /** The keys as they are now. */
  all(): KeptKeys;
  /** Uses a key from now on in this run, also where a variable holds another. */
  enter(provider: string, key: string): void;
  /** Keeps a key for the next runs. Says where, or why not. */
  keep(provider: string, key: string, place: 'file' | 'keyring'): Promise<KeptAt>;
  /** Forgets a key, in this run too. False: there was none. Throws where it cannot be taken away. */
  forget(provider: string): Promise<boolean>;
  /** Turns that wait, because the key they used was refused. */
  readonly refused: RefusedKeys;
  /** Keys that commands of the user's settings print. */
  readonly commands: KeyCommands;
}

type KeptAt = { readonly done: boolean; readonly said: string };

/** The contents of the key file. `problem`: the file cannot be read, and is not written. */
interface KeyFile {
  readonly keys: Readonly<Record<string, { readonly key: string } | { readonly keyring: true }>>;
  readonly problem: string | null;
}

/** The dependencies for reading and writing keys. */
interface Parts {
  /** The path of `keys.json`. */
  readonly file: string;
  /** Nothing may be written. */
  readonly ephemeral: boolean;
  /** Loads what reaches the keyring of the system. */
  readonly keyring: () => Promise<Keyring>;
  /** Receives each key, so that it is masked from then on. */
  readonly onKey: (provider: string, key: string) => void;
  readonly onProblem: (problem: string) => void;
  /** Runs a `key_command`. */
  readonly runCommand: (command: string) => Promise<CommandKey>;
}

/** Reads the keys. The keyring is asked only where the file says that it holds some. */
export async function openStoredKeys(d: Parts): Promise<StoredKeys> {
  const read = readKeyFile(d.file);
  if (read.problem !== null) d.onProblem(read.problem);
  const keys: Record<string, KeptKey> = { ...plainKeys(read), ...(await keysInKeyring(read, d)) };
  for (const [provider, { key }] of Object.entries(keys)) d.onKey(provider, key);
  return {
    all: () => ({ ...keys }),
    enter: (provider, key) => {
      keys[provider] = { key, entered: true };
      d.onKey(provider, key);
    },
    keep: async (provider, key, place) => {
      try {
        return await keepKey(d, provider, { key, place });
      } catch (error) {
        return { done: false, said: `Not saved: ${error instanceof Error ? error.message : String(error)}` };
      }
    },
    forget: async (provider) => {
      const had = Object.hasOwn(keys, provider);
      const stored = readKeyFile(d.file).keys[provider];
      const failure = stored && 'keyring' in stored ? await (await d.keyring()).remove(provider) : null;
      if (failure !== null) throw new Error(`The keyring still has the key of ${provider}: ${failure}`);
      if (stored) writeKeyFile(d.file, ({ [provider]: _gone, ...others }) => others);
      delete keys[provider];
      return had || stored !== undefined;
    },
    refused: createRefusedKeys(),
    commands: createKeyCommands({ run: d.runCommand, onKey: d.onKey, now: () => performance.now() }),
  };
}

async function keysInKeyring(file: KeyFile, d: Parts): Promise<KeptKeys> {
  const found: Record<string, KeptKey> = {};
  for (const [name] of Object.entries(file.keys).filter(([, entry]) => 'keyring' in entry)) {
    const read = await (await d.keyring()).read(name);
    if ('failure' in read) d.onProblem(`The key of ${name} is in the keyring, which cannot be read: ${read.failure}`);
    else if (read.key !== null) found[name] = { key: read.key };
  }
  return found;
}

async function keepKey(
  d: Parts,
  provider: string,
  { key, place }: { readonly key: string; readonly place: 'file' | 'keyring' },
): Promise<KeptAt> {
  if (d.ephemeral) return { done: false, said: 'Not saved: --ephemeral writes nothing to disk.' };
  const inKeyring = place === 'keyring';
  const failure = inKeyring ? await (await d.keyring()).write(provider, key) : null;
  if (failure !== null) return { done: false, said: `Not saved: ${failure}.` };
  writeKeyFile(d.file, (others) => ({ ...others, [provider]: inKeyring ? { keyring: true } : { key } }));
  return {
    done: true,
    said: inKeyring ? 'Saved to the keyring of the system.' : `Saved to ${d.file}, readable only by you.`,
  };
}

/** Changes the file. Throws where it cannot be read or written: a file that nobody understands stays as it is. */
function writeKeyFile(file: string, change: (before: KeyFile['keys']) => KeyFile['keys']): void {
  const before = readKeyFile(file);
  if (before.problem !== null) throw new Error(before.problem);
  replaceFile(file, `${JSON.stringify({ keys: change(before.keys) }, null, 2)}\n`);
}

/** Returns the keys that stand in the file itself, for messages that are made before anything is opened. */
export function keysInFile(file: string): KeptKeys {
  return plainKeys(readKeyFile(file));
}

/** Returns the providers whose keys are kept, wherever. */
export function keptNames(file: string): readonly string[] {
  return Object.keys(readKeyFile(file).keys);
}

function plainKeys({ keys }: KeyFile): KeptKeys {
  return Object.fromEntries(Object.entries(keys).flatMap(([name, entry]) => ('key' in entry ? [[name, entry]] : [])));
}

function readKeyFile(file: string): KeyFile {
  const none = { keys: {} };
  const found = readConfigFile(file);
  if (found.kind === 'missing') return { ...none, problem: null };
  if (found.kind === 'unreadable') return { ...none, problem: `${file}: ${found.reason}` };
  let value: unknown;
  try {
    value = parseJson(found.text);
  } catch {
    value = null;
  }
  if (!isRecord(value)) return { ...none, problem: `${file} is not a JSON object: its keys are not used.` };
  const entries = Object.entries(isRecord(value.keys) ? value.keys : {});
  return { keys: Object.fromEntries(entries.flatMap(readEntry)), problem: null };
}

function readEntry([name, entry]: readonly [string, unknown]): readonly [string, KeyFile['keys'][string]][] {
  if (!isRecord(entry)) return [];
  if (entry.keyring === true) return [[name, { keyring: true }]];
  return typeof entry.key === 'string' && entry.key.trim() !== '' ? [[name, { key: entry.key.trim() }]] : [];
}
