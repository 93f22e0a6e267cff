import type { Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream';
import { wellFormedDeep } from '../../core/text.js';
import { HttpFailure, networkFailure } from './exchange.js';

/** How long an answer may go on after the last of it that matters, before its connection is closed. */
const releaseMs = 2_000;
/** After so long keys and signals get their turn: Node reads up to 2 MB of a socket before it looks at anything
 * else. */
const longestTurnMs = 8;

/** A server's answer as the fetch standard has it, decompressed as its headers say. Throws an `HttpFailure` for an
 * encoding nobody asked for and for a status that HTTP does not have. */
export function createResponse(
  status: number,
  given: Readonly<Record<string, string | readonly string[] | undefined>>,
  stream: Readable,
  host: string,
): Response {
  const headers = new Headers();
  for (const [name, value] of Object.entries(given))
    if (value !== undefined) headers.set(name, typeof value === 'string' ? value : value.join(', '));
  // An abort after the last read must not surface as an error that nobody listens for.
  stream.on('error', ignore);
  if (status < 200 || status > 599) {
    stream.destroy();
    throw new HttpFailure({ code: 'network', message: `${host} answered with the status ${status}`, status }, true);
  }
  if (status === 204 || status === 205 || status === 304) {
    stream.destroy();
    return new Response(null, { status, headers });
  }
  return new Response(bytesOf(stream, headers.get('content-encoding'), host), { status, headers });
}

function bytesOf(stream: Readable, encoding: string | null, host: string): ReadableStream<Uint8Array> {
  const decoded = decompress(stream, encoding, host);
  decoded.on('error', ignore);
  const chunks = decoded.iterator({ destroyOnReturn: false }) as AsyncIterator<Uint8Array>;
  let turnedMs = performance.now();
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await chunks.next();
          if (done === true) controller.close();
          else controller.enqueue(value);
        } catch (error) {
          controller.error(networkFailure(error, host, 'body'));
        }
        if (performance.now() - turnedMs < longestTurnMs) return;
        await turn();
        turnedMs = performance.now();
      },
      cancel() {
        decoded.destroy();
        stream.destroy();
      },
    },
    { highWaterMark: 0 },
  );
}

/** Lets the event loop go round once. */
async function turn(): Promise<void> {
  await new Promise((resolve) => {
    setImmediate(resolve);
  });
}

/** The body of an answer. Exactly one of reading to the end, `release` and `destroy` must happen. */
export interface BodyReader {
  /** The next bytes; null at the end. */
  next(): Promise<Uint8Array | null>;
  /** Reads what is left in the background, so that the connection can serve the next request; gives up on an answer
   * that does not end. Resolves at once, never waiting for the server. */
  release(): Promise<void>;
  destroy(): void;
}

export function readBody({ body }: Response): BodyReader {
  const reader = body?.getReader();
  const next = async (): Promise<Uint8Array | null> => (await reader?.read())?.value ?? null;
  const destroy = (): void => {
    void reader?.cancel().catch(ignore);
  };
  const drain = async (): Promise<void> => {
    const timer = setTimeout(destroy, releaseMs);
    timer.unref();
    try {
      while ((await next()) !== null);
    } finally {
      clearTimeout(timer);
    }
  };
  return {
    next,
    destroy,
    async release() {
      void drain().catch(ignore);
      // The end is mostly here already and needs one turn of the event loop to be seen; the next request then finds the
      // connection free.
      await turn();
    },
  };
}

/** Reads a body as text, at most `maxBytes` of it; the rest is left and the connection closed. */
export async function readText(response: Response, maxBytes: number): Promise<string> {
  const body = readBody(response);
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for (let chunk = await body.next(); chunk !== null; chunk = await body.next()) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes < maxBytes) continue;
    body.destroy();
    break;
  }
  return Buffer.concat(chunks).subarray(0, maxBytes).toString('utf8');
}

function decompress(stream: Readable, encoding: string | null, host: string): Readable {
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

/** Turns the parts of request bodies into bytes, keeping those that a request shares with the one before: a request of
 * a long conversation costs what is new in it. The bytes of a call are overwritten by the next one, so it serves one
 * request at a time. */
export interface BodyEncoder {
  encode(parts: readonly string[]): Uint8Array;
}

/** A surrogate that `JSON.stringify` had to escape because it stands alone. */
const loneSurrogate = /(?<!\\)(?:\\\\)*\\ud[89a-f]/;

export function createBodyEncoder(): BodyEncoder {
  let known: readonly string[] = [];
  /** Of each known part, where it ends in `bytes`. */
  const ends: number[] = [];
  let bytes = Buffer.alloc(0);
  /** The first part that may hold a lone surrogate. */
  let suspectFrom = Number.POSITIVE_INFINITY;

  const makeRoom = (size: number, kept: number): void => {
    if (size <= bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(size * 2);
    bytes.copy(larger, 0, 0, kept);
    bytes = larger;
  };

  return {
    encode(parts) {
      const same = sharedCount(known, parts);
      const start = ends[same - 1] ?? 0;
      ends.length = same;
      let end = start;
      for (let index = same; index < parts.length; index++) ends.push((end += Buffer.byteLength(parts[index] ?? '')));
      const text = parts.slice(same).join('');
      makeRoom(end, start);
      bytes.write(text, start);
      known = parts;
      if (same <= suspectFrom) suspectFrom = hasLoneSurrogate(text) ? same : Number.POSITIVE_INFINITY;
      const body = bytes.subarray(0, end);
      return suspectFrom === Number.POSITIVE_INFINITY ? body : repaired(body.toString());
    },
  };
}

/** The same for one request alone. */
export function encodeBody(parts: readonly string[]): Uint8Array {
  const text = parts.join('');
  return hasLoneSurrogate(text) ? repaired(text) : Buffer.from(text);
}

/** Strict servers reject a lone surrogate. */
function repaired(text: string): Uint8Array {
  return Buffer.from(JSON.stringify(wellFormedDeep(JSON.parse(text) as unknown)));
}

function hasLoneSurrogate(text: string): boolean {
  return text.includes('\\ud') && loneSurrogate.test(text);
}

function sharedCount(known: readonly string[], parts: readonly string[]): number {
  const most = Math.min(known.length, parts.length);
  let count = 0;
  while (count < most && known[count] === parts[count]) count++;
  return count;
}
