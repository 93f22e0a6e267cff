import { clampEnds, clampText, plainMarker } from '../core/clamp.js';

/** What a process printed, cut to the budget. */
export interface CollectedOutput { readonly text: string; readonly totalBytes: number; readonly truncated: boolean }

/** Keeps the head and the tail of a byte stream, and counts the rest: memory stays below about three times the budget however much comes. */
export interface OutputCollector {
  /** Copies what it keeps of `chunk`. */
  add(chunk: Uint8Array): void;
  readonly totalBytes: number;
  /** Decoded as UTF-8 with U+FFFD for what is not, NUL as `\0`; binary output as one line `binary, N bytes`. */
  collected(): CollectedOutput;
}

const sniffBytes = 8192;
// oxlint-disable-next-line no-control-regex -- NUL is what is looked for
const nulRow = /\0{3,}/g;
/** Room for the characters that stand across the cuts. */
const slackBytes = 8;

export function createOutputCollector(maxBytes: number): OutputCollector {
  const keepBytes = Math.ceil(maxBytes / 2) + slackBytes;
  let head = Buffer.alloc(0);
  let headBytes = 0;
  let ring = Buffer.alloc(0);
  let ringAt = 0;
  let totalBytes = 0;

  const intoHead = (chunk: Uint8Array): Uint8Array => {
    const part = chunk.subarray(0, keepBytes - headBytes);
    if (headBytes + part.length > head.length) {
      const grown = Buffer.allocUnsafe(Math.min(keepBytes, Math.max(4096, (headBytes + part.length) * 2)));
      head.copy(grown, 0, 0, headBytes);
      head = grown;
    }
    head.set(part, headBytes);
    headBytes += part.length;
    return chunk.subarray(part.length);
  };

  const intoRing = (chunk: Uint8Array): void => {
    if (ring.length === 0) ring = Buffer.allocUnsafe(keepBytes);
    const part = chunk.subarray(Math.max(0, chunk.length - keepBytes));
    const first = part.subarray(0, keepBytes - ringAt);
    ring.set(first, ringAt);
    ring.set(part.subarray(first.length), 0);
    ringAt = (ringAt + part.length) % keepBytes;
  };

  const tail = (): Buffer => {
    const after = totalBytes - headBytes;
    if (after <= keepBytes) return ring.subarray(0, after);
    return Buffer.concat([ring.subarray(ringAt), ring.subarray(0, ringAt)]);
  };

  return {
    add(chunk) {
      totalBytes += chunk.length;
      const rest = headBytes < keepBytes ? intoHead(chunk) : chunk;
      if (rest.length > 0) intoRing(rest);
    },
    get totalBytes() { return totalBytes; },
    collected() {
      const start = head.subarray(0, headBytes);
      if (looksBinary(start.subarray(0, sniffBytes))) return { text: `binary, ${totalBytes} bytes`, totalBytes, truncated: false };
      const contiguous = totalBytes <= headBytes + keepBytes;
      if (contiguous) return clamped(shownText(Buffer.concat([start, tail()])), maxBytes, totalBytes);
      const cut = clampEnds(shownText(withoutCutEnd(start)), shownText(withoutCutStart(tail())), { maxBytes, marker: plainMarker, totalBytes });
      return { text: cut.text, totalBytes, truncated: true };
    },
  };
}

function clamped(text: string, maxBytes: number, totalBytes: number): CollectedOutput {
  const known = Math.max(totalBytes, 0);
  const cut = clampText(text, maxBytes, plainMarker, known > maxBytes ? known : undefined);
  return { text: cut.text, totalBytes, truncated: cut.omittedBytes > 0 };
}

function shownText(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8').replaceAll('\0', String.raw`\0`);
}

/** Shares say nothing of less. */
const leastJudgedBytes = 512;

/** More than 1 % of it rows of NULs, or more than 10 % that is not UTF-8. A NUL by itself separates names (`find -print0`). */
function looksBinary(sample: Buffer): boolean {
  if (sample.length < leastJudgedBytes) return false;
  let padding = 0;
  for (const [row] of sample.includes(0) ? sample.toString('latin1').matchAll(nulRow) : []) padding += row.length;
  if (padding * 100 > sample.length) return true;
  const replaced = withoutCutEnd(sample).toString('utf8').split('\uFFFD').length - 1;
  return replaced * 10 > sample.length;
}

/** `bytes` without an incomplete character at its end. */
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

/** `bytes` without the continuation bytes of a character that began before them. */
export function withoutCutStart(bytes: Buffer): Buffer {
  let start = 0;
  while (start < Math.min(3, bytes.length) && ((bytes[start] ?? 0) & 0xc0) === 0x80) start++;
  return bytes.subarray(start);
}
