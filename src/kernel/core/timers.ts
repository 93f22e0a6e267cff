import type { Clock, Schedule } from './runtime.js';

/** A question takes keys after it has been on the screen for this long without a key: before that, somebody is typing
 * something else. */
export const pauseMs = 700;

/** A call is shown as running once it has taken this long; most are done before. */
export const patienceMs = 150;

/** Named timers. Setting a timer cancels the one with the same name. */
export interface Timers {
  set(name: string, delayMs: number, callback: () => void): void;
  has(name: string): boolean;
  clear(): void;
}

export function createTimers(schedule: Schedule): Timers {
  const cancels = new Map<string, () => void>();
  return {
    set: (name, delayMs, callback) => {
      cancels.get(name)?.();
      cancels.set(
        name,
        schedule(() => {
          cancels.delete(name);
          callback();
        }, delayMs),
      );
    },
    has: (name) => cancels.has(name),
    clear: () => {
      for (const cancel of cancels.values()) cancel();
      cancels.clear();
    },
  };
}

const windowMs = 2_000;

/** Leaving by the key that cancels, twice within two seconds; a hint says so in between. */
export interface Leaving {
  /** Notes a press. Returns true for the second one. */
  pressed(): boolean;
  hint(): string | null;
  /** Forgets the first press, because the user did something else. */
  forget(): void;
}

export function createLeaving(d: {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly onChange: () => void;
  /** The key that is pressed. */
  readonly key: string;
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
      hint = `${d.key} again to exit`;
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
