import { createKeyDecoder, type InputEvent } from './key-decoder.js';
import type { InputPort, Schedule } from '../ports.js';

/** How long an escape may be the beginning of something longer. */
const escapeDelayMs = 30;

/** Listens to the terminal and hands on whole keys. Returns what stops it. `early` is what arrived before there was a
 * reader. */
export function readKeys(
  input: InputPort,
  schedule: Schedule,
  onEvents: (events: readonly InputEvent[]) => void,
  early: readonly (Uint8Array | string)[] = [],
): () => void {
  const decoder = createKeyDecoder();
  let cancel: (() => void) | null = null;
  const take = (chunk: Uint8Array | string): void => {
    cancel?.();
    cancel = null;
    const events = decoder.decode(chunk);
    if (events.length > 0) onEvents(events);
    if (decoder.waiting())
      cancel = schedule(() => {
        cancel = null;
        const late = decoder.flush();
        if (late.length > 0) onEvents(late);
      }, escapeDelayMs);
  };
  for (const chunk of early) take(chunk);
  input.on('data', take);
  return () => {
    cancel?.();
    input.off('data', take);
  };
}
