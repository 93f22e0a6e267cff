import type { Schedule } from './ports.js';

/** A question takes keys once it has stood on the screen, and no key has come, for this long: until then somebody types
 * something else. */
export const pauseMs = 700;

/** Timers by name: setting one takes back the one of that name before it. */
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
