import { randomBytes } from 'node:crypto';
import { readdirSync, readlinkSync, realpathSync, type Stats } from 'node:fs';
import { chmod, link, lstat, mkdir, rename, symlink, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { readBounded } from '../../disk/bounded-file.js';
import { pathStats, statsAt } from '../../disk/path-stats.js';
import { sha256Of, writeWhole } from '../files/atomic-write.js';

/** The present state of a path. `mode` is `st_mode`, type included. `other`: a device, or a place that cannot be looked
 * at or read; its mode is known where only its contents are not. */
export type PresentState =
  | { readonly is: 'missing' }
  | { readonly is: 'file' | 'link'; readonly sha256: string; readonly mode: number }
  /** `isNew`: an earlier step of the plan makes it. */
  | { readonly is: 'folder'; readonly mode: number; readonly isNew: boolean }
  | { readonly is: 'other'; readonly reason: string; readonly mode: number | null };

const typeMask = 0o170000;
const linkType = 0o120000;

export function isLinkMode(mode: number | null | undefined): boolean {
  return mode !== null && mode !== undefined && (mode & typeMask) === linkType;
}

const maxBytes = 64 * 1024 * 1024;

/** Looks at the path itself. It follows no link, and no folder that has become a link. */
export function presentState(path: string): PresentState {
  const elsewhere = folderProblem(dirname(path));
  if (elsewhere !== null) return { is: 'other', reason: elsewhere, mode: null };
  const found = pathStats(path, 'keep');
  if (found.kind === 'missing') return { is: 'missing' };
  if (found.kind === 'refused') return { is: 'other', reason: `it cannot be read (${found.code})`, mode: null };
  return stateFrom(path, found.stats);
}

function stateFrom(path: string, stats: Stats): PresentState {
  const { mode } = stats;
  if (stats.isDirectory()) return { is: 'folder', mode, isNew: false };
  if (stats.isSymbolicLink()) return { is: 'link', sha256: sha256Of(readlinkSync(path, { encoding: 'buffer' })), mode };
  if (!stats.isFile()) return { is: 'other', reason: 'it is not a file now', mode: null };
  const contents = readBounded(path, { maxBytes, longer: 'refuse', links: 'refuse' });
  return contents.kind === 'read'
    ? { is: 'file', sha256: sha256Of(contents.bytes), mode }
    : { is: 'other', reason: contents.kind === 'missing' ? 'it is gone' : contents.reason, mode };
}

/** Returns why nothing is written below the folder: one on the way to it is a link now, or cannot be looked at. */
function folderProblem(folder: string): string | null {
  try {
    return realpathSync.native(folder) === folder ? null : 'its folder is a link now';
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'error';
    if (code === 'ENOENT' || code === 'ENOTDIR') {
      const parent = statsAt(folder, 'keep');
      if (parent?.isSymbolicLink()) return 'its folder is a link now';
      return dirname(folder) === folder ? null : folderProblem(dirname(folder));
    }
    return code === 'ELOOP' ? 'its folder is a link now' : `its folder cannot be read (${code})`;
  }
}

/** Returns true if both paths are one file (hard links). */
export function isOneFile(path: string, other: string): boolean {
  const [one, two] = [statsAt(path, 'keep'), statsAt(other, 'keep')];
  return one !== null && two !== null && one.ino === two.ino && one.dev === two.dev;
}

/** Returns true if the path is one file with each of the others that is there. */
export function isJoined(path: string, others: readonly string[]): boolean {
  return others.every((other) => statsAt(other, 'keep') === null || isOneFile(path, other));
}

const permissions = 0o7777;

/** The new state of a path. `bytes` is the target for a link; null: no file. `mode` null: the mode of the present file,
 * or the usual one. */
export interface Replacement {
  readonly path: string;
  /** The hash the path must have right before it is replaced; null: no file. */
  readonly expected: string | null;
  readonly bytes: Uint8Array | null;
  readonly mode: number | null;
  /** Other paths; the path becomes one file with the first of them that has the contents. */
  readonly links: readonly string[];
}

/** Gives the path its new state; a file is replaced atomically. Throws the system's error, or an error that says that
 * something else changed the file. */
export async function replaceFile(replacement: Replacement): Promise<void> {
  const { path, expected, bytes, mode, links } = replacement;
  const now = expectedState(path, [expected, bytes === null ? null : sha256Of(bytes)]);
  if (bytes === null) {
    if (now.is !== 'missing') await unlink(path);
    return;
  }
  if (isLinkMode(mode)) {
    if (now.is !== 'missing') await unlink(path);
    await mkdir(dirname(path), { recursive: true });
    await symlink(Buffer.from(bytes), path);
    return;
  }
  const other = links.find((one) => hasContents(one, sha256Of(bytes)));
  if (other !== undefined) {
    await joinFiles(path, other);
    return;
  }
  await writeContents(replacement, bytes, now);
}

async function writeContents({ path, mode }: Replacement, bytes: Uint8Array, now: PresentState): Promise<void> {
  if (now.is === 'link') await unlink(path);
  const stats = now.is === 'file' ? await lstat(path) : null;
  const old = now.is === 'file' ? { bytes: Buffer.alloc(0), sha256: now.sha256 } : { bytes: null, sha256: null };
  await writeWhole({ path, ...old, stats }, bytes, path);
  if (mode !== null && ((await lstat(path)).mode & permissions) !== (mode & permissions))
    await chmod(path, mode & permissions);
}

function hasContents(path: string, sha256: string): boolean {
  const there = presentState(path);
  return there.is === 'file' && there.sha256 === sha256;
}

/** Makes the path a hard link of `other`. */
async function joinFiles(path: string, other: string): Promise<void> {
  if (isOneFile(path, other)) return;
  const temporary = join(dirname(path), `.agent-${randomBytes(6).toString('hex')}.tmp`);
  await link(other, temporary);
  try {
    await rename(temporary, path);
  } catch (error) {
    await unlink(temporary);
    throw error;
  }
}

function expectedState(path: string, allowed: readonly (string | null)[]): PresentState {
  const now = presentState(path);
  const sha256 = now.is === 'file' || now.is === 'link' ? now.sha256 : null;
  if (now.is === 'other' || now.is === 'folder' || !allowed.includes(sha256))
    throw new Error('another program changed it just now');
  return now;
}

/** Returns the names in a folder; null where it cannot be read. */
export function folderNames(folder: string): readonly string[] | null {
  try {
    return readdirSync(folder);
  } catch {
    return null;
  }
}
