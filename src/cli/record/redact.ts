import type { Event } from '../../core/event.js';
import { exportGuard, type Secret } from '../secrets.js';

export interface Redactor {
  text(value: string): string;
  event(event: Event): Event;
  /** How many places were masked so far. */
  count(): number;
}

/** Masks the given values, those of variables that are named like secrets, and whatever looks like one, as a session
 * does: in what texts say, also inside JSON. What a provider sealed for itself (`reasoning`) loses only the given
 * values: another change would make it worthless. */
export function createRedactor(
  env: Readonly<Record<string, string | undefined>>,
  secrets: readonly Secret[],
): Redactor {
  const guard = exportGuard(env, secrets, '[redacted]');
  return { text: (value) => guard.text(value), event: (event) => guard.event(event), count: () => guard.count() };
}
