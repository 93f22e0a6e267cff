import { closeSync } from 'node:fs';
import { isatty } from 'node:tty';
import { sanitize } from '../terminal/sanitize.js';

// Standard output and standard error of the command line: nothing else of it names them (test/architecture.test.ts).
// What goes to a terminal from here cannot steer it. The screen of the REPL has a writer of its own.

export function outputIsTerminal(): boolean {
  return process.stdout.isTTY;
}

/** Unknown where standard output is no terminal. */
export function outputColumns(): number | undefined {
  return outputIsTerminal() ? process.stdout.columns : undefined;
}

export function errorsAreTerminal(): boolean {
  return process.stderr.isTTY;
}

/** Text for people, wherever it goes: it may come out of a pager onto a terminal. With `colors`, the caller has made
 * safe what is not its own. */
export function print(text: string, options: { readonly colors: boolean } = { colors: false }): void {
  process.stdout.write(sanitize(text, options));
}

/** Text that programs read too, such as CSV: byte for byte, but on a terminal. */
export function printData(text: string): void {
  process.stdout.write(outputIsTerminal() ? sanitize(text) : text);
}

export function printError(text: string): void {
  process.stderr.write(sanitize(text));
}

/** Asks on standard error, so that standard output stays data, and gives the line that was typed. Rejects where
 * `signal` is aborted. */
export async function askLine(question: string, signal?: AbortSignal): Promise<string> {
  const { createInterface } = await import('node:readline/promises');
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return await lines.question(sanitize(question), signal ? { signal } : {});
  } finally {
    lines.close();
  }
}

/** Standard output as a program that may be piped into `head` needs it. */
export interface Output {
  /** As `printData`. */
  write(text: string): void;
  /** Resolves when all of it was taken by the reader. */
  drained(): Promise<void>;
}

/** `onClosed` is called once when the reader has gone or nothing can be written any more; later writes go nowhere. */
export function openOutput(onClosed: () => void): Output {
  const { stdout } = process;
  let closed = false;
  stdout.on('error', () => {
    if (closed) return;
    closed = true;
    onClosed();
  });
  return {
    write: (text) => {
      if (!closed) printData(text);
    },
    drained: () =>
      new Promise((resolve) => {
        if (closed || stdout.writableLength === 0) resolve();
        else
          stdout.write('', () => {
            resolve();
          });
      }),
  };
}

/** What becomes of what is written to standard output. */
export interface StandardOutput {
  /** Resolves when the reader has taken all of it; with the reason where it could not be written. A reader that has
   * gone away is no such reason. */
  taken(): Promise<Error | null>;
}

const quiet = new Set(['EPIPE', 'ERR_STREAM_DESTROYED', 'EIO']);

/** Watches from the start, so that a reader that goes away or a full disk is no crash. A terminal takes what is written
 * at once. */
export function watchStandardOutput(stream: NodeJS.WriteStream = process.stdout): StandardOutput {
  let failure: NodeJS.ErrnoException | null = null;
  stream.on('error', (error: NodeJS.ErrnoException) => {
    failure ??= error;
  });
  process.stderr.on('error', () => {
    /* nobody can be told */
  });
  const reason = (): Error | null => (failure === null || quiet.has(failure.code ?? '') ? null : failure);
  return {
    taken: () =>
      new Promise((resolve) => {
        failure ??= stream.errored; // its event may still be on the way
        if (stream.isTTY || failure !== null || stream.destroyed) {
          resolve(reason());
          return;
        }
        stream.once('error', () => {
          resolve(reason());
        });
        stream.write('', () => {
          resolve(reason());
        });
      }),
  };
}

/** Tells `lost` when one of the streams that the process was started on fails. */
export function onLostStream(lost: () => void): void {
  for (const stream of [process.stdin, process.stdout, process.stderr]) stream.on('error', lost);
}

/** At the end of the process: lets go of terminals that are gone. Node restores the modes of every terminal it was
 * started on as its last act, and aborts where that fails with anything but EPERM; descriptors that are closed are
 * passed over. Source: Node 20, `node::ResetStdio`. */
export function letGoOfLostTerminals(): void {
  for (const stream of [process.stdin, process.stdout, process.stderr]) {
    if (!stream.isTTY || isatty(stream.fd)) continue;
    try {
      closeSync(stream.fd);
    } catch {
      /* closed already */
    }
  }
}
