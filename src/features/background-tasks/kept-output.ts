import { withoutCutEnd } from '../../kernel/tools/process/output-collector.js';

/** A part of what was printed. */
export interface OutputPart {
  readonly text: string;
  /** The place of its first byte in all that was printed: later than asked for where that is kept no longer. */
  readonly from: number;
  /** The place of the next part. */
  readonly next: number;
}

/** The last bytes of a stream, with their places in all of it. */
export interface KeptOutput {
  /** Copies the chunk. */
  add(chunk: Uint8Array): void;
  readonly totalBytes: number;
  /** Returns what was printed from a place on, at most `maxBytes`; with null the end of it. */
  part(since: number | null, maxBytes: number): OutputPart;
}

/** Small chunks are put together up to this size. */
const blockBytes = 16_384;

/** Keeps `maxBytes` at least, and one chunk more at most. */
export function createKeptOutput(maxBytes: number): KeptOutput {
  const blocks: Buffer[] = [];
  let keptBytes = 0;
  let totalBytes = 0;
  return {
    add(chunk) {
      totalBytes += chunk.length;
      keptBytes += chunk.length;
      const last = blocks.at(-1);
      if (last && last.length + chunk.length <= blockBytes) blocks[blocks.length - 1] = Buffer.concat([last, chunk]);
      else blocks.push(Buffer.from(chunk));
      while (keptBytes - (blocks[0]?.length ?? 0) >= maxBytes) keptBytes -= blocks.shift()?.length ?? 0;
    },
    get totalBytes() {
      return totalBytes;
    },
    part(since, most) {
      const oldest = totalBytes - keptBytes;
      const from = Math.min(totalBytes, Math.max(oldest, since ?? totalBytes - most));
      const bytes = Buffer.concat(blocks).subarray(from - oldest, from - oldest + most);
      // Where a part ends in the middle of a character, the next one has all of it.
      const whole = from + bytes.length < totalBytes ? withoutCutEnd(bytes) : bytes;
      const text = whole
        .toString('utf8')
        .replace(/^\uFFFD+/, '')
        .replaceAll('\0', String.raw`\0`);
      return { text, from, next: from + whole.length };
    },
  };
}
