import { homedir } from 'node:os';
import { type LoadedOnce, loadOnce } from '../core/runtime.js';
import type { Fault } from '../core/provider.js';
import type { Endpoint, KeyCommand } from '../providers/catalog.js';
import { quoteServer } from '../providers/wires/fault.js';
import { createProcessRunner } from '../tools/process/runner.js';

/** The key that a command printed, or one sentence about its failure. */
export type CommandKey = { readonly key: string } | { readonly failure: string };

/** The keys that the `key_command` of a provider prints, in memory only. */
export interface KeyCommands {
  /** Returns the key of a provider: the last one while it is younger than the command's `ttlMs`, else what the command
   * prints now. Two readers at once start the command once. */
  read(provider: string, command: KeyCommand): Promise<CommandKey>;
  /** Forgets a key, because the provider refused it: the next `read` runs the command. */
  forget(provider: string): void;
}

interface Parts {
  readonly run: (command: string) => Promise<CommandKey>;
  /** Receives each key before it is used, so that it is masked from then on. */
  readonly onKey: (provider: string, key: string) => void;
  /** Milliseconds on a clock that only goes forward. */
  readonly now: () => number;
}

interface Kept {
  readonly command: string;
  readonly readAtMs: number;
  readonly key: LoadedOnce<CommandKey>;
}

export function createKeyCommands({ run, onKey, now }: Parts): KeyCommands {
  const kept = new Map<string, Kept>();
  const start = (provider: string, command: string): Kept => {
    const key = loadOnce(async () => {
      const printed = await run(command);
      if ('key' in printed) onKey(provider, printed.key);
      return printed;
    });
    const started = { command, readAtMs: now(), key };
    kept.set(provider, started);
    return started;
  };
  return {
    async read(provider, { command, ttlMs }) {
      const before = kept.get(provider);
      const isFresh = before?.command === command && now() - before.readAtMs < ttlMs;
      const used = isFresh ? before : start(provider, command);
      const printed = await used.key.get();
      if ('failure' in printed && kept.get(provider) === used) kept.delete(provider);
      return printed;
    },
    forget: (provider) => {
      kept.delete(provider);
    },
  };
}

/** Returns the endpoint with the key that its `key_command` prints; the endpoint itself where it has a key or no such
 * command. */
export async function withCommandKey(commands: KeyCommands, endpoint: Endpoint): Promise<Endpoint | Fault> {
  const { keyCommand, provider, label } = endpoint;
  if (keyCommand === undefined) return endpoint;
  const read = await commands.read(provider, keyCommand);
  if ('key' in read) return { ...endpoint, key: read.key };
  return {
    code: 'auth',
    message: `The key command of ${label} failed: ${read.failure}`,
    hint: `correct providers.${provider}.key_command in your settings`,
  };
}

/** A password manager may ask the user in a window of its own. */
const longestMs = 60_000;
const maxBytes = 65_536;

/** Runs a key command of the user's settings with `sh`, in the user's environment and home directory. A failure quotes
 * its standard error, masked, and never its output. */
export async function runKeyCommand(
  command: string,
  env: Readonly<Record<string, string | undefined>>,
): Promise<CommandKey> {
  const processes = createProcessRunner({ marker: { name: '_AGENT_KEY_COMMAND', value: String(process.pid) } });
  const variables = Object.fromEntries(
    Object.entries(env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );
  const opened = await processes.open({
    file: 'sh',
    args: ['-c', command],
    cwd: env['HOME'] ?? homedir(),
    env: variables,
    sandbox: 'off',
  });
  if (!opened.started) return { failure: `sh could not be started (${opened.error})` };
  const reading = Promise.all([readText(opened.output), readText(opened.errors)]);
  opened.input.end();
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    void opened.end();
  }, longestMs);
  const { code } = await opened.exited;
  clearTimeout(timer);
  const [output, errors] = await reading;
  await opened.end();
  if (isLate) return { failure: `it took longer than ${longestMs / 1000} s` };
  const said = quoteServer(errors.trim().split('\n', 1)[0] ?? '', [output.trim()], 200);
  if (code !== 0) return { failure: `it ended with ${code ?? 'a signal'}${said === '' ? '' : `: ${said}`}` };
  return keyIn(output.trim());
}

function keyIn(printed: string): CommandKey {
  if (printed === '') return { failure: 'it printed nothing' };
  return /^[\u0021-\u007e]+$/.test(printed)
    ? { key: printed }
    : { failure: 'it printed more than a key: it must print the key alone, on one line' };
}

async function readText(stream: AsyncIterable<Buffer | string>): Promise<string> {
  let text = '';
  for await (const chunk of stream) if (text.length < maxBytes) text += chunk.toString();
  return text;
}
