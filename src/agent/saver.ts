import type { Event } from '../core/event.js';
import type { Blob, Store, Synced } from '../core/store.js';

/** Brings events to the store in the order they were given. */
export interface Saver {
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

export interface SaverOptions {
  readonly store: Store;
  readonly sessionId: string;
  /** Makes the session's row and takes its lease; called before the first event is saved, again when that failed. */
  readonly begin?: () => Promise<void>;
  /** Told once why nothing can be saved. */
  readonly warn: (reason: string) => void;
}

export function createSaver({ store, sessionId, begin, warn }: SaverOptions): Saver {
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
