import { isUtf8 } from 'node:buffer';
import { clampEnds, clampText, plainMarker } from '../../core/envelope.js';
import type { StreamMask } from '../../core/secrets/guard.js';
import { sniffEncoding } from '../../disk/text-encoding.js';

/** The output of a process within the budget: one text, or head, marker and tail, which are one text when joined. */
export interface CollectedOutput {
  readonly parts: readonly string[];
  readonly totalBytes: number;
  readonly truncated: boolean;
}

/** Keeps the head and the tail of a byte stream and counts the rest. Memory stays below about three times the budget.
 */
interface OutputCollector {
  /** Copies the part of `chunk` that it keeps. */
  add(chunk: Uint8Array): void;
  readonly totalBytes: number;
  /** Returns the last bytes: `maxBytes` of them, or all that are kept. The view is valid until the next `add`. */
  tail(maxBytes: number): Buffer;
  /** Returns the output, decoded as UTF-8 with U+FFFD for invalid bytes and `\0` for NUL; what is binary in it as
   * `[binary, N bytes]`. Nothing can be added afterwards. */
  collected(): CollectedOutput;
}

/** Room for characters that are cut in two. */
const slackBytes = 8;
/** The buffer doubles up to this size, and takes its full size after that. */
const maxGrownBytes = 65_536;

export function createOutputCollector(maxBytes: number): OutputCollector {
  const headBytes = Math.ceil(maxBytes / 2) + slackBytes;
  const roomBytes = headBytes * 2;
  /** The head, then a ring buffer of the last bytes. */
  let kept = Buffer.alloc(0);
  /** The position of the next byte. */
  let at = 0;
  let totalBytes = 0;

  const grow = (needed: number): void => {
    if (needed <= kept.length) return;
    const grown = Buffer.allocUnsafeSlow(
      Math.min(roomBytes, needed > maxGrownBytes ? roomBytes : Math.max(4096, needed * 2)),
    );
    kept.copy(grown, 0, 0, at);
    kept = grown;
  };

  /** Rotates the ring in place so that its oldest byte follows the head: reversing both parts and then the whole swaps
   * them. */
  const straighten = (): void => {
    for (const part of [kept.subarray(headBytes, at), kept.subarray(at), kept.subarray(headBytes)]) part.reverse();
    at = roomBytes;
  };
  const isWrapped = (): boolean => totalBytes > roomBytes;
  const lastBytes = (count: number): Buffer => {
    const behind = at - headBytes;
    if (!isWrapped() || behind >= count) return kept.subarray(Math.max(0, at - count), at);
    return Buffer.concat([kept.subarray(Math.max(at, roomBytes - (count - behind))), kept.subarray(headBytes, at)]);
  };

  return {
    add(chunk) {
      totalBytes += chunk.length;
      if (totalBytes <= roomBytes) grow(totalBytes);
      else if (kept.length < roomBytes) grow(roomBytes);
      for (let from = 0; from < chunk.length;) {
        if (at === roomBytes) at = headBytes;
        const left = chunk.length - from;
        const part = from === 0 && left <= roomBytes - at ? chunk : chunk.subarray(from, from + roomBytes - at);
        kept.set(part, at);
        at += part.length;
        from += part.length;
      }
    },
    get totalBytes() {
      return totalBytes;
    },
    tail: lastBytes,
    collected() {
      const start = kept.subarray(0, Math.min(headBytes, totalBytes));
      if (!isWrapped()) return clamped(shownText(kept.subarray(0, totalBytes)), maxBytes, totalBytes);
      straighten();
      const parts = cutBytes(kept, headBytes, maxBytes, totalBytes) ?? [
        clampEnds(shownText(withoutCutEnd(start)), shownText(withoutCutStart(kept.subarray(headBytes))), {
          maxBytes,
          marker: plainMarker,
          totalBytes,
        }).text,
      ];
      kept = Buffer.alloc(0);
      return { parts, totalBytes, truncated: true };
    },
  };
}

/** Does what `clampEnds` does, on the two ends in `kept`, of which the second begins at `secondAt`. Returns null if
 * they are not plain text. */
function cutBytes(kept: Buffer, secondAt: number, maxBytes: number, totalBytes: number): readonly string[] | null {
  const room = maxBytes - Buffer.byteLength(plainMarker(totalBytes)) - 2;
  if (room < 2) return null;
  const head = withoutCutEnd(kept.subarray(0, Math.ceil(room / 2)));
  const tail = withoutCutStart(kept.subarray(Math.max(secondAt, kept.length - Math.floor(room / 2))));
  if (![head, tail].every((part) => isUtf8(part) && !part.includes(0))) return null;
  return [head.toString('utf8'), `\n${plainMarker(totalBytes - head.length - tail.length)}\n`, tail.toString('utf8')];
}

