import type { StreamMask } from '../core/stream-mask.js';
import { withoutCutEnd, withoutCutStart } from './output-collector.js';

/** Turns a byte stream into chunks for the screen: at most one per interval, each of some 8 KiB at most, so that a flood costs almost nothing. */
export interface ProgressStream {
  add(chunk: Uint8Array): void;
  /** Sends what is left and stops the timer. */
  end(): void;
}

const intervalMs = 50;
const maxChunkBytes = 8192;

/** `mask` hides what must not be shown. */
export function createProgressStream(send: (chunk: string) => void, mask?: StreamMask): ProgressStream {
  /** Where the start of a hidden text may have been dropped, its rest is among the first characters that are kept. */
  const suspectChars = mask?.longest ?? 0;
  const maxBytes = maxChunkBytes + suspectChars * 3;
  let pending = Buffer.alloc(0);
  let length = 0;
  let dropped = false;
  let timer: NodeJS.Timeout | undefined;

  const shown = (text: string, last: boolean): string => {
    if (!mask) return text;
    if (dropped) mask.skip();
    const masked = mask.add(text) + (last ? mask.end() : '');
    return dropped ? masked.slice(suspectChars) : masked;
  };
  const flush = (last: boolean): void => {
    timer = undefined;
    const waiting = pending.subarray(0, length);
    const whole = last ? waiting : withoutCutEnd(waiting);
    const text = shown(whole.toString('utf8'), last);
    pending.copyWithin(0, whole.length, length);
    length -= whole.length;
    dropped = false;
    if (text !== '') send(text);
  };

  return {
    add(chunk) {
      if (pending.length === 0) pending = Buffer.allocUnsafe(maxBytes);
      const tail = chunk.subarray(Math.max(0, chunk.length - maxBytes));
      const over = length + tail.length - maxBytes;
      if (over > 0) {
        pending.copyWithin(0, over, length);
        length = Math.max(0, length - over);
      }
      pending.set(tail, length);
      length += tail.length;
      if (over > 0 || tail.length < chunk.length) {
        length -= dropCutStart(pending, length);
        dropped = true;
      }
      timer ??= setTimeout(() => { flush(false); }, intervalMs);
    },
    end() {
      clearTimeout(timer);
      flush(true);
    },
  };
}

/** Moves what is left of a character that began before the first byte out, and says how many bytes that were. */
function dropCutStart(bytes: Buffer, length: number): number {
  const dropped = length - withoutCutStart(bytes.subarray(0, length)).length;
  if (dropped > 0) bytes.copyWithin(0, dropped, length);
  return dropped;
}
