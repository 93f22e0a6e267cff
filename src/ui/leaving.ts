import type { Clock } from './ports.js';
import type { Timers } from './timers.js';

const windowMs = 2_000;

/** Ctrl-C twice within two seconds leaves; in between a hint says so. */
export interface Leaving {
  /** True: this press is the second one. */
  pressed(): boolean;
  hint(): string | null;
  /** Something else was done in between. */
  forget(): void;
}

export function createLeaving(d: {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly onChange: () => void;
}): Leaving {
  let hint: string | null = null;
  let untilMs = 0;
  const forget = (): void => {
    hint = null;
    untilMs = 0;
  };
  return {
    pressed: () => {
      const nowMs = d.clock();
      if (nowMs < untilMs) return true;
      untilMs = nowMs + windowMs;
      hint = 'Ctrl-C again leaves';
      d.timers.set('hint', windowMs, () => {
        forget();
        d.onChange();
      });
      return false;
    },
    hint: () => hint,
    forget,
  };
}
