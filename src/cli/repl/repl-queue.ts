import type { Log, QueuedMessage, SessionPort } from '../../core/session.js';
import type { Store } from '../../core/store.js';

/** What is sent or taken back is forgotten this much later, when it stands elsewhere on disk: as an event, or as the
 * draft. */
const forgetDelayMs = 500;

/** Keeps the queue of the session on the desk in the store, so that it survives a crash. Failures go to the log: the
 * session goes on. */
export interface QueueKeeper {
  /** Goes over to `session` and gives the texts that wait there since an earlier run, oldest first. */
  take(session: SessionPort): Promise<readonly string[]>;
  /** Writes what is still to be written. */
  close(): Promise<void>;
}

export function createQueueKeeper(store: Store, log: Log, mask: (text: string) => string): QueueKeeper {
  let leave = (): Promise<void> => Promise.resolve();
  const write = (sessionId: string, queue: readonly QueuedMessage[]): Promise<void> =>
    store
      .setQueue(
        sessionId,
        queue.map((message) => ({ ...message, text: mask(message.text) })),
      )
      .catch((error: unknown) => {
        log({ at: 'queue', message: String(error) });
      });

  const follow = (session: SessionPort, before: number): (() => Promise<void>) => {
    let kept = before;
    let latest: readonly QueuedMessage[] = [];
    let timer: NodeJS.Timeout | null = null;
    const save = (): Promise<void> => {
      if (timer) clearTimeout(timer);
      timer = null;
      kept = latest.length;
      return write(session.id, latest);
    };
    const later = (): void => {
      timer ??= setTimeout(() => void save(), forgetDelayMs);
    };
    if (before > 0) later();
    const stop = session.subscribe((event) => {
      if (event.type !== 'queue_changed') return;
      latest = event.queue;
      if (latest.length > kept) void save();
      else later();
    });
    return async () => {
      stop();
      if (timer) await save();
    };
  };

  return {
    take: async (session) => {
      await leave();
      const waiting = await store.queue(session.id).catch((error: unknown): readonly QueuedMessage[] => {
        log({ at: 'queue', message: String(error) });
        return [];
      });
      leave = follow(session, waiting.length);
      return waiting.map((message) => message.text);
    },
    close: () => leave(),
  };
}
