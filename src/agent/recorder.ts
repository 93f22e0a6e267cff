import type { AgentEvent } from '../core/agent-event.js';
import type { Event, EventDraft } from '../core/event.js';
import { createProjection, type Projection } from '../core/project.js';
import type { Blob, Store } from '../core/store.js';
import { wellFormedDeep } from '../core/text.js';

/** The events of one session: memory first, then the store, then the listeners. */
export interface Recorder {
  /** Durable when it resolves, unless the store fails: then the session goes on in memory, the reader is warned once, and what is unsaved
   *  is tried again, in order, with every later event. Never rejects. */
  append(draft: EventDraft, blobs?: readonly Blob[]): Promise<Event>;
  /** Contents that an event refers to, also where the store could not take them yet. */
  blob(sha256: string): Promise<Uint8Array | null>;
  events(): readonly Event[];
  readonly projection: Projection;
  /** Events that are in memory only. */
  unsaved(): number;
  /** One more try to save what is unsaved. */
  flush(): Promise<void>;
}

export interface RecorderOptions {
  readonly store: Store;
  readonly sessionId: string;
  readonly now: () => number;
  readonly emit: (event: AgentEvent) => void;
  /** Events the store already holds. */
  readonly restored: readonly Event[];
  /** Makes the session's row; called before its first event is saved, again when that failed. Absent for a restored session. */
  readonly begin?: () => Promise<void>;
  /** Takes out what must never be recorded, before anything sees the event. */
  readonly mask?: (draft: EventDraft) => EventDraft;
}

export function createRecorder(options: RecorderOptions): Recorder {
  const { store, sessionId, now, emit } = options;
  const events: Event[] = [...options.restored];
  const projection = createProjection();
  for (const event of events) projection.add(event);
  const pending: { readonly event: Event; readonly blobs: readonly Blob[] }[] = [];
  let begun = options.begin === undefined;
  let warned = false;
  /** Appends are saved one after the other, in the order they were made. */
  let saving: Promise<void> = Promise.resolve();

  const save = async (): Promise<void> => {
    try {
      if (!begun) {
        await options.begin?.();
        begun = true;
      }
      for (let next = pending[0]; next !== undefined; next = pending[0]) {
        await store.append(sessionId, next.event, next.blobs);
        pending.shift();
      }
    } catch (error) {
      if (warned) return;
      warned = true;
      const reason = error instanceof Error ? error.message : String(error);
      emit({ type: 'notice', level: 'warn', code: 'store_failed', message: `The session cannot be saved: ${reason}. It goes on in memory; unsaved events are tried again with each new one.` });
    }
  };

  const flush = (): Promise<void> => {
    saving = saving.then(save);
    return saving;
  };

  return {
    projection,
    events: () => events,
    unsaved: () => pending.length,
    flush,
    blob: async (sha256) => {
      const unsaved = pending.flatMap((item) => item.blobs).find((item) => item.sha256 === sha256);
      return unsaved?.bytes ?? await store.blob(sha256);
    },
    append: async (given, blobs = []) => {
      const draft = options.mask?.(given) ?? given;
      const event: Event = wellFormedDeep({ seq: (events.at(-1)?.seq ?? 0) + 1, kind: draft.kind, content: draft.content, data: draft.data, createdAt: now() });
      events.push(event);
      projection.add(event);
      pending.push({ event, blobs });
      await flush();
      emit({ type: 'event', event });
      return event;
    },
  };
}
