import type { Clock } from '../../kernel/core/runtime.js';
import type { Timers } from '../../kernel/core/timers.js';

/** The second press has to come within this time. */
const windowMs = 1_000;
/** Presses that were meant for what has just ended do not count: people press Esc more than once. */
const restMs = 1_000;

/** A key that acts when it is pressed twice. A hint says so in between. */
export interface DoubledKey {
  /** Notes a press. Returns true for the second one. `does`: what the next press does. */
  pressed(does: string): boolean;
  hint(): string | null;
  /** Forgets the first press, because the user did something else. */
  forget(): void;
  /** Ignores presses for a moment, because this one had another effect. */
  rest(): void;
}

export function createDoubledKey(d: {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly onChange: () => void;
  /** As people write it. */
  readonly key: string;
}): DoubledKey {
  let hint: string | null = null;
  let untilMs = 0;
  let restUntilMs = 0;
  const forget = (): void => {
    hint = null;
    untilMs = 0;
  };
  return {
    pressed: (does) => {
      const nowMs = d.clock();
      if (nowMs < restUntilMs) return false;
      const isSecond = nowMs < untilMs;
      forget();
      if (isSecond) return true;
      untilMs = nowMs + windowMs;
      hint = `${d.key} ${does}`;
      d.timers.set('doubled key', windowMs, () => {
        forget();
        d.onChange();
      });
      return false;
    },
    hint: () => hint,
    forget,
    rest: () => {
      forget();
      restUntilMs = d.clock() + restMs;
    },
  };
}
