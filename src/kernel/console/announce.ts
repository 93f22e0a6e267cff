import { randomUUID } from 'node:crypto';
import { firstLine, spelledLine } from '../core/text.js';
import { ownKeys, secretVariables } from '../secrets/known-secrets.js';
import { createProcessRunner } from '../tools/process/runner.js';
import type { Settings } from './run-settings.js';
import type { DesktopNotification } from './slash-command.js';
import type { ProcessRunner } from '../tools/process/runner.js';

export interface AnnounceOptions {
  /** `tasks.notify_command`: program and arguments; empty where none is set. */
  readonly command: readonly string[];
  /** The environment of the program, without keys of providers. */
  readonly env: Readonly<Record<string, string>>;
  readonly platform: NodeJS.Platform;
  /** A directory that exists. */
  readonly cwd: string;
  readonly processes: Pick<ProcessRunner, 'run' | 'open'>;
}

/** A notification is a sentence; the inbox has the rest. */
const maxCharacters = 300;
/** The time limit of a program that delivers a notification. */
const longestMs = 10_000;

/** Notifies the user by their own program, else by the desktop of this machine. `signal` ends the program. Returns the
 * reason if the notification could not be delivered, else null. Never rejects. */
export async function announce(
  options: AnnounceOptions,
  said: DesktopNotification,
  signal: AbortSignal = new AbortController().signal,
): Promise<string | null> {
  const [own, ...args] = options.command;
  if (own !== undefined) return await toOwnProgram(options, [own, ...args], `${said.title}\n${said.text}\n`, signal);
  const argv = desktopCommand(options, said);
  if (argv === null) return 'there is no desktop here, and tasks.notify_command is not set';
  const [file = '', ...rest] = argv;
  const { env, cwd, processes } = options;
  const result = await processes.run({
    file,
    args: rest,
    cwd,
    env,
    sandbox: 'off',
    signal,
    timeoutMs: longestMs,
    maxTotalBytes: 65_536,
    onOutput: () => undefined,
  });
  if (result.ended === 'not_started') return `${file} could not be started: ${result.error}`;
  return result.exitCode === 0 ? null : `${file} ended with exit code ${result.exitCode}`;
}

/** Returns the command of the desktop, or null where there is none. The text is one line and no markup. */
export function desktopCommand(
  { env, platform }: Pick<AnnounceOptions, 'env' | 'platform'>,
  said: DesktopNotification,
): readonly string[] | null {
  const named = said.title === 'agent' ? said.title : `agent: ${said.title}`;
  const title = spelledLine(firstLine(named, maxCharacters));
  const text = spelledLine(firstLine(said.text, maxCharacters));
  if (platform === 'darwin') {
    const script = ['on run argv', 'display notification (item 2 of argv) with title (item 1 of argv)', 'end run'];
    return ['osascript', ...script.flatMap((line) => ['-e', line]), title, text];
  }
  const hasDesktop = [env.DISPLAY, env.WAYLAND_DISPLAY, env.DBUS_SESSION_BUS_ADDRESS].some(Boolean);
  if (platform === 'win32' || !hasDesktop) return null;
  return ['notify-send', '--app-name=agent', '--', title, withoutMarkup(text)];
}

/** The body of a notification is markup by the specification of the desktops. */
function withoutMarkup(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

async function toOwnProgram(
  { env, cwd, processes }: AnnounceOptions,
  [file = '', ...args]: readonly string[],
  text: string,
  signal: AbortSignal,
): Promise<string | null> {
  const child = await processes.open({ file, args, cwd, env, sandbox: 'off' });
  if (!child.started) return `${file} could not be started: ${child.error}`;
  child.output.resume();
  child.errors.resume();
  child.input.end(text);
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(resolve, longestMs, null);
    signal.addEventListener('abort', () => resolve(null), { once: true });
    if (signal.aborted) resolve(null);
  });
  const exit = await Promise.race([child.exited, late]);
  clearTimeout(timer);
  if (exit === null) {
    await child.end();
    return signal.aborted ? `${file} was stopped` : `${file} did not finish within ${longestMs / 1000} s`;
  }
  return exit.code === 0 ? null : `${file} ended with ${exit.signal ?? `exit code ${exit.code}`}`;
}

/** Returns a function that notifies the user by `tasks.notify_command`, else by the desktop. It resolves to the reason
 * of a failure, or null. */
export function desktop({
  config,
  env,
  home,
}: Pick<Settings, 'config' | 'env' | 'home'>): (
  said: DesktopNotification,
  signal?: AbortSignal,
) => Promise<string | null> {
  const secret = new Set(secretVariables(env, ownKeys(config)));
  const processes = createProcessRunner({ marker: { name: '_AGENT_RUN', value: randomUUID() } });
  const options = {
    command: config.tasks.notifyCommand,
    env: Object.fromEntries(
      Object.entries(env).flatMap(([name, value]) => (value === undefined || secret.has(name) ? [] : [[name, value]])),
    ),
    platform: process.platform,
    cwd: home,
    processes,
  };
  return (said, signal) => announce(options, said, signal);
}
