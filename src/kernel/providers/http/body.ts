import { parseJson } from '../../core/json.js';
import type { Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream';
import { wellFormedDeep } from '../../core/text.js';
import { HttpFailure, networkFailure } from './exchange.js';

/** Time that the rest of an answer may take before its connection is closed. */
const releaseMs = 2_000;
/** The event loop gets a turn after this time: Node reads up to 2 MB of a socket before it looks at keys and
 * signals. */
const longestTurnMs = 8;

/** Turns a server's answer into a `Response` and decompresses it as its headers say. Throws an `HttpFailure` for an
 * encoding that was not asked for and for a status that HTTP does not have. */
export function createResponse(
  status: number,
  given: Readonly<Record<string, string | readonly string[] | undefined>>,
  stream: Readable,
  host: string,
): Response {
  const headers = new Headers();
  for (const [name, value] of Object.entries(given))
    if (value !== undefined) headers.set(name, typeof value === 'string' ? value : value.join(', '));
  // An abort after the last read must not become an unhandled error.
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

/** Gives the event loop one turn. */
async function turn(): Promise<void> {
  await new Promise((resolve) => {
    setImmediate(resolve);
  });
}

/** The body of an answer. Exactly one of reading to the end, `release` and `destroy` must happen. */
export interface BodyReader {
  /** The next bytes; null at the end. */
  next(): Promise<Uint8Array | null>;
  /** Reads the rest in the background, so that the connection can serve the next request, and gives up on an answer
   * that does not end. Resolves at once and never waits for the server. */
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
      // The end has mostly arrived and needs one turn of the event loop; then the next request finds the connection
      // free.
      await turn();
    },
  };
}

/** Reads at most `maxBytes` of a body as text; where there is more, closes the connection. */
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

/** Ignores an error that the read of the stream reports. */
function ignore(): void {
  /* nothing to do */
}

/** Turns the parts of request bodies into bytes. It keeps the bytes that a request shares with the one before, so that
 * a request of a long conversation costs only what is new. The next call overwrites the bytes, so it serves one request
 * at a time. */
export interface BodyEncoder {
  encode(parts: readonly string[]): Uint8Array;
}

/** A surrogate that `JSON.stringify` had to escape because it has no partner. */
const loneSurrogate = /(?<!\\)(?:\\\\)*\\ud[89a-f]/;

export function createBodyEncoder(): BodyEncoder {
  let known: readonly string[] = [];
  /** End of each known part in `bytes`. */
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

/** Encodes the body of a single request. */
export function encodeBody(parts: readonly string[]): Uint8Array {
  const text = parts.join('');
  return hasLoneSurrogate(text) ? repaired(text) : Buffer.from(text);
}

/** Replaces lone surrogates, which strict servers reject. */
function repaired(text: string): Uint8Array {
  return Buffer.from(JSON.stringify(wellFormedDeep(parseJson(text))));
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
