import { withoutCutEnd, withoutCutStart } from './output-collector.js';

/** Turns a byte stream into chunks for the screen: at most one per interval, each at most 8 KiB, so that a flood costs almost nothing. */
export interface ProgressStream {
  add(chunk: Uint8Array): void;
  /** Sends what is left and stops the timer. */
  end(): void;
}

const intervalMs = 50;
const maxChunkBytes = 8192;

export function createProgressStream(send: (chunk: string) => void): ProgressStream {
  let pending = Buffer.alloc(0);
  let length = 0;
  let timer: NodeJS.Timeout | undefined;

  const flush = (last: boolean): void => {
    timer = undefined;
    const waiting = pending.subarray(0, length);
    const whole = last ? waiting : withoutCutEnd(waiting);
    const text = whole.toString('utf8');
    pending.copyWithin(0, whole.length, length);
    length -= whole.length;
    if (text !== '') send(text);
  };

  return {
    add(chunk) {
      if (pending.length === 0) pending = Buffer.allocUnsafe(maxChunkBytes);
      const tail = chunk.subarray(Math.max(0, chunk.length - maxChunkBytes));
      const over = length + tail.length - maxChunkBytes;
      if (over > 0) {
        pending.copyWithin(0, over, length);
        length -= over;
      }
      pending.set(tail, length);
      length += tail.length;
      if (over > 0) length -= dropCutStart(pending, length);
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
