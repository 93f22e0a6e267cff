import type { Event } from '../../core/event.js';
import type { ModelRef } from '../../core/projection.js';
import type { AgentEvent, QueuedMessage, SessionPort } from '../../core/session-port.js';
import type { SessionRow, Store } from '../../core/store.js';
import { chosenRow, directoryId, type SessionChoice } from '../session/find-session.js';

/** A session with fewer events is read without a delay that a person would see. */
const longSession = 5_000;
const shownEvents = 500;

export interface SessionEnd {
  readonly session: SessionPort;
  readonly title: string | null;
}

/** Returns the end of a long session that is resumed as it is, to be shown while the rest is read; null for any
 * other. */
export async function endOfSession(store: Store, choice: SessionChoice, cwd: string): Promise<SessionEnd | null> {
  if (choice.fork || choice.at !== undefined) return null;
  try {
    const row = await chosenRow(store, choice, { cwd, directoryId: directoryId(cwd) ?? undefined });
    if (row === null) return null;
    const [last] = await store.tail(row.id, 1);
    if (last === undefined || last.seq < longSession) return null;
    const events = await store.tail(row.id, shownEvents);
    return showsAnExchange(events) ? { session: waitingSession(row, cwd, events), title: row.title } : null;
  } catch {
    return null; // Opening the whole session says what is wrong.
  }
}

/** A rewind may reach further back than these events. */
function showsAnExchange(events: readonly Event[]): boolean {
  return events.some(({ kind }) => kind === 'user') && !events.some(({ kind }) => kind === 'rewind');
}

/** Makes a session of the last events alone. Messages wait in its queue until the whole session is there. */
function waitingSession(row: SessionRow, cwd: string, events: readonly Event[]): SessionPort {
  const listeners = new Set<(event: AgentEvent) => void>();
  let queue: readonly QueuedMessage[] = [];
  const setQueue = (next: readonly QueuedMessage[]): void => {
    queue = next;
    for (const listener of listeners) listener({ type: 'queue_changed', queue });
  };
  const ref: ModelRef = { provider: row.provider ?? '', api: row.api ?? '', model: row.model ?? '' };
  const nothing = (): void => {
    /* No turn runs and nothing is asked. */
  };
  return {
    id: row.id,
    cwd,
    ref: () => ref,
    busy: () => true,
    submit: () => Promise.reject(new Error('The session is still being read.')),
    enqueue: (message) => {
      setQueue([...queue, message]);
    },
    takeQueue: () => {
      const taken = queue;
      if (taken.length > 0) setQueue([]);
      return taken;
    },
    interrupt: nothing,
    answer: nothing,
    switchModel: () => Promise.reject(new Error('The session is still being read.')),
    subscribe: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    events: () => events,
  };
}
