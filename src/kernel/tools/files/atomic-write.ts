import { createHash, randomBytes } from 'node:crypto';
import { constants, type Stats } from 'node:fs';
import {
  access,
  type FileHandle,
  lstat,
  mkdir,
  open,
  readFile,
  readlink,
  realpath,
  rename,
  stat,
  unlink,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, isAbsolute, join } from 'node:path';
import { headBytes } from '../../core/text.js';
import type { ToolContext, ToolOutcome } from '../../core/tool.js';
import { landedPath } from '../../disk/bounded-file.js';
import { failed } from '../define-tool.js';
import { copyAttributes } from '../process/copy-attributes.js';
import {
  FileRefusal,
  isKernelPath,
  openRegular,
  readWhole,
  refuseElsewhere,
  refuseSpecial,
  shownPath,
} from './open-file.js';
import { decodeText, withLineFeeds } from '../../disk/text-encoding.js';

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
 * file and syncs the folder. After a kill at any instant the file is the old or the new one. Mode, owner, access control
 * list and extended attributes stay, missing folders are made. A hard link is broken: its other name may be outside of the
 * workspace, or in a store that packages share. Throws the error of the system, or a FileRefusal if the file is not as it
 * was in `before`. One that cannot be replaced (a mount, a folder that belongs to another user, attributes that cannot
 * be copied) is written in place: after a kill a synced copy of the old file is beside it. */
export async function writeWhole(before: BeforeWrite, bytes: Uint8Array, requested: string): Promise<void> {
  try {
    await replaceWhole(before, bytes, requested);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    if (before.stats === null || !irreplaceable.has(code)) throw error;
    await writeInPlace(before, bytes, requested);
  }
}

/** The error codes for a file that may be written but not replaced, and our own code for its attributes. */
const irreplaceable: ReadonlySet<string> = new Set(['EBUSY', 'EXDEV', 'EACCES', 'EPERM', 'ATTRIBUTES']);

async function writeInPlace(before: BeforeWrite, bytes: Uint8Array, requested: string): Promise<void> {
  const handle = await open(before.path, constants.O_WRONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    if (landedPath(handle.fd, before.path) !== before.path)
      throw new FileRefusal('execution_failed', `${shownPath(requested)}: its folder is not writable.`);
    refuseChanged(await handle.stat(), before, requested);
    const old = await readFile(before.path);
    const copy = await keptCopy(before.path, old);
    await overwrite(handle, bytes, before.stats).catch(async (error: unknown) => {
      await overwrite(handle, old, before.stats).catch(() => {
        throw new FileRefusal(
          'execution_failed',
          `${shownPath(requested)} was written in part and could not be restored (${String(error)}). ` +
            `Its old content is in ${copy}.`,
        );
      });
      await unlink(copy);
      throw error;
    });
    await unlink(copy);
  } finally {
    await handle.close();
  }
}

async function overwrite(handle: FileHandle, bytes: Uint8Array, old: Stats | null): Promise<void> {
  let written = 0;
  while (written < bytes.length)
    written += (await handle.write(bytes, written, bytes.length - written, written)).bytesWritten;
  await handle.truncate(bytes.length);
  // The kernel drops setuid and setgid with a write.
  if (old !== null && ((await handle.stat()).mode & 0o7777) !== (old.mode & 0o7777))
    await handle.chmod(old.mode & 0o7777);
  await handle.sync();
}

/** Writes the old content to a synced file that only its owner reads: beside the file, or in the folder for temporary
 * files if that folder takes no new ones. Returns its path. */
async function keptCopy(path: string, old: Uint8Array): Promise<string> {
  const name = `.${basename(path)}.${randomBytes(6).toString('hex')}.old`;
  for (const folder of [dirname(path), tmpdir()]) {
    const copy = join(folder, name);
    try {
      await writeSynced(copy, old, 0o600);
      return copy;
    } catch (error) {
      await unlink(copy).catch(() => {
        /* never made */
      });
      if (folder !== dirname(path)) throw error;
    }
  }
  throw new Error('unreachable: the last folder returns or throws');
}

