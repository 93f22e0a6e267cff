import { parseJson } from '../../kernel/core/json.js';
import { createHash, randomBytes } from 'node:crypto';
import { appendFile, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { ensurePrivateDirectory } from '../../kernel/config/settings-file.js';
import { isRecord } from '../../kernel/core/json.js';
import type { Log, Schedule } from '../../kernel/core/runtime.js';
import { isFromElsewhere } from '../../kernel/core/message-queue.js';
import type { QueuedMessage, SessionPort } from '../../kernel/core/session-port.js';
import type { SessionLog } from '../../kernel/core/store.js';
import { readBounded, readBoundedText } from '../../kernel/disk/bounded-file.js';
import { isRunning, ownIdentity, type ProcessIdentity } from '../../kernel/store/lease.js';
import type { Draft } from '../../ui/repl-options.js';

const maxEntries = 1000;
const maxBytes = 8 * 1024 * 1024;
/** A draft that nobody came back for is removed after this time. */
const staleDraftMs = 30 * 24 * 60 * 60 * 1000;
/** The owner of a draft on another machine counts as alive this long after it last wrote. */
const foreignOwnerMs = 60 * 60 * 1000;

/** The inputs of all sessions, and the draft that is not sent yet. A draft belongs to a directory and a process: it is
 * offered again in that directory once the process has ended. Files are 0600, secrets masked; failures go to the
 * log. */
export interface HistoryFile {
  load(): Promise<readonly string[]>;
  append(text: string): Promise<void>;
  /** Returns the newest draft that an ended process left in this directory. It belongs to this process from then on. */
  loadDraft(): Promise<Draft | null>;
  saveDraft(text: string): Promise<void>;
  /** Resolves once everything is on the disk. */
  settled(): Promise<void>;
}

/** `me`: the process that owns the drafts that are saved. */
export function createHistoryFile({
  path,
  cwd,
  log,
  mask,
  me = ownIdentity(),
}: {
  readonly path: string;
  readonly cwd: string;
  readonly log: Log;
  readonly mask: (text: string) => string;
  readonly me?: ProcessIdentity;
}): HistoryFile {
  const drafts = createDrafts(`${path}.drafts`, cwd, me);
  const guarded = async <T>(fallback: T, work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT'))
        log({ at: 'history', message: String(error) });
      return fallback;
    }
  };
  /** Drafts are saved one after the other: an older one may not replace a newer one. */
  let saving: Promise<unknown> = Promise.resolve();
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
    loadDraft: () => {
      const loading = saving.then(() =>
        guarded(null, async () => {
          await removeOldDrafts(path);
          return await drafts.claim();
        }),
      );
      saving = loading;
      return loading;
    },
    saveDraft: async (text) => {
      saving = saving.then(() => guarded(undefined, () => drafts.save(mask(text))));
      await saving;
    },
    settled: async () => {
      await saving;
    },
  };
}

/** Removes the draft of earlier versions: it names no directory, so it cannot be offered in the right one. */
async function removeOldDrafts(path: string): Promise<void> {
  const folder = dirname(path);
  const old = `${basename(path)}.draft`;
  for (const name of await readdir(folder))
    if (name === old || (name.startsWith(`${old}.`) && /\.[0-9a-f]{8}$/.test(name)))
      await rm(join(folder, name), { force: true });
}

/** A draft on the disk. */
interface SavedDraft {
  readonly cwd: string;
  readonly owner: ProcessIdentity;
  readonly text: string;
}

interface Drafts {
  claim(): Promise<Draft | null>;
  /** An empty text removes the draft of this process. */
  save(text: string): Promise<void>;
}

/** Keeps the drafts of a directory in `folder`, one file for each process. */
function createDrafts(folder: string, cwd: string, me: ProcessIdentity): Drafts {
  const prefix = `${createHash('sha256').update(cwd).digest('hex').slice(0, 16)}.`;
  const own = `${prefix}${randomBytes(4).toString('hex')}`;
  const save = async (text: string): Promise<void> => {
    if (text === '') return await rm(join(folder, own), { force: true });
    ensurePrivateDirectory(folder);
    const next = join(folder, `${own}.new`);
    const draft: SavedDraft = { cwd, owner: me, text };
    await writeFile(next, JSON.stringify(draft), { mode: 0o600 });
    await rename(next, join(folder, own));
  };
  return {
    save,
    claim: async () => {
      const left = await abandonedDrafts(folder, me);
      for (const { name, draft, savedAt } of left) {
        if (!name.startsWith(prefix) || draft.cwd !== cwd) continue;
        // Of two processes that start at once, the rename succeeds for one.
        const isClaimed = await rename(join(folder, name), join(folder, own)).then(
          () => true,
          () => false,
        );
        if (!isClaimed) continue;
        await save(draft.text);
        return { text: draft.text, savedAt };
      }
      return null;
    },
  };
}

interface AbandonedDraft {
  readonly name: string;
  readonly draft: SavedDraft;
  readonly savedAt: Date;
}

/** Returns the drafts of ended processes, the newest first. Removes stale and damaged ones. */
async function abandonedDrafts(folder: string, me: ProcessIdentity): Promise<readonly AbandonedDraft[]> {
  const left: AbandonedDraft[] = [];
  for (const name of await readdir(folder)) {
    const file = join(folder, name);
    const found = await stat(file).catch(() => null);
    if (found === null) continue;
    const ageMs = Date.now() - found.mtimeMs;
    const draft = readDraft(file);
    const running = draft === null ? 'unknown' : isRunning(draft.owner, me);
    if (running === 'yes' || (running === 'unknown' && Math.abs(ageMs) < foreignOwnerMs)) continue;
    if (draft === null || ageMs > staleDraftMs) await rm(file, { force: true });
    else if (!name.endsWith('.new')) left.push({ name, draft, savedAt: found.mtime });
  }
  return left.toSorted((one, other) => other.savedAt.getTime() - one.savedAt.getTime());
}

function readDraft(file: string): SavedDraft | null {
  try {
    const value: unknown = parseJson(readBoundedText(file, { maxBytes, longer: 'refuse', links: 'refuse' }) ?? '');
    return isSavedDraft(value) ? value : null;
  } catch {
    return null;
  }
}

function isSavedDraft(value: unknown): value is SavedDraft {
  if (!isRecord(value) || !isRecord(value.owner)) return false;
  const { pid, host, machine, started } = value.owner;
  const isTextOrNull = (part: unknown): boolean => part === null || typeof part === 'string';
  return (
    [value.text, value.cwd, host].every((part) => typeof part === 'string') &&
    Number.isSafeInteger(pid) &&
    isTextOrNull(machine) &&
    isTextOrNull(started)
  );
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
        // Messages of other processes stay on the disk until an event has them.
        queue
          .filter((message) => !isFromElsewhere(message))
          .map(({ screen: _here, ...message }) => ({ ...message, text: mask(message.text) })),
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
