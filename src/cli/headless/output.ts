/** Standard output as a program that may be piped into `head` needs it. */
export interface Output {
  write(text: string): void;
  /** Resolves when all of it was taken by the reader. */
  drained(): Promise<void>;
}

/** `onClosed` is called once when the reader has gone or nothing can be written any more; later writes go nowhere. */
export function createOutput(stream: NodeJS.WriteStream, onClosed: () => void): Output {
  let closed = false;
  stream.on('error', () => {
    if (closed) return;
    closed = true;
    onClosed();
  });
  return {
    write: (text) => { if (!closed) stream.write(text); },
    drained: () => new Promise((resolve) => {
      if (closed || stream.writableLength === 0) resolve();
      else stream.write('', () => { resolve(); });
    }),
  };
}