async function replaceWhole(before: BeforeWrite, bytes: Uint8Array, requested: string): Promise<void> {
  const folder = dirname(before.path);
  await makeFolders(folder);
  const held = await open(folder, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    const landed = landedPath(held.fd, folder);
    if (landed !== (process.platform === 'linux' ? folder : await realpath(folder)) || isKernelPath(landed))
      throw new FileRefusal('execution_failed', `${shownPath(requested)}: its folder is not writable.`);
    // The descriptor leads to this folder even if another one takes its place meanwhile.
    const anchor = process.platform === 'linux' ? `/proc/self/fd/${held.fd}` : folder;
    const name = `.agent-${randomBytes(6).toString('hex')}.tmp`;
    const temporary = join(anchor, name);
    try {
      await writeSynced(temporary, bytes, before.stats === null ? 0o666 : 0o600);
      if (before.stats !== null) {
        // `cp` reaches the folder through our own process.
        const reached = process.platform === 'linux' ? `/proc/${process.pid}/fd/${held.fd}` : folder;
        await keepAttributes(join(reached, basename(before.path)), join(reached, name), before.stats);
      }
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

async function writeSynced(path: string, bytes: Uint8Array, mode: number): Promise<void> {
  const handle = await open(
    path,
    constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW,
    mode,
  );
  try {
    await handle.writeFile(bytes);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Gives a new file owner, mode, access control list and extended attributes of the old one. The bits of the mode alone
 * would give the group the rights of the whole list. Throws where the attributes cannot be copied. */
async function keepAttributes(existing: string, fresh: string, old: Stats): Promise<void> {
  const handle = await open(fresh, constants.O_WRONLY | constants.O_NOFOLLOW);
  try {
    const now = await handle.stat();
    if (now.uid !== old.uid || now.gid !== old.gid) {
      await handle.chown(old.uid, old.gid).catch(() => {
        /* only the superuser gives files away; the writer then owns the new one */
      });
    }
    if (!(await copyAttributes(existing, fresh)))
      throw Object.assign(new Error('the attributes cannot be copied'), { code: 'ATTRIBUTES' });
    await handle.chmod(old.mode & 0o7777);
    await handle.sync();
  } finally {
    await handle.close();
  }
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
      `${shownPath(requested)} was changed by another program during ` +
        'the write; nothing was written. Read it again.',
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

/** The session's knowledge of a file that it is about to change. */
export type Staleness =
  | { readonly is: 'current' }
  /** The edit may be made all the same: its text is where it was, and `diff` is what changed elsewhere. */
  | { readonly is: 'changed_elsewhere'; readonly diff: string }
  | { readonly is: 'refused'; readonly outcome: ToolOutcome };

/** Checks a write against the state of the file that the session knows. A file that was never read, or that is gone,
 * counts as current. One that has changed since is refused with what changed; where that shows the whole change, the
 * session knows the new state, so the next write is made. `edited`: the texts that edits replace. If each occurs once,
 * before and now, the change is elsewhere and cannot be lost. */
export async function checkStale(
  before: BeforeWrite,
  requested: string,
  ctx: ToolContext,
  {
    memory,
    encoding,
    edited,
  }: { readonly memory: ContentMemory; readonly encoding: string | null; readonly edited?: readonly string[] },
): Promise<Staleness> {
  const known = ctx.knownFiles.get(before.path);
  if (known === undefined || before.bytes === null || known === before.sha256) return { is: 'current' };
  const modified = before.stats?.mtime.toISOString() ?? 'at an unknown time';
  const now = `It has ${before.bytes.length} bytes now, last modified ${modified}.`;
  if (known === null)
    return refusedStale(
      `${shownPath(requested)} did not exist when it was last looked at, and does now. ${now} Read it first.`,
    );
  const change = await changeSince(before, requested, known, { memory, encoding });
  const changed = `${shownPath(requested)} has changed since it was last read. ${now}`;
  if (change === null) return refusedStale(`${changed} Read it again, then write.`);
  const shown = headBytes(change.diff, maxShownBytes);
  const isWhole = shown === change.diff && !/^…/m.test(shown);
  if (!isWhole) return refusedStale(`${changed} Read it again, then write.`, shown);
  if (edited !== undefined && isElsewhere(change, edited)) return { is: 'changed_elsewhere', diff: change.diff };
  return shownWhole(before, change.text, memory, refusedStale(`${changed} ${repeatHint}`, shown));
}

interface Change {
  readonly old: string;
  readonly text: string;
  readonly diff: string;
}

function isElsewhere({ old, text }: Change, edited: readonly string[]): boolean {
  return edited.every((part) => occursOnce(old, part) && occursOnce(text, part));
}

/** Compares a file with the text that the session knows; null where that is not possible. */
async function changeSince(
  { bytes }: BeforeWrite,
  requested: string,
  known: string,
  { memory, encoding }: { readonly memory: ContentMemory; readonly encoding: string | null },
): Promise<Change | null> {
  const old = memory.recall(known);
  const current = bytes === null ? null : (await decodeText(bytes, encoding)).text;
  if (old === null || current === null) return null;
  const text = withLineFeeds(current);
  const diff = await unifiedDiff(requested, old, text);
  return diff === undefined ? null : { old, text, diff };
}

const repeatHint = 'The details show the whole change; repeat the call if it still fits.';

/** The session knows the new state from the refusal. */
function shownWhole(
  { path, sha256 }: BeforeWrite,
  text: string,
  memory: ContentMemory,
  { is, outcome }: Extract<Staleness, { readonly is: 'refused' }>,
): Staleness {
  if (sha256 === null) return { is, outcome };
  memory.remember(sha256, text);
  return { is, outcome: { ...outcome, files: [{ path, sha256 }] } };
}

function refusedStale(message: string, changes?: string): Extract<Staleness, { readonly is: 'refused' }> {
  const details = { reason: 'changed', ...(changes === undefined ? {} : { changes }) };
  return { is: 'refused', outcome: failed('execution_failed', message, details) };
}

function occursOnce(text: string, part: string): boolean {
  const at = text.indexOf(part);
  return at >= 0 && text.indexOf(part, at + 1) < 0;
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
