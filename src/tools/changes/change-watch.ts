import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { setImmediate as nextTick } from 'node:timers/promises';
import type { ChangeWatch, WatchedChange, WatchReport } from '../../core/file-changes.js';
import {
  type ContentCache,
  createContentCache,
  type Manifest,
  type ManifestEntry,
  type ManifestLimits,
  readContents,
  readEntry,
  readManifest,
} from './tree-snapshot.js';

export interface ChangeWatchOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Recognises files whose contents are never cached. */
  readonly isSecret: (path: string) => boolean;
  readonly limits?: Partial<WatchLimits>;
}

export interface WatchLimits extends ManifestLimits {
  /** Larger files are not read before a command. */
  readonly maxFileBytes: number;
  /** The time for reading contents before a command. What was read stays for the next one. */
  readonly maxReadMs: number;
  readonly maxCacheBytes: number;
  /** The most bytes that are read after a command. */
  readonly maxAfterBytes: number;
}

const defaults: WatchLimits = {
  maxEntries: 20_000,
  maxWalkMs: 30,
  maxFileBytes: 256 * 1024,
  maxReadMs: 30,
  maxCacheBytes: 24 * 1024 * 1024,
  maxAfterBytes: 32 * 1024 * 1024,
};
/** A file that was written this shortly before it was read may be written again with the same times. */
const racyMs = 20;

/** Watches the working tree around commands: its entries before and after, and the contents of small files. Files that
 * the session knows or the command names come first. If there was no time to read a file, undo has no contents for it,
 * and the report says so. */
export function createChangeWatch(options: ChangeWatchOptions): ChangeWatch {
  const limits: WatchLimits = { ...defaults, ...options.limits };
  const cache = createContentCache(limits);
  return {
    async begin({ effect, cwd, verdict, commandText, knownPaths }) {
      if (effect !== 'execute') return watchFolders(verdict.targets ?? []);
      const look = (maxWalkMs: number): Manifest =>
        readManifest({ root: cwd, limits: { ...limits, maxWalkMs }, env: options.env });
      const before = look(limits.maxWalkMs);
      const first = new Set([...(verdict.targets ?? []), ...knownPaths]);
      const entries = withNamed(before, first);
      const absent = (verdict.targets ?? []).filter((path) => !entries.has(path) && !existsSync(path));
      cache.fill(entries, { first, commandText, root: cwd, isSecret: options.isSecret });
      return async () => {
        await nextTick();
        const after = look(limits.maxWalkMs * 2);
        return report({
          before: { ...before, files: entries },
          after,
          absent,
          cache,
          limits,
          isSecret: options.isSecret,
        });
      };
    },
  };
}

/** Reports the folders that a write makes for its files. */
function watchFolders(targets: readonly string[]): () => Promise<WatchReport> {
  const missing = targets.flatMap((path) => topmostMissing(dirname(path)) ?? []);
  return () =>
    Promise.resolve({ changes: [], goneFolders: [], madeFolders: missing.filter((folder) => existsSync(folder)) });
}

function topmostMissing(folder: string): string | null {
  if (existsSync(folder)) return null;
  return topmostMissing(dirname(folder)) ?? folder;
}

/** Adds the named and known files that ignore rules or limits left out, or that lie elsewhere. */
function withNamed(manifest: Manifest, named: ReadonlySet<string>): ReadonlyMap<string, ManifestEntry> {
  const files = new Map(manifest.files);
  for (const path of named) {
    const entry = files.has(path) ? null : readEntry(path);
    if (entry) files.set(path, entry);
  }
  return files;
}

interface Comparison {
  readonly before: Manifest;
  readonly after: Manifest;
  /** Files that the command names and that did not exist. */
  readonly absent: readonly string[];
  readonly cache: ContentCache;
  readonly limits: WatchLimits;
  readonly isSecret: (path: string) => boolean;
}

