import { isWsl } from '../../kernel/disk/wsl.js';
import type { Settings } from '../../kernel/console/run-settings.js';
import type { ProcessRunner } from '../../kernel/tools/process/runner.js';

const longestMs = 10_000;
const mostPrinted = 64 * 1024;

/** The place that has taken a copied text: the paste buffer of tmux, or the clipboard of the system. */
export type CopyTarget = 'tmux' | 'system';

interface CopyProgram {
  readonly target: CopyTarget;
  readonly file: string;
  readonly args: readonly string[];
  readonly input: (text: string) => Uint8Array;
}

/** Reads base64, because clip.exe and PowerShell read other bytes in the code page of the console. Sources:
 * microsoft/WSL#4852 and #3716 (bytes), github/copilot-cli#2571 (a byte order mark becomes a part of the text). */
const setClipboard =
  'Set-Clipboard -Value ([Text.Encoding]::UTF8.GetString([Convert]::FromBase64String([Console]::In.ReadToEnd())))';

/** Returns the program that takes a copied text here, or null if only the terminal can. By default (`set-clipboard
 * external`) tmux ignores OSC 52 of the programs inside it, while `load-buffer -w` (tmux 3.2) works with each setting.
 * Terminal of macOS knows no OSC 52. Over SSH, the clipboard of this machine is not that of the user. */
export function copyProgram(env: Settings['env'], platform: NodeJS.Platform): CopyProgram | null {
  const asText = (text: string): Uint8Array => Buffer.from(text);
  if (env.TMUX) return { target: 'tmux', file: 'tmux', args: ['load-buffer', '-w', '-'], input: asText };
  if (env.SSH_CONNECTION) return null;
  if (platform === 'darwin') return { target: 'system', file: 'pbcopy', args: [], input: asText };
  if (!isWsl(env)) return null;
  const args = ['-NoProfile', '-NonInteractive', '-Command', setClipboard];
  const input = (text: string): Uint8Array => Buffer.from(Buffer.from(text).toString('base64'));
  return { target: 'system', file: 'powershell.exe', args, input };
}

/** Sends a text to such a program. Returns where it has gone, or null if the program did not take it. Never rejects. */
export async function copyWith(
  program: CopyProgram,
  { processes }: { readonly processes: Pick<ProcessRunner, 'run'> },
  { env, cwd }: Pick<Settings, 'env' | 'cwd'>,
  text: string,
): Promise<CopyTarget | null> {
  const result = await processes.run({
    file: 'sh',
    // Standard input of a command is empty, so the text comes through descriptor 3.
    args: ['-c', 'exec "$@" <&3 3<&-', 'sh', program.file, ...program.args],
    cwd,
    // pbcopy reads its input in the encoding of the locale, which a program of the desktop may not have.
    env: { ...needed(env), ...(program.file === 'pbcopy' ? { LC_CTYPE: 'UTF-8' } : {}) },
    sandbox: 'off',
    signal: new AbortController().signal,
    timeoutMs: longestMs,
    maxTotalBytes: mostPrinted,
    input: program.input(text),
    onOutput: () => undefined,
  });
  return result.ended === 'exit' && result.exitCode === 0 ? program.target : null;
}

/** Returns the variables that such a program needs. They contain no key. */
function needed(env: Settings['env']): Readonly<Record<string, string>> {
  const names = ['PATH', 'HOME', 'LANG', 'TERM', 'TMUX', 'TMUX_PANE', 'TMUX_TMPDIR', 'WSL_INTEROP'];
  return Object.fromEntries(names.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])));
}
