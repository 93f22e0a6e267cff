import type { Schedule } from '../../kernel/core/runtime.js';
import type { InputEvent } from './keyboard.js';
import { createKeyDecoder } from './key-decoder.js';
import type { InputPort } from './streams.js';

/** Listens to the terminal and calls back with whole keys, and with whether its window has the focus where it reports
 * that. Returns a function that stops it. `early`: input that arrived before. `ask`: asks the terminal for a sign of
 * life. Its answer comes behind everything that it has sent before, so that an escape in front of it is the key Escape
 * and not the beginning of a sequence that a slow line has cut. */
export function readKeys(
  input: InputPort,
  schedule: Schedule,
  on: {
    readonly onKeys: (events: readonly InputEvent[]) => void;
    readonly onFocus?: (has: boolean) => void;
    readonly ask?: () => void;
  },
  early: readonly (Uint8Array | string)[] = [],
): () => void {
  const decoder = createKeyDecoder(on.onFocus);
  let cancel: (() => void) | null = null;
  const give = (events: readonly InputEvent[]): void => {
    if (events.length > 0) on.onKeys(events);
  };
  const wait = (): void => {
    const waitMs = decoder.waitMs();
    if (waitMs === null) return;
    cancel = schedule(() => {
      cancel = null;
      give(decoder.flush());
      wait();
    }, waitMs);
  };
  const take = (chunk: Uint8Array | string): void => {
    cancel?.();
    cancel = null;
    const heldEscape = decoder.holdsEscape();
    give(decoder.decode(chunk));
    if (decoder.holdsEscape() && !heldEscape) on.ask?.();
    wait();
  };
  for (const chunk of early) take(chunk);
  input.on('data', take);
  return () => {
    cancel?.();
    input.off('data', take);
  };
}
