import { closeSync, constants, fstatSync, openSync, read, readSync, statSync, type Stats } from 'node:fs';
import { promisify } from 'node:util';
import { FileRefusal } from './file-error.js';
import { landedPath } from '../../disk/bounded-file.js';
import { isKernelPath, shownPath } from '../tool-path.js';

export interface OpenFile {
  readonly stats: Stats;
  /** As the kernel resolved it. */
  readonly path: string;
  /** Fills `buffer` from where the last read ended; the number of bytes, 0 at the end. */
  read(buffer: Uint8Array): Promise<number>;
  close(): void;
}

/** Files up to this size are read at once: a worker would take longer to be woken than such a read takes. */
const smallBytes = 256 * 1024;
const readAside = promisify(read);

/** Where a call may land: `landings` of its context. */
type Landings = readonly string[] | undefined;

/** Opens a regular file for reading without ever waiting for a FIFO, a device or a terminal, and asks the kernel where
 * that landed. Throws the system's error, or a FileRefusal for what is no regular file. The caller closes the file. */
export async function openRegular(absolute: string, requested: string, landings?: Landings): Promise<OpenFile> {
  refuseSpecial(statSync(absolute), requested);
  const fd = openSync(absolute, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  try {
    const stats = fstatSync(fd);
    refuseSpecial(stats, requested);
    const path = landedPath(fd, absolute);
    if (isKernelPath(path))
      throw new FileRefusal(
        'execution_failed',
        `${shownPath(requested)} is made up by the kernel (${path}); the file tools do not open such files.`,
      );
    refuseElsewhere(path, requested, landings);
    const isSmall = stats.size <= smallBytes;
    return {
      stats,
      path,
      close: () => {
        closeSync(fd);
      },
      read: async (buffer) =>
        isSmall ? readSync(fd, buffer) : (await readAside(fd, buffer, 0, buffer.length, null)).bytesRead,
    };
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

/** All that is left to read of it. */
export async function readWhole(file: OpenFile): Promise<Buffer> {
  const parts: Buffer[] = [];
  for (;;) {
    const part = Buffer.allocUnsafe(parts.length === 0 ? file.stats.size + 1 : 65_536);
    const bytes = await file.read(part);
    if (bytes === 0) return parts.length === 1 ? (parts[0] ?? Buffer.alloc(0)) : Buffer.concat(parts);
    parts.push(part.subarray(0, bytes));
  }
}

/** Refuses a path that leads elsewhere than when the call was judged: a link or a folder was exchanged meanwhile. Linux
 * alone says where a descriptor landed. */
export function refuseElsewhere(landed: string, requested: string, landings: Landings): void {
  if (landings === undefined || process.platform !== 'linux' || landings.includes(landed)) return;
  throw new FileRefusal(
    'execution_failed',
    `${shownPath(requested)} leads to another place now than when the call was judged; nothing was done. Try again.`,
  );
}

export function refuseSpecial(stats: Stats, requested: string): void {
  if (stats.isFile()) return;
  const kind = stats.isDirectory()
    ? 'a directory; name a file, or list it with glob'
    : stats.isFIFO()
      ? 'a FIFO'
      : stats.isSocket()
        ? 'a socket'
        : 'a device';
  throw new FileRefusal(
    'execution_failed',
    `${shownPath(requested)} is ${kind}${stats.isDirectory() ? '' : ', not a regular file'}.`,
  );
}
