import { lstatSync, readlinkSync, realpathSync } from 'node:fs';
import { chmod, lstat, mkdir, rmdir, symlink, unlink } from 'node:fs/promises';
import { dirname } from 'node:path';
import { beforeWrite, sha256Of, writeWhole } from '../../tools/files/file-writer.js';

/** The present state of a path. `mode` is `st_mode`, type included. `other`: a folder, a device, or an unreadable
 * file. */
export type PresentState =
  | { readonly is: 'missing' }
  | { readonly is: 'file' | 'link'; readonly sha256: string; readonly mode: number }
  | { readonly is: 'other'; readonly reason: string };

const typeMask = 0o170000;
const linkType = 0o120000;

export function isLinkMode(mode: number | null | undefined): boolean {
  return mode !== null && mode !== undefined && (mode & typeMask) === linkType;
}

/** Looks at the path itself. It follows no link, and no folder that has become a link. */
export async function presentState(path: string): Promise<PresentState> {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (!stats) return { is: 'missing' };
  if (realpathSync(dirname(path)) !== dirname(path)) return { is: 'other', reason: 'its folder is a link now' };
  if (stats.isSymbolicLink())
    return { is: 'link', sha256: sha256Of(readlinkSync(path, { encoding: 'buffer' })), mode: stats.mode };
  if (!stats.isFile()) return { is: 'other', reason: 'it is not a file now' };
  try {
    const { sha256 } = await beforeWrite(path, path);
    return sha256 === null ? { is: 'missing' } : { is: 'file', sha256, mode: stats.mode };
  } catch (error) {
    return { is: 'other', reason: `it cannot be read (${error instanceof Error ? error.message : String(error)})` };
  }
}

/** The new state of a path. `bytes` is the target for a link; null: no file. `mode` null: the mode of the present file,
 * or the usual one. */
export interface Replacement {
  readonly path: string;
  /** The hash the path must have right before it is replaced; null: no file. */
  readonly expected: string | null;
  readonly bytes: Uint8Array | null;
  readonly mode: number | null;
  /** Folders that become empty are removed, up to this one. */
  readonly madeFolder: string | null;
}

/** Gives the path its new state; a file is replaced atomically. Throws the system's error, or an error that says that
 * something else changed the file. */
export async function replaceFile({ path, expected, bytes, mode, madeFolder }: Replacement): Promise<void> {
  const now = await expectedState(path, expected);
  if (bytes === null) {
    if (now.is !== 'missing') await unlink(path);
    if (madeFolder !== null) await removeEmpty(dirname(path), madeFolder);
    return;
  }
  if (now.is === 'link' || (now.is === 'file' && isLinkMode(mode))) await unlink(path);
  if (isLinkMode(mode)) {
    await mkdir(dirname(path), { recursive: true });
    await symlink(Buffer.from(bytes), path);
    return;
  }
  const before = await beforeWrite(path, path);
  if (before.sha256 !== sha256Of(bytes)) await writeWhole(before, bytes, path);
  if (mode !== null && ((await lstat(path)).mode & 0o7777) !== (mode & 0o7777)) await chmod(path, mode & 0o7777);
}

async function expectedState(path: string, expected: string | null): Promise<PresentState> {
  const now = await presentState(path);
  const sha256 = now.is === 'file' || now.is === 'link' ? now.sha256 : null;
  if (now.is === 'other' || sha256 !== expected) throw new Error('it was changed just now by something else');
  return now;
}

/** Throws the system's error. */
export async function changeMode({ path, mode }: Pick<Replacement, 'path' | 'mode'>): Promise<void> {
  if (mode !== null) await chmod(path, mode & 0o7777);
}

/** Removes empty folders from `folder` up to `topmost`. */
async function removeEmpty(folder: string, topmost: string): Promise<void> {
  for (let at = folder; at === topmost || at.startsWith(`${topmost}/`); at = dirname(at)) {
    try {
      await rmdir(at);
    } catch {
      return;
    }
  }
}