function report(c: Comparison): WatchReport {
  const { before, after } = c;
  let room = c.limits.maxAfterBytes;
  const changes: WatchedChange[] = [];
  const take = (change: WatchedChange | null): void => {
    if (change === null) return;
    if (change.captured) room -= change.after?.byteLength ?? 0;
    changes.push(change);
  };
  for (const [path, entry] of before.files) {
    const now = after.files.get(path) ?? readEntry(path);
    if (now === null) take(deleted(c, path, entry));
    else if (differs(entry, now, before.atMs)) take(changed(c, path, [entry, now], room));
  }
  for (const [path, entry] of after.files) {
    if (!before.files.has(path) && isNew(before, path)) take(created(c, path, entry, room));
  }
  for (const path of c.absent) {
    const entry = after.files.has(path) ? null : readEntry(path);
    if (entry) take(created(c, path, entry, room));
  }
  const madeFolders = [...after.folders.keys()].filter(
    (folder) => !before.folders.has(folder) && isNew(before, folder) && before.folders.has(dirname(folder)),
  );
  const unwatched = before.complete
    ? {}
    : { unwatched: `the tree is large: only its first ${before.files.size} files were watched` };
  const goneFolders = [...before.folders.keys()].filter(
    (folder) => !after.folders.has(folder) && !existsSync(folder) && existsSync(dirname(folder)),
  );
  return { changes, madeFolders, goneFolders, ...unwatched };
}

/** Returns true if the folder of the path was read before the command and did not contain it. */
function isNew(before: Manifest, path: string): boolean {
  const parent = dirname(path);
  const folder = before.folders.get(parent);
  return folder ? folder.listed : parent !== path && isNew(before, parent);
}

function differs(before: ManifestEntry, now: ManifestEntry, atMs: number): boolean {
  return (
    now.ctimeMs !== before.ctimeMs ||
    now.mtimeMs !== before.mtimeMs ||
    now.size !== before.size ||
    now.ino !== before.ino ||
    atMs - before.ctimeMs < racyMs
  );
}

function deleted({ cache, limits, isSecret }: Comparison, path: string, entry: ManifestEntry): WatchedChange {
  const bytes = isSecret(path) ? null : cache.take(path, entry);
  if (bytes) return { captured: true, path, before: bytes, after: null, beforeMode: entry.mode };
  return {
    captured: false,
    path,
    what: 'deleted',
    beforeMode: entry.mode,
    reason: whyNot(path, entry, limits, isSecret),
  };
}

function changed(
  c: Comparison,
  path: string,
  [entry, now]: readonly [ManifestEntry, ManifestEntry],
  room: number,
): WatchedChange | null {
  const modes = { beforeMode: entry.mode, afterMode: now.mode };
  const { before, after } = c.isSecret(path) ? { before: null, after: null } : contents(c, path, [entry, now], room);
  if (before === null || after === null) {
    if (isTouched(entry, now) && entry.mode === now.mode) return null;
    const reason = before === null ? whyNot(path, entry, c.limits, c.isSecret) : 'what it became could not be read';
    return { captured: false, path, what: 'changed', ...modes, reason };
  }
  if (before.equals(after) && entry.mode === now.mode) return null;
  c.cache.put(path, now, after);
  return { captured: true, path, before, after, ...modes };
}

/** Returns the contents before and after. A file whose time, size and place are the same has the same contents. */
function contents(
  { cache }: Comparison,
  path: string,
  [entry, now]: readonly [ManifestEntry, ManifestEntry],
  room: number,
): { readonly before: Buffer | null; readonly after: Buffer | null } {
  const after = now.size > room ? null : readContents(path, now);
  return { before: cache.take(path, entry) ?? (isTouched(entry, now) ? after : null), after };
}

function isTouched(entry: ManifestEntry, now: ManifestEntry): boolean {
  return now.mtimeMs === entry.mtimeMs && now.size === entry.size && now.ino === entry.ino;
}

function created({ cache, isSecret }: Comparison, path: string, entry: ManifestEntry, room: number): WatchedChange {
  const after = isSecret(path) || entry.size > room ? null : readContents(path, entry);
  if (after === null)
    return {
      captured: false,
      path,
      what: 'created',
      afterMode: entry.mode,
      reason: isSecret(path) ? secret : 'it is too large to be kept',
    };
  cache.put(path, entry, after);
  return { captured: true, path, before: null, after, afterMode: entry.mode };
}

const secret = 'it may hold secrets';

function whyNot(path: string, entry: ManifestEntry, limits: WatchLimits, isSecret: (path: string) => boolean): string {
  if (isSecret(path)) return secret;
  return entry.size > limits.maxFileBytes
    ? `it had more than ${limits.maxFileBytes} bytes`
    : 'there was no time to read it before';
}
