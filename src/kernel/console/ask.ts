import { createInterface } from 'node:readline';
import { createInterface as createPrompt } from 'node:readline/promises';
import { sanitize } from '../core/sanitize.js';
import { createHiddenLine } from './hidden-line.js';

/** Asks on standard error, so that standard output holds data only, and returns the line that was typed. Rejects where
 * `signal` is aborted. */
export async function askLine(question: string, signal?: AbortSignal): Promise<string> {
  const lines = createPrompt({ input: process.stdin, output: process.stderr });
  try {
    return await lines.question(sanitize(question), signal ? { signal } : {});
  } finally {
    lines.close();
  }
}

/** Asks on standard error for what the terminal does not show; one line of standard input where that is no terminal.
 * Resolves with null where nothing is answered. */
export async function askHidden(question: string): Promise<string | null> {
  const { stdin } = process;
  if (!stdin.isTTY) return await nextLine(stdin);
  return await new Promise((resolve) => {
    const line = createHiddenLine({
      raw: (on) => stdin.setRawMode(on),
      write: (text) => process.stderr.write(sanitize(text)),
      onDone: () => {
        stdin.off('data', take).pause();
      },
    });
    const take = (chunk: Buffer | string): void => {
      const text = chunk.toString();
      line.take(text);
      // No signal comes of it while the terminal does not echo.
      if (text.includes('\x03')) process.kill(process.pid, 'SIGINT');
    };
    stdin.on('data', take).resume();
    void line.ask(question).then(resolve);
  });
}

/** Returns the next line of an input that is no terminal; null at its end. */
async function nextLine(input: NodeJS.ReadStream): Promise<string | null> {
  if (input.readableEnded) return null;
  return await new Promise((resolve) => {
    const lines = createInterface({ input });
    lines.once('line', (line) => {
      resolve(line.trim() || null);
      lines.close();
    });
    lines.once('close', () => {
      resolve(null);
    });
  });
}
