import { homedir } from 'node:os';
import { isWsl } from '../disk/wsl.js';
import { createProcessRunner, type ProcessRunner } from '../tools/process/runner.js';
import type { Keyring } from './stored-keys.js';

type Environment = Readonly<Record<string, string | undefined>>;

/** The environment variables that these programs need: the bus, the display and the language; no key. */
const passed = ['HOME', 'PATH', 'USER', 'LOGNAME', 'LANG', 'DISPLAY', 'WAYLAND_DISPLAY', 'XAUTHORITY'] as const;
const passedToo = [
  ...['DBUS_SESSION_BUS_ADDRESS', 'XDG_RUNTIME_DIR', 'XDG_DATA_DIRS', 'XDG_CURRENT_DESKTOP', 'WSL_INTEROP'],
] as const;

/** A locked keyring asks the user in a window of its own. */
const longestMs = 60_000;
const maxBytes = 65_536;
const service = 'agent-shell';

interface Ended {
  readonly code: number | null;
  readonly output: string;
  readonly errors: string;
}

/** A program for the keyring of one system. The key goes over standard input: other users may read arguments. */
interface Program {
  readonly file: string;
  read(provider: string): readonly string[];
  write(provider: string, key: string): { readonly args: readonly string[]; readonly input: string };
  remove(provider: string): readonly string[];
  /** Returns true if `read` or `remove` ended with the code for a missing key. */
  isMissing(ended: Ended): boolean;
}

/** Source: secret-tool(1) of libsecret 0.21. */
const secretTool: Program = {
  file: 'secret-tool',
  read: (provider) => ['lookup', 'service', service, 'provider', provider],
  write: (provider, key) => ({
    args: ['store', `--label=agent: ${provider}`, 'service', service, 'provider', provider],
    input: key,
  }),
  remove: (provider) => ['clear', 'service', service, 'provider', provider],
  isMissing: ({ code, errors }) => code === 1 && errors === '',
};

/** Source: security(1) of macOS: `-i` reads commands from standard input; 44 is errSecItemNotFound. */
const security: Program = {
  file: 'security',
  read: (provider) => ['find-generic-password', '-s', service, '-a', provider, '-w'],
  write: (provider, key) => ({
    args: ['-i'],
    input: `add-generic-password -U -s ${service} -a ${quoted(provider)} -w ${quoted(key)}\n`,
  }),
  remove: (provider) => ['delete-generic-password', '-s', service, '-a', provider],
  isMissing: ({ code }) => code === 44,
};

function quoted(text: string): string {
  return `"${text.replace(/["\\]/g, '\\$&')}"`;
}

/** Opens the keyring of this system: libsecret's (`secret-tool`), or that of macOS (`security`). */
export function openKeyring(env: Environment, platform: NodeJS.Platform = process.platform): Keyring {
  const program = platform === 'darwin' ? security : secretTool;
  const ask = (args: readonly string[], input = ''): ReturnType<typeof runProgram> =>
    runProgram(program.file, args, { input, env });
  const failed = ({ code, errors }: Ended): string =>
    errors === '' ? `${program.file} ended with ${code ?? 'a signal'}` : (errors.split('\n', 1)[0] ?? '');
  return {
    read: async (provider) => {
      const ended = await ask(program.read(provider));
      if ('failure' in ended) return ended;
      if (ended.code === 0) return { key: ended.output.trim() === '' ? null : ended.output.trim() };
      return program.isMissing(ended) ? { key: null } : { failure: failed(ended) };
    },
    write: async (provider, key) => {
      const { args, input } = program.write(provider, key);
      const ended = await ask(args, input);
      if ('failure' in ended) return ended.failure;
      // `security -i` ends with 0 whatever became of its commands, and says what went wrong.
      return ended.code === 0 && (program !== security || ended.errors === '') ? null : failed(ended);
    },
    remove: async (provider) => {
      const ended = await ask(program.remove(provider));
      if ('failure' in ended) return ended.failure;
      return ended.code === 0 || program.isMissing(ended) ? null : failed(ended);
    },
  };
}

/** Opens a page in the browser of the system. False where there is none to be seen. */
export async function openInBrowser(
  url: string,
  env: Environment,
  platform: NodeJS.Platform = process.platform,
): Promise<boolean> {
  const processes = createProcessRunner({ marker: { name: '_AGENT_BROWSER', value: String(process.pid) } });
  for (const [file, ...args] of browsers(env, platform)) {
    const opened = await openProcess(processes, file, [...args, url], env);
    if (!opened.started) continue;
    opened.input.end();
    opened.output.resume();
    opened.errors.resume();
    return true;
  }
  return false;
}

/** Returns the programs that open a page, the first that is there. In WSL, the browser of Windows is the user's. */
function browsers(env: Environment, platform: NodeJS.Platform): readonly (readonly [string, ...string[]])[] {
  if (platform === 'darwin') return [['open']];
  // Unlike `cmd.exe /c start`, neither gives a meaning to a `&` in an address.
  if (isWsl(env)) return [['wslview'], ['rundll32.exe', 'url.dll,FileProtocolHandler']];
  return (env.DISPLAY ?? env.WAYLAND_DISPLAY ?? '') === '' ? [] : [['xdg-open']];
}

function openProcess(
  processes: ProcessRunner,
  file: string,
  args: readonly string[],
  env: Environment,
): ReturnType<ProcessRunner['open']> {
  const own = Object.fromEntries(
    [...passed, ...passedToo].flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])),
  );
  return processes.open({ file, args, cwd: env.HOME ?? homedir(), env: own, sandbox: 'off' });
}

/** Runs a program that ends by itself. A failure is one sentence. */
async function runProgram(
  file: string,
  args: readonly string[],
  { input, env }: { readonly input: string; readonly env: Environment },
): Promise<Ended | { readonly failure: string }> {
  const processes = createProcessRunner({ marker: { name: '_AGENT_KEYRING', value: String(process.pid) } });
  const opened = await openProcess(processes, file, args, env);
  if (!opened.started) return { failure: opened.error === 'ENOENT' ? `there is no ${file} here` : opened.error };
  const read = Promise.all([readText(opened.output), readText(opened.errors)]);
  opened.input.end(input);
  const timer = setTimeout(() => void opened.end(), longestMs);
  const { code } = await opened.exited;
  clearTimeout(timer);
  const [output, errors] = await read;
  await opened.end();
  return { code, output, errors: errors.trim() };
}

async function readText(stream: AsyncIterable<Buffer | string>): Promise<string> {
  let text = '';
  for await (const chunk of stream) if (text.length < maxBytes) text += chunk.toString();
  return text;
}
