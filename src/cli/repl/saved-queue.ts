import type { Log, Schedule } from '../../core/runtime.js';
import type { QueuedMessage, SessionPort } from '../../core/session-port.js';
import type { SessionLog } from '../../core/store.js';

/** After this time a message that left the queue is on the disk as an event or as the draft. */
const forgetDelayMs = 500;

/** Saves the queue of the session that is shown, so that it survives a crash. Failures go to the log: the session goes
 * on. */
export interface SavedQueue {
  /** Follows `session` from now on, and returns the texts that wait there since an earlier run, oldest first. */
  take(session: SessionPort): Promise<readonly string[]>;
  /** Saves the last change. */
  close(): Promise<void>;
}

export function createSavedQueue(
  store: SessionLog,
  log: Log,
  mask: (text: string) => string,
  schedule: Schedule,
): SavedQueue {
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
    let cancel: (() => void) | null = null;
    const save = (): Promise<void> => {
      cancel?.();
      cancel = null;
      kept = latest.length;
      return write(session.id, latest);
    };
    const later = (): void => {
      cancel ??= schedule(() => void save(), forgetDelayMs);
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
      if (cancel) await save();
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