function clamped(text: string, maxBytes: number, totalBytes: number): CollectedOutput {
  const known = Math.max(totalBytes, 0);
  const cut = clampText(text, maxBytes, plainMarker, known > maxBytes ? known : undefined);
  return { parts: [cut.text], totalBytes, truncated: cut.omittedBytes > 0 };
}

function shownText(bytes: Uint8Array): string {
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (!view.includes(0)) return view.toString('utf8');
  const { encoding } = sniffEncoding(view);
  if (encoding !== 'utf-8') return new TextDecoder(encoding).decode(view);
  const text = view.toString('utf8');
  // A single NUL separates names (`find -print0`), a row of them is found in binary data alone.
  return text.includes('\0\0\0') ? withoutBinaryLines(view) : text.replaceAll('\0', String.raw`\0`);
}

/** Replaces the lines that are not plain text by their size. What programs print beside binary data stays. */
function withoutBinaryLines(bytes: Buffer): string {
  const shown: string[] = [];
  let binaryBytes = 0;
  const endBinary = (): void => {
    if (binaryBytes > 0) shown.push(`[binary, ${binaryBytes} bytes]`);
    binaryBytes = 0;
  };
  for (let from = 0; from < bytes.length;) {
    const end = bytes.indexOf(10, from);
    const line = bytes.subarray(from, end < 0 ? bytes.length : end);
    from += line.length + 1;
    const text = line.toString('utf8');
    if (isPlainLine(text)) {
      endBinary();
      shown.push(text);
    } else binaryBytes += line.length + (end < 0 ? 0 : 1);
  }
  endBinary();
  return shown.join('\n') + (bytes.at(-1) === 10 ? '\n' : '');
}

/** A line of two characters is as likely a part of binary data. */
function isPlainLine(line: string): boolean {
  // oxlint-disable-next-line no-control-regex -- control characters are what is looked for
  return line.trim().length > 2 && !/[\0-\x08\x0e-\x1a\x1c-\x1f\x7f\uFFFD]/.test(line);
}

/** Returns `bytes` without an incomplete character at the end. */
export function withoutCutEnd(bytes: Buffer): Buffer {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] ?? 0;
    if (byte < 0x80) break;
    if (byte < 0xc0) continue;
    const needed = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
    return needed > back ? bytes.subarray(0, bytes.length - back) : bytes;
  }
  return bytes;
}

/** Returns `bytes` without the continuation bytes of a character that began before them. */
function withoutCutStart(bytes: Buffer): Buffer {
  let start = 0;
  while (start < Math.min(3, bytes.length) && ((bytes[start] ?? 0) & 0xc0) === 0x80) start++;
  return bytes.subarray(start);
}

/** Shows output while it comes in: at most one chunk in each interval, of about 8 KiB at most, so that a flood costs
 * almost nothing. */
export interface ProgressStream {
  /** Reports that the source has more bytes. */
  moved(): void;
  /** Sends the rest and stops the timer. */
  end(): void;
}

const intervalMs = 50;
const maxChunkBytes = 8192;

/** Reads the bytes of `source` only when a chunk is due. `mask` hides secrets. */
export function createProgressStream(
  source: Pick<OutputCollector, 'totalBytes' | 'tail'>,
  send: (chunk: string) => void,
  mask?: StreamMask,
): ProgressStream {
  /** If the start of a secret was dropped, its rest is within this many characters. */
  const suspectChars = mask?.longest ?? 0;
  const maxBytes = maxChunkBytes + suspectChars * 3;
  let seenBytes = 0;
  let timer: NodeJS.Timeout | undefined;

  const shown = (text: string, dropped: boolean, last: boolean): string => {
    if (!mask) return text;
    if (dropped) mask.skip();
    const masked = mask.add(text) + (last ? mask.end() : '');
    return dropped ? masked.slice(suspectChars) : masked;
  };
  const flush = (last: boolean): void => {
    timer = undefined;
    const newBytes = source.totalBytes - seenBytes;
    const newest = source.tail(Math.min(newBytes, maxBytes));
    const dropped = newest.length < newBytes;
    const waiting = dropped ? withoutCutStart(newest) : newest;
    const whole = last ? waiting : withoutCutEnd(waiting);
    seenBytes = source.totalBytes - (waiting.length - whole.length);
    const text = shown(whole.toString('utf8'), dropped, last);
    if (text !== '') send(text);
  };

  return {
    moved() {
      timer ??= setTimeout(() => {
        flush(false);
      }, intervalMs);
    },
    end() {
      clearTimeout(timer);
      flush(true);
    },
  };
}
