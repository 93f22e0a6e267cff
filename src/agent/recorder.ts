import type { Event, EventDraft } from '../core/event.js';
import { createProjection, type Projection } from '../core/projection.js';
import type { SecretGuard } from '../core/secrets/guard.js';
import type { AgentEvent } from '../core/session.js';
import type { Blob, Store, Synced } from '../core/store.js';
import { wellFormedDeep } from '../core/text.js';

/** The events of one session: memory first, then the store, then the listeners. */
export interface Recorder {
  /** Durable when it resolves, unless the store fails: then the session goes on in memory, the reader is warned once,
   * and what is unsaved is tried again, in order, with every later event. Never rejects. */
  append(draft: EventDraft, blobs?: readonly Blob[]): Promise<Event>;
  /** For an event nothing acts on before another follows: it reaches the disk with that one, and listeners hear of both
   * then. */
  note(draft: EventDraft): Promise<Event>;
  /** Brings to the disk, and to the listeners, what was noted. */
  settle(): Promise<void>;
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
  /** As a saver's `begin`. */
  readonly begin?: () => Promise<void>;
  /** Takes out what must never be recorded, before anything sees the event. */
  readonly secrets?: SecretGuard;
}

/** Most placeholders that a notice names. */
const maxNamedMarks = 3;

export function createRecorder(options: RecorderOptions): Recorder {
  const { store, sessionId, now, emit } = options;
  const events: Event[] = [...options.restored];
  const projection = createProjection();
  for (const event of events) projection.add(event);
  /** Saved, and not told yet because a power cut could still take it. */
  const untold: Event[] = [];
  const saver = createSaver({
    store,
    sessionId,
    ...(options.begin ? { begin: options.begin } : {}),
    warn: (reason) => {
      emit({
        type: 'notice',
        level: 'warn',
        code: 'store_failed',
        message: `The session cannot be saved: ${reason}. It goes on in memory; unsaved events are tried again with each new one.`,
      });
    },
  });

  const add = async (given: EventDraft, blobs: readonly Blob[], synced: Synced): Promise<Event> => {
    const draft = options.secrets?.event(given) ?? given;
    const event: Event = wellFormedDeep({
      seq: (events.at(-1)?.seq ?? 0) + 1,
      kind: draft.kind,
      content: draft.content,
      data: draft.data,
      createdAt: now(),
    });
    events.push(event);
    projection.add(event);
    await saver.save(event, blobs, synced);
    untold.push(event);
    return event;
  };

  const tell = (): void => {
    for (const event of untold.splice(0)) emit({ type: 'event', event });
    const seen = options.secrets?.takeSeen();
    if (!seen) return;
    const marks =
      seen.placeholders.slice(0, maxNamedMarks).join(' ') + (seen.placeholders.length > maxNamedMarks ? ' …' : '');
    emit({
      type: 'notice',
      level: 'info',
      code: 'secret_masked',
      message: `secret seen, masked ×${seen.count}: ${marks} (secrets.unmasked and secrets.mask switch this off)`,
    });
  };

  return {
    projection,
    events: () => events,
    unsaved: () => saver.unsaved(),
    flush: () => saver.flush(),
    blob: async (sha256) => saver.unsavedBlob(sha256) ?? (await store.blob(sha256)),
    append: async (draft, blobs = []) => {
      const event = await add(draft, blobs, 'now');
      tell();
      return event;
    },
    note: (draft) => add(draft, [], 'later'),
    settle: async () => {
      if (untold.length === 0) return;
      await saver.sync();
      tell();
    },
  };
}

/** Brings events to the store in the order they were given. */
interface Saver {
  /** Resolves once it was tried, and what was unsaved before it. Never rejects: a failing store keeps events
   * waiting. */
  save(event: Event, blobs: readonly Blob[], synced: Synced): Promise<void>;
  /** Brings to the disk what is saved and may still be lost in a power cut. Never rejects: a disk that refuses is told
   * of as a store that fails. */
  sync(): Promise<void>;
  /** One more try to save what is unsaved. */
  flush(): Promise<void>;
  unsaved(): number;
  /** Contents of an event that is not saved yet. */
  unsavedBlob(sha256: string): Uint8Array | null;
}

interface SaverOptions {
  readonly store: Store;
  readonly sessionId: string;
  /** Makes the session's row and takes its lease; called before the first event is saved, again when that failed. */
  readonly begin?: () => Promise<void>;
  /** Told once why nothing can be saved. */
  readonly warn: (reason: string) => void;
}

function createSaver({ store, sessionId, begin, warn }: SaverOptions): Saver {
  const pending: { readonly event: Event; readonly blobs: readonly Blob[]; readonly synced: Synced }[] = [];
  let begun = begin === undefined;
  let warned = false;
  let saving: Promise<void> = Promise.resolve();

  const fail = (error: unknown): void => {
    if (!warned) warn(error instanceof Error ? error.message : String(error));
    warned = true;
  };

  const saveAll = async (): Promise<void> => {
    if (pending.length === 0) return;
    try {
      if (!begun) {
        await begin?.();
        begun = true;
      }
      for (let next = pending[0]; next !== undefined; next = pending[0]) {
        await store.append(sessionId, next.event, next.blobs, next.synced);
        pending.shift();
      }
    } catch (error) {
      fail(error);
    }
  };

  const syncAll = async (): Promise<void> => {
    await saveAll();
    try {
      await store.sync(sessionId);
    } catch (error) {
      fail(error);
    }
  };

  const flush = (): Promise<void> => {
    saving = saving.then(saveAll);
    return saving;
  };

  return {
    flush,
    sync: () => {
      saving = saving.then(syncAll);
      return saving;
    },
    save: (event, blobs, synced) => {
      pending.push({ event, blobs, synced });
      return flush();
    },
    unsaved: () => pending.length,
    unsavedBlob: (sha256) =>
      pending.flatMap((item) => item.blobs).find((item) => item.sha256 === sha256)?.bytes ?? null,
  };
}
