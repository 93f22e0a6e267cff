import { setTimeout as delay } from 'node:timers/promises';
import xterm from '@xterm/headless';
import type { OpenProcess } from '../../kernel/tools/process/lasting-process.js';
import type { ProcessResult } from '../../kernel/tools/process/runner.js';
import type { TerminalSize } from '../../kernel/tools/process/terminal-command.js';

/** The terminal of a job: its screen, and what types on it. */
export interface JobTerminal {
  /** Resolves once the command has ended; everything it has started is ended with it. */
  readonly result: Promise<ProcessResult>;
  /** Returns the time when it printed last, on the clock of `now`; null before it has printed anything. */
  printedAtMs(): number | null;
  /** Returns false where the command reads too slowly to take more. */
  write(text: string): boolean;
  screen(): Promise<TerminalScreen>;
  /** Returns what is on the screen and above it, as far as it is kept. */
  allText(): Promise<string>;
}

/** The rows that are visible now; those that the terminal has wrapped are joined. Both places count from 1. */
interface TerminalScreen {
  readonly text: string;
  readonly row: number;
  readonly column: number;
}

export const terminalSize: TerminalSize = { columns: 100, rows: 30 };

const keptRows = 1_000;
/** More output than this waits in the process until the screen has caught up. */
const mostUnreadBytes = 1_048_576;
const mostUntypedBytes = 65_536;
/** A process that has ended may have printed more than was read. */
const drainMs = 1_000;

/** Follows the terminal of a process that has just been started. `stop` ends the process. */
export function followTerminal(process: OpenProcess, stop: AbortSignal, now: () => number): JobTerminal {
  const { columns: cols, rows } = terminalSize;
  const terminal = new xterm.Terminal({ cols, rows, scrollback: keptRows, allowProposedApi: true });
  const { input, output, errors, exited } = process;
  let unreadBytes = 0;
  let printedAt: number | null = null;
  output.on('data', (chunk: Buffer) => {
    printedAt = now();
    unreadBytes += chunk.length;
    if (unreadBytes > mostUnreadBytes) output.pause();
    terminal.write(chunk, () => {
      unreadBytes -= chunk.length;
      if (unreadBytes === 0) output.resume();
    });
  });
  // A program may ask its terminal where the cursor is.
  terminal.onData((answer) => {
    if (input.writable) input.write(answer);
  });
  for (const stream of [output, errors]) {
    stream.on('error', () => undefined);
    stream.resume();
  }
  const end = (): void => {
    void process.end();
  };
  stop.addEventListener('abort', end, { once: true });
  if (stop.aborted) end();
  const closed = new Promise<void>((resolve) => {
    output.once('close', resolve);
  });
  const untilRead = async (): Promise<void> => {
    await new Promise<void>((resolve) => {
      terminal.write('', resolve);
    });
  };
  return {
    result: exited.then(async ({ code, signal }): Promise<ProcessResult> => {
      await Promise.race([closed, delay(drainMs, undefined, { ref: false })]);
      await process.end();
      await untilRead();
      stop.removeEventListener('abort', end);
      return { ended: stop.aborted ? 'cancelled' : 'exit', exitCode: code ?? 1, signal, background: 0 };
    }),
    printedAtMs: () => printedAt,
    write: (text) => {
      if (!input.writable || input.writableLength > mostUntypedBytes) return false;
      input.write(text);
      return true;
    },
    screen: async () => {
      await untilRead();
      const { baseY, cursorX, cursorY } = terminal.buffer.active;
      return { text: rowsFrom(terminal, baseY), row: cursorY + 1, column: cursorX + 1 };
    },
    allText: async () => {
      await untilRead();
      return rowsFrom(terminal, 0);
    },
  };
}

function rowsFrom({ buffer }: xterm.Terminal, first: number): string {
  const lines: string[] = [];
  for (let index = first; index < buffer.active.length; index++) {
    const row = buffer.active.getLine(index);
    if (!row) continue;
    // The blanks at the end of a row that is wrapped belong to the text.
    const text = row.translateToString(buffer.active.getLine(index + 1)?.isWrapped !== true);
    if (row.isWrapped && lines.length > 0) lines.push((lines.pop() ?? '') + text);
    else lines.push(text);
  }
  return lines.join('\n').trimEnd();
}
