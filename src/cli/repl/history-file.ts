import { randomBytes } from 'node:crypto';
import { appendFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { ensurePrivateDirectory } from '../../config/locations.js';
import type { Log } from '../../core/runtime.js';
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
    const value: unknown = JSON.parse(line);
    return typeof value === 'string' ? [value] : [];
  } catch {
    return [];
  }
}
