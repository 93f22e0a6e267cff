import type { Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream';
import type { AnswerBody } from './http-answer.js';
import { HttpFailure, networkFailure } from './http-failure.js';

/** How long an answer may go on after the last of it that matters, before its connection is closed. */
const releaseMs = 2_000;
/** After so long keys and signals get their turn: Node reads up to 2 MB of a socket before it looks at anything
 * else. */
const longestTurnMs = 8;

/** The body of an answer, decompressed as `encoding` says. Throws an `HttpFailure` for an encoding nobody asked for. */
export function createBody(stream: Readable, encoding: string | undefined, host: string): AnswerBody {
  const decoded = decompress(stream, encoding, host);
  const destroy = (): void => {
    decoded.destroy();
    stream.destroy();
  };
  // An abort after the last read must not surface as an error that nobody listens for.
  stream.on('error', ignore);
  decoded.on('error', ignore);
  return {
    async *[Symbol.asyncIterator]() {
      try {
        let turnedMs = performance.now();
        for await (const chunk of decoded.iterator({ destroyOnReturn: false })) {
          yield chunk as Uint8Array;
          if (performance.now() - turnedMs < longestTurnMs) continue;
          await new Promise((resolve) => {
            setImmediate(resolve);
          });
          turnedMs = performance.now();
        }
      } catch (error) {
        throw networkFailure(error, host, 'body');
      }
    },
    async release() {
      if (decoded.readableEnded || decoded.destroyed) return;
      const timer = setTimeout(destroy, releaseMs);
      timer.unref();
      decoded
        .on('close', () => {
          clearTimeout(timer);
        })
        .resume();
      // The end is mostly here already and needs one turn of the event loop to be seen; the next request then finds the
      // connection free.
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
    },
    destroy,
  };
}

/** Reads a body as text, at most `maxBytes` of it; the rest is left and the connection closed. */
export async function readText(body: AnswerBody, maxBytes: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes >= maxBytes) break;
  }
  if (bytes >= maxBytes) body.destroy();
  return Buffer.concat(chunks).subarray(0, maxBytes).toString('utf8');
}

function decompress(stream: Readable, encoding: string | undefined, host: string): Readable {
  const name = encoding?.trim().toLowerCase() ?? '';
  if (name === '' || name === 'identity') return stream;
  const decoder = decoderFor(name);
  if (decoder === null) {
    stream.destroy();
    throw new HttpFailure(
      {
        code: 'protocol',
        message: `${host} answered in the encoding \`${name.slice(0, 40)}\`, which was not asked for`,
      },
      false,
    );
  }
  pipeline(stream, decoder, ignore);
  return decoder;
}

function decoderFor(name: string): Transform | null {
  const { constants, createBrotliDecompress, createGunzip, createInflate } = process.getBuiltinModule('node:zlib');
  const flush = { flush: constants.Z_SYNC_FLUSH };
  if (name === 'gzip' || name === 'x-gzip') return createGunzip(flush);
  if (name === 'deflate') return createInflate(flush);
  if (name === 'br') return createBrotliDecompress();
  return null;
}

/** The reader of the stream is told by its own read. */
function ignore(): void {
  /* nothing to do */
}
