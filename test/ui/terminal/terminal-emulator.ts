import xterm from '@xterm/headless';
import type { Reflow } from '../../../src/ui/terminal/reflow.js';

/** A terminal that keeps every byte it was sent. */
export interface Emulator {
  readonly write: (text: string) => void;
  /** Waits until everything written has been parsed, also what the program writes because of an answer. */
  settle(): Promise<void>;
  resize(columns: number, rows: number): Promise<void>;
  /** Every line of scrollback and screen, wrapped rows joined, trailing blanks cut. */
  lines(): string[];
  /** The rows on the screen as they are seen. */
  screen(): string[];
  /** True if the last cell of a row on the screen has a ground and holds nothing. */
  isFilled(row: number): boolean;
  cursor(): { readonly row: number; readonly column: number };
  sent(): string;
  /** What the terminal answers to questions. */
  onReply(listener: (reply: string) => void): void;
}

/** `reflow`: what it does with its rows when its width changes; xterm.js leaves the cursor's line alone unless told not
 * to. */
export function createEmulator(columns: number, rows: number, reflow: Reflow = 'all but the cursor'): Emulator {
  const terminal = new xterm.Terminal({
    cols: columns,
    rows,
    scrollback: 100_000,
    allowProposedApi: true,
    reflowCursorLine: reflow === 'all',
    windowsMode: reflow === 'none',
  });
  let sent = '';
  const settle = async (): Promise<void> => {
    for (let parsed = -1; parsed !== sent.length;) {
      parsed = sent.length;
      await new Promise<void>((done) => {
        terminal.write('', done);
      });
    }
  };
  return {
    write: (text) => {
      sent += text;
      terminal.write(text);
    },
    settle,
    resize: async (c, r) => {
      await settle();
      terminal.resize(c, r);
    },
    lines: () => joined(terminal),
    screen: () =>
      Array.from(
        { length: terminal.rows },
        (_, i) => terminal.buffer.active.getLine(terminal.buffer.active.baseY + i)?.translateToString(true) ?? '',
      ),
    isFilled: (row) => {
      const line = terminal.buffer.active.getLine(terminal.buffer.active.baseY + row);
      const cell = line?.getCell(terminal.cols - 1);
      return cell !== undefined && !cell.isBgDefault() && cell.getChars() === '';
    },
    cursor: () => ({ row: terminal.buffer.active.cursorY, column: terminal.buffer.active.cursorX }),
    sent: () => sent,
    onReply: (listener) => {
      terminal.onData(listener);
    },
  };
}

function joined(terminal: xterm.Terminal): string[] {
  const out: string[] = [];
  const buffer = terminal.buffer.active;
  for (let i = 0; i < buffer.length; i++) {
    const line = buffer.getLine(i);
    if (!line) continue;
    const next = buffer.getLine(i + 1);
    const text = line.translateToString(next?.isWrapped !== true);
    if (line.isWrapped && out.length > 0) out[out.length - 1] += text;
    else out.push(text);
  }
  return out.map((line) => line.trimEnd());
}
