import { type Event, type EventDraft, knownEvent, type LimitData } from '../core/event.js';
import type { Form, FormAnswer } from '../core/form.js';
import type { ModelRef } from '../core/projection.js';
import type { Schedule } from '../core/runtime.js';
import type { AgentEvent } from '../core/session-port.js';

/** A usage limit that stops a turn. */
export interface ReachedLimit {
  readonly provider: string;
  readonly model: string;
  /** Unix milliseconds. */
  readonly retryAt: number;
  /** The words of the provider. */
  readonly message: string;
  /** The number of waits before this one that no answer followed. */
  readonly again: number;
  /** The last event about this limit, where an earlier process recorded it. */
  readonly restored: LimitData['state'] | null;
}

/** The session whose turn is stopped, as far as a wait needs it. */
export interface LimitedSession {
  readonly id: string;
  readonly append: (draft: EventDraft) => Promise<Event>;
  readonly emit: (event: AgentEvent) => void;
  /** The model of the next request. */
  readonly ref: () => ModelRef;
  /** Absent: no user can be asked. */
  readonly putForm?: (form: Form, signal: AbortSignal) => Promise<FormAnswer>;
  /** `now`: Unix milliseconds. */
  readonly host: { readonly now: () => number; readonly schedule: Schedule };
}

/** Waits for the end of a usage limit, if that is wanted. Returns true if the request is to be sent again. An aborted
 * `signal` ends the wait; with the reason `leaving` the session is left and the wait stays. Never rejects. */
export type WaitForLimit = (limit: ReachedLimit, session: LimitedSession, signal: AbortSignal) => Promise<boolean>;

/** The reason with which a turn is aborted whose session is left. */
export const leaving = 'leaving';

/** The usage limit at which the last turn of a session stopped. */
export interface PendingLimit extends LimitData {
  readonly seq: number;
}

/** Kinds of events after which a turn has moved on. */
const progress: ReadonlySet<string> = new Set(['assistant', 'tool_call', 'tool_result', 'rewind']);

/** Returns the usage limit at which the last turn stopped and from which it can continue; null if there is none, the
 * turn has moved on, or the user has sent something else or ended the wait. */
export function pendingLimit(events: readonly Event[]): PendingLimit | null {
  const found = lastLimit(events);
  return found === null || found.state === 'ended' ? null : found;
}

/** Returns what `pendingLimit` does, and also a limit whose wait was ended. */
export function lastLimit(events: readonly Event[]): PendingLimit | null {
  let hasFailed = false;
  for (let at = events.length - 1; at >= 0; at--) {
    const raw = events[at];
    const event = raw ? knownEvent(raw) : null;
    if (event === null) continue;
    if (event.kind === 'limit') {
      // A request that failed for another reason after the wait: the user has seen the error.
      return event.data.state === 'continued' && hasFailed ? null : { ...event.data, seq: event.seq };
    }
    if (event.kind === 'error') hasFailed = true;
    if (progress.has(event.kind) || (event.kind === 'user' && event.data?.note !== true)) return null;
  }
  return null;
}

/** Returns true while a turn of the session of these events waits for the end of a usage limit. */
export function waitsForLimit(events: readonly Event[]): boolean {
  return pendingLimit(events)?.state === 'set';
}
