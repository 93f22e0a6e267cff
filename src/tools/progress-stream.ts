import type { StreamMask } from '../core/secrets/guard.js';
import { withoutCutEnd, withoutCutStart, type OutputCollector } from './output-collector.js';

/** Shows what comes in as text: at most one chunk per interval, each of some 8 KiB at most, so that a flood costs
 * almost nothing. */
export interface ProgressStream {
  /** There is more. */
  moved(): void;
  /** Sends what is left and stops the timer. */
  end(): void;
}

const intervalMs = 50;
const maxChunkBytes = 8192;

/** The bytes are looked at when a chunk is due, and not before. `mask` hides what must not be shown. */
export function createProgressStream(
  source: Pick<OutputCollector, 'totalBytes' | 'tail'>,
  send: (chunk: string) => void,
  mask?: StreamMask,
): ProgressStream {
  /** Where the start of a hidden text may have been dropped, its rest is among the first characters that are kept. */
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
