import { parseJson } from '../../core/json.js';
import type { Json } from '../../core/json.js';
import { parseData } from '../wires/answer.js';
import { isFailure, quoteServer, streamFault } from '../wires/fault.js';
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

/** Creates the reader of one answer. `host` is named in failures; `contentType` is the server's name for the body. */
export function createAnswerReader(
  wire: Wire,
  maxCalls: number | undefined,
  { host, contentType }: { readonly host: string; readonly contentType: string },
): AnswerReader {
  const sse = new SseReader();
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
      const chunks = decodeEvents(sse.push(chunk), decoder);
      if (sse.overflowed) throw tooLarge(host, 'a line of more than 16 MiB');
      return chunks;
    },
    end() {
      if (kind === 'json') return decodeWhole(whole, wire, maxCalls, host);
      const last = [...decodeEvents(sse.end(), decoder), ...decoder.end()];
      return last.map((chunk) => (isCut(chunk) && sse.stray.trim() !== '' ? strayFault(sse.stray) : chunk));
    },
    broken(error) {
      const last = kind === 'events' ? decoder.end() : [];
      if (!last.some((chunk) => chunk.type === 'end')) throw error;
      return last;
    },
  };
}

function isCut(chunk: WireChunk): boolean {
  return chunk.type === 'fault' && chunk.fault.code === 'stream_incomplete' && chunk.unfinished === undefined;
}

/** Returns the fault in lines outside of events. Some servers write an error into the stream as it is: a line of text,
 * JSON, or a web page. Old versions of llama-server put `error:` before it. */
