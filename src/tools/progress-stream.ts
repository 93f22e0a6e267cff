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
  let pending: Buffer = Buffer.alloc(0);
  let timer: NodeJS.Timeout | undefined;

  const flush = (last: boolean): void => {
    timer = undefined;
    const whole = last ? pending : withoutCutEnd(pending);
    const held = pending.subarray(whole.length);
    pending = Buffer.from(held);
    if (whole.length > 0) send(whole.toString('utf8'));
  };

  return {
    add(chunk) {
      const tail = chunk.subarray(Math.max(0, chunk.length - maxChunkBytes));
      const joined = Buffer.concat([pending, tail]);
      pending = joined.length > maxChunkBytes ? withoutCutStart(Buffer.from(joined.subarray(joined.length - maxChunkBytes))) : joined;
      timer ??= setTimeout(() => { flush(false); }, intervalMs);
    },
    end() {
      clearTimeout(timer);
      flush(true);
    },
  };
}
