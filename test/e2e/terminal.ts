import { spawn, type IPty } from '@lydell/node-pty';
import xterm from '@xterm/headless';
import { onTestFinished } from 'vitest';
import { binary, type Place } from './program.js';

/** The built program in a pseudo-terminal, seen through a terminal emulator. */
export interface Screen {
  /** Resolves once what is on the screen (scrollback included) satisfies `test`; rejects with the screen after 15 s. */
  until(test: RegExp): Promise<string>;
  type(text: string): void;
  text(): string;
  /** Every byte the program has written. */
  raw(): string;
  readonly exited: Promise<number>;
  readonly pty: IPty;
}

export function openScreen(at: Place, args: readonly string[] = [], options: { readonly columns?: number; readonly rows?: number; readonly env?: Readonly<Record<string, string>> } = {}): Screen {
  const { columns = 100, rows = 30 } = options;
  const terminal = new xterm.Terminal({ cols: columns, rows, scrollback: 10_000, allowProposedApi: true });
  const pty = spawn(process.execPath, [binary, ...args], { name: 'xterm-256color', cols: columns, rows, cwd: at.work, env: { ...at.env, CI: 'false', ...options.env } });
  let raw = '';
  const waiting = new Set<() => void>();
  pty.onData((chunk) => {
    raw += chunk;
    terminal.write(chunk, () => { for (const check of waiting) check(); });
  });
  terminal.onData((reply) => { pty.write(reply); });
  const exited = new Promise<number>((resolve) => { pty.onExit(({ exitCode }) => { resolve(exitCode); }); });
  onTestFinished(() => { pty.kill('SIGKILL'); });
  const text = (): string => {
    const { buffer: { active } } = terminal;
    return Array.from({ length: active.length }, (_, row) => active.getLine(row)?.translateToString(true) ?? '').join('\n').trimEnd();
  };
  return {
    pty, exited, text, raw: () => raw,
    type: (keys) => { pty.write(keys); },
    until: (pattern) => new Promise((resolve, reject) => {
      const check = (): void => {
        if (!pattern.test(text())) return;
        clearTimeout(timer);
        waiting.delete(check);
        resolve(text());
      };
      const timer = setTimeout(() => {
        waiting.delete(check);
        reject(new Error(`${String(pattern)} never came. The screen:\n${text()}`));
      }, 15_000);
      waiting.add(check);
      check();
    }),
  };
}
