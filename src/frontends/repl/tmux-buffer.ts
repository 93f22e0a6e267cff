import type { ProcessRunner } from '../../kernel/tools/process/runner.js';
import type { Settings } from '../../kernel/console/run-settings.js';

const longestMs = 5_000;
const mostPrinted = 64 * 1024;

/** Puts a text into tmux's paste buffer and the clipboard of the terminal around it. By default (`set-clipboard
 * external`) tmux ignores OSC 52 of the programs inside it, while `load-buffer -w` (tmux 3.2) works with each setting.
 * Returns whether tmux took it. Never rejects. */
export async function keepInTmux(
  { processes }: { readonly processes: Pick<ProcessRunner, 'run'> },
  { env, cwd }: Pick<Settings, 'env' | 'cwd'>,
  text: string,
): Promise<boolean> {
  const result = await processes.run({
    file: 'sh',
    // Standard input of a command is empty, so the text comes through descriptor 3.
    args: ['-c', 'exec tmux load-buffer -w - <&3 3<&-'],
    cwd,
    env: needed(env),
    sandbox: 'off',
    signal: new AbortController().signal,
    timeoutMs: longestMs,
    maxTotalBytes: mostPrinted,
    input: Buffer.from(text),
    onOutput: () => undefined,
  });
  return result.ended === 'exit' && result.exitCode === 0;
}

/** Returns the variables that tmux needs to reach its server. They contain no key. */
function needed(env: Settings['env']): Readonly<Record<string, string>> {
  const names = ['PATH', 'HOME', 'LANG', 'TERM', 'TMUX', 'TMUX_PANE', 'TMUX_TMPDIR'];
  return Object.fromEntries(names.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])));
}