function strayFault(stray: string): WireChunk {
  return { type: 'fault', ...streamFault(stray.replace(/^error:\s*(?=\{)/, '')) };
}

/** Decodes events. Text that arrived together stays together, because each chunk costs the loop more than its text. */
function decodeEvents(events: readonly ServerEvent[], decoder: StreamDecoder): readonly WireChunk[] {
  const chunks: WireChunk[] = [];
  for (const part of events.flatMap((event) => decoder.push(event))) {
    const last = chunks.at(-1);
    if (last && (last.type === 'text' || last.type === 'reasoning') && part.type === last.type)
      chunks[chunks.length - 1] = { type: last.type, text: last.text + part.text };
    else chunks.push(part);
  }
  return chunks;
}

/** Returns the kind of a body by its first bytes, not by the server's name for it. Throws for a web page. */
function sniff(chunk: Uint8Array, contentType: string, host: string): 'unknown' | 'events' | 'json' {
  const first = chunk.findIndex((byte) => byte !== 32 && (byte < 9 || byte > 13));
  const start = first < 0 ? '' : new TextDecoder().decode(chunk.subarray(first, first + 64)).trimStart();
  if (start === '') return 'unknown';
  if (start.startsWith('{') || start.startsWith('[')) return 'json';
  if (start.startsWith('<') || contentType.startsWith('text/html')) {
    throw new HttpFailure(
      {
        code: 'protocol',
        message: `${host} answered with a web page instead of a model's answer${titleOf(chunk)}`,
        hint: 'check the base URL, and whether the network wants you to log in first',
      },
      false,
    );
  }
  return 'events';
}

function titleOf(page: Uint8Array): string {
  const title = /<title[^>]*>([^<]*)/i.exec(new TextDecoder().decode(page))?.[1]?.trim() ?? '';
  return title === '' ? '' : `: ${quoteServer(title, [])}`;
}

function decodeWhole(
  whole: readonly Uint8Array[],
  wire: Wire,
  maxCalls: number | undefined,
  host: string,
): readonly WireChunk[] {
  const text = Buffer.concat(whole).toString('utf8');
  let body: Json;
  try {
    body = parseJson(text) as Json;
  } catch {
    const [line = ''] = text.split('\n', 1);
    const first = parseData(line.trim());
    if (isFailure(first)) return [{ type: 'fault', ...streamFault(first) }];
    throw new HttpFailure({ code: 'stream_incomplete', message: `the answer of ${host} is not whole JSON` }, true);
  }
  return wire.decodeBody(body, maxCalls);
}

function tooLarge(host: string, what: string): HttpFailure {
  return new HttpFailure({ code: 'protocol', message: `${host} sent ${what}` }, false);
}

const newline = 10;
const carriageReturn = 13;
const maxLineBytes = 16 * 1024 * 1024;
const maxStrayChars = 4096;

/** Reads the server-sent events of one connection from its bytes as they come. LF, CRLF and CR end a line, a leading
 * byte order mark is skipped, invalid UTF-8 becomes U+FFFD; `id` and `retry` are ignored. Decodes whole lines and looks
 * at each byte once, so the cost is that of `indexOf` over the stream. Source: WHATWG HTML, 9.2.6 "Interpreting an
 * event stream". */
export class SseReader {
  /** Number of comment lines so far. They carry nothing, but show that the server is alive. */
  comments = 0;
  /** True once a line or an event was longer than 16 MiB. No event is returned after that; the caller reports a
   * `protocol` fault. */
  overflowed = false;
  /** Lines that are no part of an event, up to 4,096 characters. */
  stray = '';
  #pending: Buffer[] = [];
  #pendingBytes = 0;
  #started = false;
  #skipLineFeed = false;
  #event = '';
  #data: string | null = null;
  #found: ServerEvent[] = [];

  /** Returns the events that these bytes complete, in order. The bytes may split anywhere, even inside a UTF-8 sequence
   * or a CRLF. Throws nothing. */
  push(bytes: Uint8Array): readonly ServerEvent[] {
    if (this.overflowed || bytes.byteLength === 0) return [];
    let chunk = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    if (this.#skipLineFeed && chunk[0] === newline) chunk = chunk.subarray(1);
    this.#skipLineFeed = chunk.length === 0 ? false : chunk[chunk.length - 1] === carriageReturn;
    const end = Math.max(chunk.lastIndexOf(newline), chunk.lastIndexOf(carriageReturn)) + 1;
    if (end === 0) return this.#keep(chunk);
    const text = this.#join(chunk, end);
    if (end < chunk.length) this.#keep(chunk.subarray(end));
    this.#read(text);
    return this.#take();
  }

  /** Ends the connection: returns an event that lacks its blank line, or even its last line end. */
  end(): readonly ServerEvent[] {
    if (this.overflowed) return [];
    if (this.#pendingBytes > 0) this.#read(`${this.#join(Buffer.alloc(0), 0)}\n`);
    this.#dispatch();
    return this.#take();
  }

  #keep(chunk: Buffer): readonly ServerEvent[] {
    if (chunk.length === 0) return [];
    this.#pendingBytes += chunk.length;
    // Keeps a copy, because the caller may reuse its buffer.
    if (this.#pendingBytes > maxLineBytes) this.#overflow();
    else this.#pending.push(Buffer.from(chunk));
    return [];
  }

  /** Returns the pending bytes and the first `end` bytes of `chunk` as text. */
  #join(chunk: Buffer, end: number): string {
    let text: string;
    if (this.#pendingBytes === 0) text = chunk.toString('utf8', 0, end);
    else text = Buffer.concat([...this.#pending, chunk.subarray(0, end)]).toString('utf8');
    this.#pending = [];
    this.#pendingBytes = 0;
    if (this.#started || text === '') return text;
    this.#started = true;
    return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
  }

  #read(given: string): void {
    const text = given.includes('\r') ? given.replaceAll('\r\n', '\n').replaceAll('\r', '\n') : given;
    let start = 0;
    for (let at = text.indexOf('\n'); at >= 0 && !this.overflowed; at = text.indexOf('\n', start)) {
      if (at === start) this.#dispatch();
      else this.#line(text.slice(start, at));
      start = at + 1;
    }
  }

  #line(line: string): void {
    if (line.startsWith('data:')) this.#append(line.slice(line.charCodeAt(5) === 32 ? 6 : 5));
    else if (line.charCodeAt(0) === 58) this.comments++;
    else if (line.startsWith('event:')) this.#event = line.slice(line.charCodeAt(6) === 32 ? 7 : 6);
    else if (line === 'data') this.#append('');
    else if (!/^(?:id|retry|event)(?::|$)/.test(line) && this.stray.length < maxStrayChars)
      this.stray += `${line}\n`.slice(0, maxStrayChars);
  }

  #append(value: string): void {
    this.#data = this.#data === null ? value : `${this.#data}\n${value}`;
    if (this.#data.length > maxLineBytes) this.#overflow();
  }

  #dispatch(): void {
    if (this.#data !== null) this.#found.push({ event: this.#event, data: this.#data });
    this.#data = null;
    this.#event = '';
  }

  #overflow(): void {
    this.overflowed = true;
    this.#pending = [];
    this.#data = null;
  }

  #take(): readonly ServerEvent[] {
    const found = this.#found;
    if (found.length > 0) this.#found = [];
    return found;
  }
}
