import { parseJson } from '../../core/json.js';
import { randomBytes } from 'node:crypto';
import { appendFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { ensurePrivateDirectory } from '../../config/settings-file.js';
import type { Log, Schedule } from '../../core/runtime.js';
import type { QueuedMessage, SessionPort } from '../../core/session-port.js';
import type { SessionLog } from '../../core/store.js';
import { readBounded } from '../../disk/bounded-file.js';
import type { Draft } from '../../ui/repl-options.js';

const maxEntries = 1000;
const maxBytes = 8 * 1024 * 1024;

/** The inputs of all sessions, and the draft that is not sent yet. One JSON string a line, 0600, secrets masked;
 * failures go to the log. */
export interface HistoryFile {
  load(): Promise<readonly string[]>;
  append(text: string): Promise<void>;
  loadDraft(): Promise<Draft | null>;
  saveDraft(text: string): Promise<void>;
  /** Resolves once everything is on the disk. */
  settled(): Promise<void>;
}

export function createHistoryFile(path: string, log: Log, mask: (text: string) => string): HistoryFile {
  const draft = `${path}.draft`;
  const guarded = async <T>(fallback: T, work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT'))
        log({ at: 'history', message: String(error) });
      return fallback;
    }
  };
  const writeDraft = async (text: string): Promise<void> => {
    if (text === '') return await rm(draft, { force: true });
    ensurePrivateDirectory(dirname(path));
    const next = `${draft}.${randomBytes(4).toString('hex')}`;
    await writeFile(next, JSON.stringify(mask(text)), { mode: 0o600 });
    await rename(next, draft);
  };
  /** Drafts are saved one after the other: an older one may not replace a newer one. */
  let saving = Promise.resolve();
  return {
    load: () =>
      guarded([], async () =>
        lastLines(path)
          .slice(-maxEntries - 1)
          .flatMap(entry),
      ),
    append: (text) =>
      guarded(undefined, async () => {
        ensurePrivateDirectory(dirname(path));
        await appendFile(path, `${JSON.stringify(mask(text))}\n`, { mode: 0o600 });
      }),
    loadDraft: () =>
      guarded(null, async () => {
        const [text = ''] = lastLines(draft).flatMap(entry);
        return text === '' ? null : { text, savedAt: (await stat(draft)).mtime };
      }),
    saveDraft: (text) => {
      saving = saving.then(() => guarded(undefined, () => writeDraft(text)));
      return saving;
    },
    settled: () => saving,
  };
}

/** Reads past inputs and adds none. */
export function unwritten(history: HistoryFile): HistoryFile {
  return {
    load: () => history.load(),
    append: async () => {
      /* Not kept. */
    },
    loadDraft: async () => null,
    saveDraft: async () => {
      /* Not kept. */
    },
    settled: async () => {
      /* Nothing is under way. */
    },
  };
}

/** Returns the whole lines at the end of a file; none where there is no file. */
function lastLines(path: string): readonly string[] {
  const found = readBounded(path, { maxBytes, longer: 'end', links: 'follow' });
  if (found.kind === 'refused') throw new Error(`${path}: ${found.reason}`);
  if (found.kind === 'missing') return [];
  const lines = found.bytes.toString('utf8').split('\n');
  return found.size > maxBytes ? lines.slice(1) : lines;
}

/** Returns the text of a line, and nothing for a damaged one. */
function entry(line: string): string[] {
  try {
    const value: unknown = parseJson(line);
    return typeof value === 'string' ? [value] : [];
  } catch {
    return [];
  }
}

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
