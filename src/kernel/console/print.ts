import { Console } from 'node:console';
import { Writable } from 'node:stream';
import { closeSync, openSync } from 'node:fs';
import { isatty } from 'node:tty';
import { sanitize } from '../core/sanitize.js';

// The command line writes to standard output and standard error here and in `ask.ts`, and nowhere else
// (test/architecture.test.ts).
// Text is sanitised on its way to a terminal. The screen of the REPL has a writer of its own.

export function outputIsTerminal(): boolean {
  return process.stdout.isTTY;
}

/** Returns undefined where standard output is no terminal. */
export function outputColumns(): number | undefined {
  return outputIsTerminal() ? process.stdout.columns : undefined;
}

export function errorsAreTerminal(): boolean {
  return process.stderr.isTTY;
}

/** Returns undefined where standard output is no terminal. */
export function outputRows(): number | undefined {
  return outputIsTerminal() ? process.stdout.rows : undefined;
}

/** Erases the row that the cursor is in, and `above` rows before it, on a terminal. */
export function eraseRows(above: number): void {
  process.stdout.write(`\r${above > 0 ? `\x1b[${above}A` : ''}\x1b[J`);
}

/** Prints text for people. It is sanitised also for a pipe, which may lead through a pager to a terminal. With `colors`
 * the caller has sanitised all foreign text itself. */
export function print(text: string, options: { readonly colors: boolean } = { colors: false }): void {
  process.stdout.write(sanitize(text, options));
}

/** Prints text that programs read too, such as CSV: sanitised on a terminal, else byte for byte. */
export function printData(text: string): void {
  process.stdout.write(outputIsTerminal() ? sanitize(text) : text);
}

/** Resolves when the reader of standard output has taken everything, or is gone. */
export function outputTaken(): Promise<void> {
  const { stdout } = process;
  return new Promise((resolve) => {
    if (stdout.writableLength === 0 || stdout.destroyed) resolve();
    else
      stdout.write('', () => {
        resolve();
      });
  });
}

/** Standard output for a protocol. Whatever a package prints by itself goes to standard error from now on. */
export function outputForPrograms(): WritableStream<Uint8Array> {
  globalThis.console = new Console(process.stderr);
  return Writable.toWeb(process.stdout);
}

export function printError(text: string): void {
  process.stderr.write(sanitize(text));
}

/** Erases the row that the cursor is in, on a terminal. */
export function eraseErrorRow(): void {
  process.stderr.write('\r\x1b[K');
}

/** Standard output whose reader may go away, as `head` does. */
export interface Output {
  /** As `printData`. */
  write(text: string): void;
  /** Resolves when the reader has taken everything. */
  drained(): Promise<void>;
}

/** Calls `onClosed` once when the reader has gone or writing fails; later writes are dropped. */
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
    drained: () => (closed ? Promise.resolve() : outputTaken()),
  };
}

/** Reports whether standard output was written completely. */
export interface StandardOutput {
  /** Resolves when the reader has taken everything, with the error where writing failed. A reader that has gone away is
   * no error. */
  taken(): Promise<Error | null>;
}

const quiet = new Set(['EPIPE', 'ERR_STREAM_DESTROYED', 'EIO']);

/** Watches from the start, so that neither a full disk nor a reader that goes away crashes the program. */
export function watchStandardOutput(stream: NodeJS.WriteStream = process.stdout): StandardOutput {
  let failure: NodeJS.ErrnoException | null = null;
  stream.on('error', (error: NodeJS.ErrnoException) => {
    failure ??= error;
  });
  process.stderr.on('error', () => {
    /* there is no place to report it */
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

/** Calls `lost` when one of the standard streams fails. */
export function onLostStream(lost: () => void): void {
  for (const stream of [process.stdin, process.stdout, process.stderr]) stream.on('error', lost);
}

/** Closes standard streams whose terminal is gone. At its exit Node restores the modes of every terminal it was started
 * on and aborts where that fails with anything but EPERM; it skips descriptors that are closed. Source: Node 20,
 * `node::ResetStdio`. */
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

/** Closes the streams of the terminal, and puts /dev/null in the place of its descriptors: at its exit Node would restore
 * the modes of a terminal that others use by then. */
export function closeTerminal(): void {
  const { stdin, stdout, stderr } = process;
  // Node keeps these two open by itself.
  for (const stream of [stdout, stderr]) if (stream.isTTY) Reflect.deleteProperty(stream, '_destroy');
  for (const stream of [stdin, stdout, stderr]) {
    if (!stream.isTTY) continue;
    stream.on('error', () => undefined);
    stream.destroy();
  }
  for (const [descriptor, mode] of [
    [0, 'r'],
    [1, 'w'],
    [2, 'w'],
  ] as const)
    try {
      closeSync(descriptor);
      openSync('/dev/null', mode);
    } catch {
      /* It was closed already. */
    }
}
