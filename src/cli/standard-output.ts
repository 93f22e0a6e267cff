/** What becomes of what is written to standard output. */
export interface StandardOutput {
  /** Resolves when the reader has taken all of it; with the reason where it could not be written. A reader that has gone away is no such reason. */
  taken(): Promise<Error | null>;
}

const quiet = new Set(['EPIPE', 'ERR_STREAM_DESTROYED', 'EIO']);

/** Watches from the start, so that a reader that goes away or a full disk is no crash. A terminal takes what is written at once. */
export function watchStandardOutput(stream: NodeJS.WriteStream = process.stdout): StandardOutput {
  let failure: NodeJS.ErrnoException | null = null;
  stream.on('error', (error: NodeJS.ErrnoException) => { failure ??= error; });
  process.stderr.on('error', () => { /* nobody can be told */ });
  const reason = (): Error | null => (failure === null || quiet.has(failure.code ?? '') ? null : failure);
  return {
    taken: () => new Promise((resolve) => {
      failure ??= stream.errored; // its event may still be on the way
      if (stream.isTTY || failure !== null || stream.destroyed) { resolve(reason()); return; }
      stream.once('error', () => { resolve(reason()); });
      stream.write('', () => { resolve(reason()); });
    }),
  };
}
