import { constants, type Stats } from 'node:fs';
import { open, stat, type FileHandle } from 'node:fs/promises';
import { FileRefusal } from './file-error.js';
import { isKernelPath, landedPath, shownPath } from '../tool-path.js';

export interface OpenFile { readonly handle: FileHandle; readonly stats: Stats; /** As the kernel resolved it. */ readonly path: string }

/** Where a call may land: `landings` of its context. */
type Landings = readonly string[] | undefined;

/** Opens a regular file for reading without ever waiting for a FIFO, a device or a terminal, and asks the kernel where that landed.
 *  Throws the system's error, or a FileRefusal for what is no regular file. The caller closes the handle. */
export async function openRegular(absolute: string, requested: string, landings?: Landings): Promise<OpenFile> {
  refuseSpecial(await stat(absolute), requested);
  const handle = await open(absolute, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  try {
    const stats = await handle.stat();
    refuseSpecial(stats, requested);
    const path = landedPath(handle.fd, absolute);
    if (isKernelPath(path)) throw new FileRefusal('execution_failed', `${shownPath(requested)} is made up by the kernel (${path}); the file tools do not open such files.`);
    refuseElsewhere(path, requested, landings);
    return { handle, stats, path };
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/** Refuses a path that leads elsewhere than when the call was judged: a link or a folder was exchanged meanwhile. Linux alone says where a descriptor landed. */
export function refuseElsewhere(landed: string, requested: string, landings: Landings): void {
  if (landings === undefined || process.platform !== 'linux' || landings.includes(landed)) return;
  throw new FileRefusal('execution_failed', `${shownPath(requested)} leads to another place now than when the call was judged; nothing was done. Try again.`);
}

export function refuseSpecial(stats: Stats, requested: string): void {
  if (stats.isFile()) return;
  const kind = stats.isDirectory() ? 'a directory; name a file, or list it with glob'
    : stats.isFIFO() ? 'a FIFO' : stats.isSocket() ? 'a socket' : 'a device';
  throw new FileRefusal('execution_failed', `${shownPath(requested)} is ${kind}${stats.isDirectory() ? '' : ', not a regular file'}.`);
}
