import type { Json } from '../../core/json.js';
import { createSseReader } from '../wires/sse.js';
import type { ServerEvent, StreamDecoder, Wire, WireChunk } from '../wires/wire.js';
import { HttpFailure } from './exchange.js';

/** Longest body of one answer. Source: security 2.42. */
const maxBodyBytes = 64 * 1024 * 1024;

/** Reads the body of one answer: a stream of events, or one JSON document where the server did not stream. Returns
 * together what arrived together. */
export interface AnswerReader {
  /** Throws an `HttpFailure` where the bytes cannot be an answer. */
  push(bytes: Uint8Array): readonly WireChunk[];
  end(): readonly WireChunk[];
  /** The connection broke. Returns the end of the answer where everything that counts arrived before, because another
   * request would cost it twice. Throws `error` otherwise. */
  broken(error: unknown): readonly WireChunk[];
}

/** `host` is named in failures; `contentType` is the server's own name for the body. */
export function createAnswerReader(
  wire: Wire,
  maxCalls: number | undefined,
  { host, contentType }: { readonly host: string; readonly contentType: string },
): AnswerReader {
  const sse = createSseReader();
  const decoder = wire.decoder(maxCalls);
  const whole: Uint8Array[] = [];
  let kind: 'unknown' | 'events' | 'json' = 'unknown';
  let bytes = 0;
  return {
    push(chunk) {
      bytes += chunk.length;
      if (bytes > maxBodyBytes) throw tooLarge(host, `an answer of more than ${maxBodyBytes / 1024 / 1024} MiB`);
      if (kind === 'unknown') kind = sniff(chunk, contentType, host);
      if (kind === 'json') {
        whole.push(chunk);
        return [];
      }
      const chunks = joined(sse.push(chunk), decoder);
      if (sse.overflowed) throw tooLarge(host, 'a line of more than 16 MiB');
      return chunks;
    },
    end() {
      if (kind === 'json') return decodeWhole(whole, wire, maxCalls, host);
      return [...joined(sse.end(), decoder), ...decoder.end()];
    },
    broken(error) {
      const last = kind === 'events' ? decoder.end() : [];
      if (!last.some((chunk) => chunk.type === 'end')) throw error;
      return last;
    },
  };
}

/** Decodes events. Text that arrived together stays together, because each chunk costs the loop more than its text. */
function joined(events: readonly ServerEvent[], decoder: StreamDecoder): readonly WireChunk[] {
  const chunks: WireChunk[] = [];
  for (const part of events.flatMap((event) => decoder.push(event))) {
    const last = chunks.at(-1);
    if (last && (last.type === 'text' || last.type === 'reasoning') && part.type === last.type)
      chunks[chunks.length - 1] = { type: last.type, text: last.text + part.text };
    else chunks.push(part);
  }
  return chunks;
}

/** Tells what a body is by its first bytes, not by the server's name for it. Throws for a web page. */
function sniff(chunk: Uint8Array, contentType: string, host: string): 'unknown' | 'events' | 'json' {
  const first = chunk.findIndex((byte) => byte !== 32 && (byte < 9 || byte > 13));
  const start = first < 0 ? '' : new TextDecoder().decode(chunk.subarray(first, first + 64)).trimStart();
  if (start === '') return 'unknown';
  if (start.startsWith('{') || start.startsWith('[')) return 'json';
  if (start.startsWith('<') || contentType.startsWith('text/html')) {
    throw new HttpFailure(
      {
        code: 'protocol',
        message: `${host} answered with a web page instead of a model's answer`,
        hint: 'check the base URL, and whether the network wants you to log in first',
      },
      false,
    );
  }
  return 'events';
}

function decodeWhole(
  whole: readonly Uint8Array[],
  wire: Wire,
  maxCalls: number | undefined,
  host: string,
): readonly WireChunk[] {
  let body: Json;
  try {
    body = JSON.parse(Buffer.concat(whole).toString('utf8')) as Json;
  } catch {
    throw new HttpFailure({ code: 'stream_incomplete', message: `the answer of ${host} is not whole JSON` }, true);
  }
  return wire.decodeBody(body, maxCalls);
}

function tooLarge(host: string, what: string): HttpFailure {
  return new HttpFailure({ code: 'protocol', message: `${host} sent ${what}` }, false);
}
