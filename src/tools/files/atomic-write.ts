import { createHash, randomBytes } from 'node:crypto';
import { constants, type Stats } from 'node:fs';
import {
  access,
  type FileHandle,
  lstat,
  mkdir,
  open,
  readlink,
  realpath,
  rename,
  stat,
  unlink,
} from 'node:fs/promises';
import { basename, dirname, isAbsolute, join } from 'node:path';
import { headBytes } from '../../core/text.js';
import type { ToolContext, ToolOutcome } from '../../core/tool.js';
import { landedPath } from '../../disk/bounded-file.js';
import { failed } from '../define-tool.js';
import {
  FileRefusal,
  isKernelPath,
  openRegular,
  readWhole,
  refuseElsewhere,
  refuseSpecial,
  shownPath,
} from './open-file.js';
import { decodeText, withLineFeeds } from './text-encoding.js';

/** A file as it was before a write. */
export interface BeforeWrite {
  /** The file that is written: absolute, links resolved. */
  readonly path: string;
  /** Null for a file that is new. */
  readonly bytes: Buffer | null;
  readonly sha256: string | null;
  readonly stats: Stats | null;
}

const maxBytes = 64 * 1024 * 1024;

export function sha256Of(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** Reads the file that a write to `absolute` would replace. Links are followed to their target, even if it does not
 * exist yet. Throws the error of the system, or a FileRefusal if the target is no regular file, too large to be
 * edited, or not among `landings`. */
export async function beforeWrite(
  absolute: string,
  requested: string,
  landings?: readonly string[],
): Promise<BeforeWrite> {
  const target = await targetOf(absolute, requested);
  if (target.missing) refuseElsewhere(target.path, requested, landings);
  if (target.missing) return { path: target.path, bytes: null, sha256: null, stats: null };
  const file = await openRegular(target.path, requested, landings);
  try {
    await access(file.path, constants.W_OK); // a rename would replace a write-protected file
    if (file.stats.size > maxBytes)
      throw new FileRefusal(
        'execution_failed',
        `${shownPath(requested)} has ${file.stats.size} bytes; files over ${maxBytes} are not rewritten.`,
      );
    const bytes = await readWhole(file);
    return { path: file.path, bytes, sha256: sha256Of(bytes), stats: file.stats };
  } finally {
    file.close();
  }
}

/** Replaces the content of a file atomically: writes a temporary file in the same folder, syncs it, renames it over the
 * file and syncs the folder. After a kill at any instant the file is the old or the new one. Mode and owner stay, a
 * hard link is broken, missing folders are made. Throws the error of the system, or a FileRefusal if the file is not
 * as it was in `before`. Where the file cannot be replaced (a mount, or a folder that belongs to another user) it is
 * written in place, which is not atomic. */
export async function writeWhole(before: BeforeWrite, bytes: Uint8Array, requested: string): Promise<void> {
  try {
    await replaceWhole(before, bytes, requested);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    if (before.stats === null || !irreplaceable.has(code)) throw error;
    await writeInPlace(before, bytes, requested);
  }
}

/** What the system says where a file may be written but not replaced. */
const irreplaceable: ReadonlySet<string> = new Set(['EBUSY', 'EXDEV', 'EACCES', 'EPERM']);

async function writeInPlace(before: BeforeWrite, bytes: Uint8Array, requested: string): Promise<void> {
  const handle = await open(before.path, constants.O_WRONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    if (landedPath(handle.fd, before.path) !== before.path)
      throw new FileRefusal('execution_failed', `${shownPath(requested)}: its folder is not one to write in.`);
    refuseChanged(await handle.stat(), before, requested);
    await handle.writeFile(bytes);
    await handle.truncate(bytes.length);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function replaceWhole(before: BeforeWrite, bytes: Uint8Array, requested: string): Promise<void> {
  const folder = dirname(before.path);
  await makeFolders(folder);
  const held = await open(folder, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    const landed = landedPath(held.fd, folder);
    if (landed !== (process.platform === 'linux' ? folder : await realpath(folder)) || isKernelPath(landed))
      throw new FileRefusal('execution_failed', `${shownPath(requested)}: its folder is not one to write in.`);
    // The descriptor leads to this folder even if another one takes its place meanwhile.
    const anchor = process.platform === 'linux' ? `/proc/self/fd/${held.fd}` : folder;
    const temporary = join(anchor, `.agent-${randomBytes(6).toString('hex')}.tmp`);
    try {
      await writeSynced(temporary, bytes, before.stats);
      const now = await stat(join(anchor, basename(before.path))).catch(() => null);
      refuseChanged(now, before, requested);
      await rename(temporary, join(anchor, basename(before.path)));
    } catch (error) {
      await unlink(temporary).catch(() => {
        /* never made */
      });
      throw error;
    }
    await held.sync();
  } finally {
    await held.close();
  }
}

async function writeSynced(path: string, bytes: Uint8Array, old: Stats | null): Promise<void> {
  const handle = await open(
    path,
    constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW,
    old ? 0o600 : 0o666,
  );
  try {
    await handle.writeFile(bytes);
    if (old) await keepOwnerAndMode(handle, old);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function keepOwnerAndMode(handle: FileHandle, old: Stats): Promise<void> {
  const now = await handle.stat();
  if (now.uid !== old.uid || now.gid !== old.gid) {
    await handle.chown(old.uid, old.gid).catch(() => {
      /* only the superuser gives files away; the writer then owns the new one */
    });
  }
  await handle.chmod(old.mode & 0o7777);
}

function refuseChanged(now: Stats | null, before: BeforeWrite, requested: string): void {
  const same =
    now === null
      ? before.stats === null || before.bytes !== null
      : before.stats !== null &&
        now.ino === before.stats.ino &&
        now.size === before.stats.size &&
        now.mtimeMs === before.stats.mtimeMs;
  if (!same)
    throw new FileRefusal(
      'execution_failed',
      `${shownPath(requested)} was changed by something else while it was being written; ` +
        'nothing was written. Read it again.',
    );
}

/** Returns the file that a write to `absolute` reaches. */
async function targetOf(
  absolute: string,
  requested: string,
): Promise<{ readonly path: string; readonly missing: boolean }> {
  if (/\/\.{0,2}$/.test(absolute))
    throw new FileRefusal('execution_failed', `${shownPath(requested)} names a directory, not a file.`);
  let at = absolute;
  for (let links = 0; links < 40; links++) {
    try {
      const path = await realpath(at);
      refuseSpecial(await stat(path), requested);
      return { path, missing: false };
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
    }
    const link = await readlink(at).catch(() => null);
    if (link === null) return { path: join(await existingFolder(dirname(at)), basename(at)), missing: true };
    at = isAbsolute(link) ? link : join(dirname(at), link);
  }
  throw new FileRefusal('execution_failed', `${shownPath(requested)}: its symbolic links form a loop.`);
}

/** Returns the folder with the links of its existing part resolved. */
async function existingFolder(folder: string): Promise<string> {
  try {
    return await realpath(folder);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT') || dirname(folder) === folder)
      throw error;
    return join(await existingFolder(dirname(folder)), basename(folder));
  }
}

/** Makes a folder and those above it. `mkdir` with `recursive` never returns in Node 20 if a parent refuses new names
 * with ENOENT (`/proc`). */
async function makeFolders(folder: string): Promise<void> {
  if (
    await lstat(folder).then(
      () => true,
      () => false,
    )
  )
    return;
  if (dirname(folder) !== folder) await makeFolders(dirname(folder));
  await mkdir(folder).catch((error: unknown) => {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
  });
}

const maxShownBytes = 4096;

/** Refuses a write to a file that has changed since the session read it, and says what changed. Returns null if the
 * write may go on: also for a file that was never read, and for one that is gone. */
export async function staleRefusal(
  before: BeforeWrite,
  requested: string,
  ctx: ToolContext,
  { memory, encoding }: { readonly memory: ContentMemory; readonly encoding: string | null },
): Promise<ToolOutcome | null> {
  const known = ctx.knownFiles.get(before.path);
  if (known === undefined || before.bytes === null || known === before.sha256) return null;
  const modified = before.stats?.mtime.toISOString() ?? 'at an unknown time';
  const now = `It has ${before.bytes.length} bytes now, last modified ${modified}.`;
  if (known === null)
    return failed(
      'execution_failed',
      `${shownPath(requested)} did not exist when it was last looked at, and does now. ${now} Read it first.`,
      { reason: 'changed' },
    );
  const old = memory.recall(known);
  const current = (await decodeText(before.bytes, encoding)).text;
  const diff = old === null || current === null ? undefined : await unifiedDiff(requested, old, withLineFeeds(current));
  const changed = diff === undefined ? {} : { changes: headBytes(diff, maxShownBytes) };
  return failed(
    'execution_failed',
    `${shownPath(requested)} has changed since it was last read. ${now} Read it again, then write.`,
    { reason: 'changed', ...changed },
  );
}

/** The texts of files that a session has read, by the hash of their bytes, so that a refusal can say what changed. The
 * oldest texts are dropped first. */
export interface ContentMemory {
  remember(sha256: string, text: string): void;
  recall(sha256: string): string | null;
}

export function createContentMemory(maxChars: number): ContentMemory {
  const texts = new Map<string, string>();
  let chars = 0;
  return {
    remember(sha256, text) {
      if (text.length > maxChars / 8 || texts.has(sha256)) return;
      texts.set(sha256, text);
      chars += text.length;
      for (const [oldest, old] of texts) {
        if (chars <= maxChars) break;
        texts.delete(oldest);
        chars -= old.length;
      }
    },
    recall: (sha256) => texts.get(sha256) ?? null,
  };
}

const maxInputChars = 2_000_000;
const maxDiffBytes = 64 * 1024;
const maxEdits = 4000;
const maxCompareMs = 500;

/** Returns a unified diff with three lines of context, at most 64 KiB; undefined if there is no difference. A line that
 * begins with `…` says what is left out, or why the versions were not compared. `before` is null for a new file. */
export async function unifiedDiff(path: string, before: string | null, after: string): Promise<string | undefined> {
  if (before === after) return undefined;
  if (before === null) return cutDiff(newFileDiff(path, after));
  const chars = before.length + after.length;
  if (chars > maxInputChars)
    return `… Not compared: the versions have ${chars} characters, more than ${maxInputChars}; the change is not shown.\n`;
  const { createTwoFilesPatch } = await import('diff');
  const patch = createTwoFilesPatch(`a/${path}`, `b/${path}`, before, after, undefined, undefined, {
    context: 3,
    maxEditLength: maxEdits,
    timeout: maxCompareMs,
  });
  if (patch === undefined)
    return `… Not compared: the versions differ in more than ${maxEdits} lines, or comparing takes over ${maxCompareMs} ms.\n`;
  return cutDiff(patch.replace(/^=+\n/, ''));
}

function newFileDiff(path: string, text: string): string {
  const head = `--- /dev/null\n+++ b/${path}\n`;
  if (text === '') return head;
  const isEnded = text.endsWith('\n');
  const added = `+${(isEnded ? text.slice(0, -1) : text).replaceAll('\n', '\n+')}`;
  const count = added.split('\n').length;
  return `${head}@@ -0,0 +1,${count} @@\n${added}\n${isEnded ? '' : '\\ No newline at end of file\n'}`;
}

function cutDiff(text: string): string {
  const kept = headBytes(text, maxDiffBytes);
  if (kept.length === text.length) return text;
  const whole = kept.slice(0, kept.lastIndexOf('\n') + 1);
  const left = text.split('\n').length - whole.split('\n').length;
  const what = left === 1 ? '1 line is' : `${left} lines are`;
  return `${whole}… ${what} left out: a change is shown up to ${maxDiffBytes / 1024} KiB.\n`;
}
