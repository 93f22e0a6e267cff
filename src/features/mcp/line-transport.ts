import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/client';
import { isRecord } from '../../kernel/core/json.js';
import type { LastingProcess } from '../../kernel/tools/process/lasting-process.js';
import { type ForeignMessages, maxMessageBytes, parseMessage, tooLong } from './foreign-messages.js';

export interface LineListener {
  readonly onJunk: (line: string) => void;
  readonly onThrown: (error: unknown) => void;
}

/** Messages, one a line, over a process that stays. Lines that are none are counted and dropped; one that answers a
 * request and cannot be read fails it. Nothing that a message causes is thrown to the process. */
export class LineTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  readonly #process: LastingProcess;
  readonly #messages: ForeignMessages;
  readonly #heard: LineListener;
  #parts: Buffer[] = [];
  #bytes = 0;
  /** Counted, not kept: the line cannot become a message. */
  #isDropping = false;
  /** The last bytes of a line that is too long. */
  #tail = Buffer.alloc(0);

  constructor(process: LastingProcess, messages: ForeignMessages, heard: LineListener) {
    this.#process = process;
    this.#messages = messages;
    this.#heard = heard;
  }

  async start(): Promise<void> {
    const started = await this.#process.start();
    if (!started.started)
      throw new Error(started.error === 'ENOENT' ? 'the command was not found (ENOENT)' : started.error);
  }

  async send(message: JSONRPCMessage): Promise<void> {
    this.#messages.sent(message);
    if (!(await this.#process.write(`${JSON.stringify(message)}\n`))) throw new Error('the server is not running');
  }

  async close(): Promise<void> {
    await this.#process.stop();
    this.end('the connection was closed');
  }

  /** Answers every request that waits with the reason why there is no answer. */
  end(why: string): void {
    this.#guarded(() => {
      for (const failed of this.#messages.failAll(why)) this.onmessage?.(failed);
      this.onclose?.();
    });
  }

  take(chunk: Buffer): void {
    let from = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
      this.#add(chunk.subarray(from, end));
      this.#endLine();
      from = end + 1;
    }
    this.#add(chunk.subarray(from));
  }

  #add(part: Buffer): void {
    this.#bytes += part.length;
    if (this.#bytes > maxMessageBytes)
      this.#tail = Buffer.concat([this.#tail, part.subarray(-endBytes)]).subarray(-endBytes);
    if (this.#isDropping || part.length === 0) return;
    this.#parts.push(part);
    const isText = this.#bytes > maxBannerBytes && !this.#parts.some((kept) => kept.includes(0x7b));
    if (!isText && this.#bytes <= maxMessageBytes) return;
    this.#isDropping = true;
    this.#parts = isText ? [] : [Buffer.concat(this.#parts).subarray(0, endBytes)];
  }

  #endLine(): void {
    const [bytes, isDropping, tail] = [this.#bytes, this.#isDropping, this.#tail];
    const line = Buffer.concat(this.#parts).toString('utf8');
    this.#parts = [];
    this.#bytes = 0;
    this.#isDropping = false;
    this.#tail = Buffer.alloc(0);
    this.#guarded(() => {
      if (!isDropping) this.#read(line);
      else if (bytes > maxMessageBytes && line !== '') this.#readEnds([line, tail.toString('utf8')]);
      else this.#heard.onJunk('a long line');
    });
  }

  #read(line: string): void {
    if (line.trim() === '') return;
    const text = messageIn(line);
    const value = parseMessage(text);
    if (value === undefined && text.includes('"jsonrpc"')) {
      const ends = [text.slice(0, endBytes), text.slice(-endBytes)];
      this.#give(this.#messages.unreadable(ends, 'it answered with a line that is not JSON') ?? [], line);
    } else {
      const found = [value].flat().flatMap((item) => this.#messages.received(item) ?? []);
      this.#give(found, hasMessage(value) ? '' : line);
    }
  }

  /** A line that is too long answers one of the requests, whichever it is. */
  #readEnds(ends: readonly string[]): void {
    const failed = this.#messages.unreadable(ends, tooLong);
    this.#give(failed?.length === 0 ? this.#messages.failAll(tooLong) : (failed ?? []), ends.join('…'));
  }

  /** `line`: it is junk where it gives no message. */
  #give(messages: readonly JSONRPCMessage[], line: string): void {
    if (messages.length === 0 && line !== '') this.#heard.onJunk(line);
    for (const message of messages) this.onmessage?.(message);
  }

  #guarded(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#heard.onThrown(error);
    }
  }
}

/** The bytes of an unreadable line that are searched for the id of a request. */
const endBytes = 1024;
/** A line that has no `{` in its first bytes is a text. */
const maxBannerBytes = 4096;

/** Returns the line from its message on: a byte order mark, colours and words without an end of line may come first. */
function messageIn(line: string): string {
  const start = /\[?\s*\{\s*"(?:jsonrpc|id|method|result|error)"/.exec(line)?.index ?? 0;
  // eslint-disable-next-line no-control-regex
  return line
    .slice(start)
    .replace(/[\s\u001B]*(?:\u001B\[[\d;]*[A-Za-z]\s*)*$/, '')
    .trim();
}

function hasMessage(value: unknown): boolean {
  return [value].flat().some((item) => isRecord(item) && item['jsonrpc'] === '2.0');
}
