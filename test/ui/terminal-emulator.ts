import xterm from '@xterm/headless';

/** A terminal that keeps every byte it was sent. */
export interface Emulator {
  readonly write: (text: string) => void;
  /** Waits until everything written has been parsed. */
  settle(): Promise<void>;
  resize(columns: number, rows: number): Promise<void>;
  /** Every line of scrollback and screen, wrapped rows joined, trailing blanks cut. */
  lines(): string[];
  /** The rows on the screen as they are seen. */
  screen(): string[];
  cursor(): { readonly row: number; readonly column: number };
  sent(): string;
}

export function createEmulator(columns: number, rows: number): Emulator {
  const terminal = new xterm.Terminal({ cols: columns, rows, scrollback: 100_000, allowProposedApi: true });
  let sent = '';
  const settle = (): Promise<void> => new Promise((done) => { terminal.write('', done); });
  return {
    write: (text) => { sent += text; terminal.write(text); },
    settle,
    resize: async (c, r) => { await settle(); terminal.resize(c, r); },
    lines: () => joined(terminal),
    screen: () => Array.from({ length: terminal.rows }, (_, i) => terminal.buffer.active.getLine(terminal.buffer.active.baseY + i)?.translateToString(true) ?? ''),
    cursor: () => ({ row: terminal.buffer.active.cursorY, column: terminal.buffer.active.cursorX }),
    sent: () => sent,
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
