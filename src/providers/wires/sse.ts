import type { ServerEvent } from './wire.js';

const newline = 10;
const carriageReturn = 13;
const maxLineBytes = 16 * 1024 * 1024;

/** Reads server-sent events from bytes as they come. */
export interface SseReader {
  /** Returns the events that these bytes complete, in order. The bytes may split anywhere, even inside a UTF-8 sequence
   * or a CRLF. Throws nothing. */
  push(bytes: Uint8Array): readonly ServerEvent[];
  /** Ends the connection: returns an event that lacks its blank line, or even its last line end. */
  end(): readonly ServerEvent[];
  /** The number of comment lines so far. They carry nothing, but show that the server is alive. */
  readonly comments: number;
  /** True once a line or an event was longer than 16 MiB. No event is returned after that; the caller reports a
   * `protocol` fault. */
  readonly overflowed: boolean;
}

/** Creates a reader for one connection. LF, CRLF and CR end a line, a leading byte order mark is skipped, invalid UTF-8
 * becomes U+FFFD; `id` and `retry` are ignored. Decodes whole lines and looks at each byte once, so the cost is that of
 * `indexOf` over the stream. Source: WHATWG HTML, 9.2.6 "Interpreting an event stream". */
export function createSseReader(): SseReader {
  return new Reader();
}

class Reader implements SseReader {
  comments = 0;
  overflowed = false;
  #pending: Buffer[] = [];
  #pendingBytes = 0;
  #started = false;
  #skipLineFeed = false;
  #event = '';
  #data: string | null = null;
  #found: ServerEvent[] = [];

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
