import { createSanitizer } from '../../kernel/core/sanitize.js';
import type { Schedule } from '../../kernel/core/runtime.js';
import { createRegexWorker, type RegexWorker } from '../../kernel/tools/search/regex-worker.js';

/** Finds the lines of an output that match an expression. */
export interface LineWatch {
  /** Copies the chunk. */
  add(chunk: Uint8Array): void;
  /** Resolves when all that was added is checked, the last line too if it has no end. */
  end(): Promise<void>;
  /** Checks nothing more. */
  close(): void;
}

export interface FoundLines {
  /** Without colours and control characters, each cut to 500 characters. */
  readonly lines: readonly string[];
  /** Bytes before these lines that were not checked: they came too fast. */
  readonly skippedBytes: number;
}

interface WatchParts {
  readonly expression: RegExp;
  readonly schedule: Schedule;
  readonly onFound: (found: FoundLines) => void;
  /** A line takes too long: nothing more is checked. */
  readonly onTooSlow: () => void;
}

/** Lines are looked for in parts of this size, with a pause after each: a flood of output does not hold up anything. */
const partBytes = 262_144;
const pauseMs = 100;
/** More output than this does not wait: the oldest part of it is left out. */
const mostWaitingBytes = 1_048_576;
/** The rest of a longer line is not checked. */
const mostLineChars = 4096;
const mostShownChars = 500;
/** A line that has no end after this time is checked as it is, such as the prompt of a program. */
const partialMs = 2000;
/** The longest time for one part. */
const matchMs = 5000;
/** This program may have been stopped meanwhile: the answer may be there already. */
const graceMs = 250;

export function watchLines(parts: WatchParts): LineWatch {
  return new Watch(parts);
}

class Watch implements LineWatch {
  readonly #parts: WatchParts;
  readonly #lines = createLineReader();
  readonly #closing = new AbortController();
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #skippedBytes = 0;
  #worker: RegexWorker | null = null;
  #isWorking = false;
  #onIdle = (): void => undefined;
  #cancelPartial = (): void => undefined;
  #cancelPause = (): void => undefined;
  #hasEnded = false;

  constructor(parts: WatchParts) {
    this.#parts = parts;
  }

  add(chunk: Uint8Array): void {
    if (this.#closing.signal.aborted || chunk.length === 0) return;
    this.#waiting.push(Buffer.from(chunk));
    this.#waitingBytes += chunk.length;
    while (this.#waitingBytes > mostWaitingBytes) this.#leaveOut();
    this.#begin();
  }

  async end(): Promise<void> {
    this.#hasEnded = true;
    this.#cancelPause();
    this.#begin();
    if (this.#isWorking)
      await new Promise<void>((resolve) => {
        this.#onIdle = resolve;
      });
    const last = this.#lines.partial();
    if (last !== null) await this.#check([last]);
    this.close();
  }

  close(): void {
    this.#cancelPartial();
    this.#closing.abort();
    this.#cancelPause();
  }

  #leaveOut(): void {
    const oldest = this.#waiting.shift();
    if (!oldest) return;
    this.#waitingBytes -= oldest.length;
    this.#skippedBytes += oldest.length;
    this.#lines.skip();
  }

  #begin(): void {
    this.#cancelPartial();
    if (!this.#isWorking) void this.#alone(() => this.#work());
  }

  async #alone(work: () => Promise<void>): Promise<void> {
    this.#isWorking = true;
    await work();
    this.#isWorking = false;
    if (this.#waitingBytes > 0 && !this.#closing.signal.aborted) this.#begin();
    else this.#onIdle();
  }

  /** Output that comes meanwhile waits: one part is checked at a time. */
  #checkPartial(): void {
    const partial = this.#lines.partial();
    if (partial === null || this.#isWorking) return;
    void this.#alone(async () => {
      if (await this.#check([partial])) this.#lines.skip();
    });
  }

  async #work(): Promise<void> {
    while (this.#waitingBytes > 0 && !this.#closing.signal.aborted) {
      const bytes = Buffer.concat(this.#waiting);
      this.#waiting = bytes.length > partBytes ? [bytes.subarray(partBytes)] : [];
      this.#waitingBytes = Math.max(0, bytes.length - partBytes);
      await this.#check(this.#lines.add(bytes.subarray(0, partBytes)));
      await this.#pause();
    }
    if (this.#hasEnded || this.#closing.signal.aborted) return;
    this.#cancelPartial = this.#parts.schedule(() => {
      this.#checkPartial();
    }, partialMs);
  }

  async #pause(): Promise<void> {
    if (this.#hasEnded || this.#closing.signal.aborted) return;
    await new Promise<void>((resolve) => {
      const cancel = this.#parts.schedule(resolve, pauseMs);
      this.#cancelPause = () => {
        cancel();
        resolve();
      };
    });
  }

  /** Returns true if one of the lines matches. */
  async #check(lines: readonly string[]): Promise<boolean> {
    const { expression, schedule, onFound, onTooSlow } = this.#parts;
    const { signal } = this.#closing;
    if (lines.length === 0 || signal.aborted) return false;
    this.#worker ??= createRegexWorker(expression, signal);
    let isTooSlow = false;
    let cancel = schedule(() => {
      cancel = schedule(() => {
        isTooSlow = true;
        this.close();
      }, graceMs);
    }, matchMs);
    const hits = await this.#worker.matching(lines);
    cancel();
    if (isTooSlow || hits === null) {
      if (isTooSlow) onTooSlow();
      return false;
    }
    if (hits.length === 0) return false;
    const skippedBytes = this.#skippedBytes;
    this.#skippedBytes = 0;
    onFound({ lines: hits.map((index) => (lines[index] ?? '').slice(0, mostShownChars)), skippedBytes });
    return true;
  }
}

/** Cuts output into lines. A carriage return ends a line as well: a progress bar is one line for each state. */
function createLineReader() {
  const decoder = new TextDecoder();
  const sanitizer = createSanitizer({ colors: false });
  let partial = '';
  /** The line that is being read does not count: its beginning was left out, or it was found already. */
  let isDone = false;
  const cut = (text: string): string => (text.length > mostLineChars ? text.slice(0, mostLineChars) : text);
  return {
    add(bytes: Uint8Array): readonly string[] {
      const pieces = sanitizer.write(decoder.decode(bytes, { stream: true })).split('\n');
      const lines: string[] = [];
      for (const [index, piece] of pieces.entries()) {
        if (!isDone) partial = cut(partial + cut(piece));
        if (index === pieces.length - 1) break;
        if (!isDone && partial !== '') lines.push(partial);
        partial = '';
        isDone = false;
      }
      return lines;
    },
    partial: (): string | null => (isDone || partial === '' ? null : partial),
    /** The rest of the line does not count. */
    skip(): void {
      partial = '';
      isDone = true;
    },
  };
}
