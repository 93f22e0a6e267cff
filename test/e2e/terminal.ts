import { spawn, type IPty } from '@lydell/node-pty';
import xterm from '@xterm/headless';
import { onTestFinished } from 'vitest';
import { binary, type Place } from './program.js';

/** The built program in a pseudo-terminal, seen through a terminal emulator. */
export interface Screen {
  /** Resolves once what is on the screen (scrollback included) satisfies `test`; rejects with the screen after 40 s. */
  until(test: RegExp): Promise<string>;
  type(text: string): void;
  text(): string;
  /** Every byte the program has written. */
  raw(): string;
  resize(columns: number, rows: number): void;
  /** The lines of scrollback and screen as they were written: wrapped rows are one. */
  lines(): readonly string[];
  readonly exited: Promise<number>;
  readonly pty: IPty;
}

export interface ScreenOptions {
  readonly columns?: number;
  readonly rows?: number;
  readonly env?: Readonly<Record<string, string>>;
}

export function openScreen(at: Place, args: readonly string[] = [], options: ScreenOptions = {}): Screen {
  return openProgram(at, process.execPath, [binary, ...args], options);
}

/** Any program in a pseudo-terminal. */
export function openProgram(at: Place, program: string, args: readonly string[], options: ScreenOptions = {}): Screen {
  const { columns = 100, rows = 30 } = options;
  const terminal = new xterm.Terminal({ cols: columns, rows, scrollback: 100_000, allowProposedApi: true });
  const pty = spawn(program, [...args], {
    name: 'xterm-256color',
    cols: columns,
    rows,
    cwd: at.work,
    env: { ...at.env, CI: 'false', ...options.env },
  });
  let raw = '';
  const waiting = new Set<() => void>();
  /** Reading the whole screen takes long where much was printed: looked at when it is quiet for a moment, or often
   * enough. */
  let pending: NodeJS.Timeout | null = null;
  const look = (): void => {
    pending ??= setTimeout(() => {
      pending = null;
      for (const check of waiting) check();
    }, 10);
  };
  pty.onData((chunk) => {
    raw += chunk;
    terminal.write(chunk, look);
  });
  terminal.onData((reply) => {
    pty.write(reply);
  });
  const exited = new Promise<number>((resolve) => {
    pty.onExit(({ exitCode }) => {
      resolve(exitCode);
    });
  });
  onTestFinished(() => {
    pty.kill('SIGKILL');
  });
  const text = (): string => {
    const {
      buffer: { active },
    } = terminal;
    return Array.from({ length: active.length }, (_, row) => active.getLine(row)?.translateToString(true) ?? '')
      .join('\n')
      .trimEnd();
  };
  return {
    pty,
    exited,
    text,
    lines: () => joined(terminal.buffer.active),
    resize: (toColumns, toRows) => {
      terminal.resize(toColumns, toRows);
      pty.resize(toColumns, toRows);
    },
    raw: () => raw,
    type: (keys) => {
      pty.write(keys);
    },
    until: (pattern) =>
      new Promise((resolve, reject) => {
        const check = (): void => {
          if (!pattern.test(text())) return;
          clearTimeout(timer);
          waiting.delete(check);
          resolve(text());
        };
        const timer = setTimeout(() => {
          waiting.delete(check);
          reject(new Error(`${String(pattern)} never came. The screen:\n${text()}`));
        }, 40_000);
        waiting.add(check);
        check();
      }),
  };
}

function joined(buffer: xterm.IBuffer): readonly string[] {
  const out: string[] = [];
  for (let row = 0; row < buffer.length; row++) {
    const line = buffer.getLine(row);
    const text = line?.translateToString(buffer.getLine(row + 1)?.isWrapped !== true) ?? '';
    if (line?.isWrapped === true && out.length > 0) out.push((out.pop() ?? '') + text);
    else out.push(text);
  }
  return out.map((line) => line.trimEnd());
}
