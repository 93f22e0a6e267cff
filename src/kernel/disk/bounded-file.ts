import { createHash } from 'node:crypto';
import { closeSync, constants, fstatSync, openSync, readlinkSync, readSync, realpathSync } from 'node:fs';

/** The limits for reading a file. */
export interface BoundedRead {
  readonly maxBytes: number;
  /** A longer file is not read, or its first or its last `maxBytes` are. */
  readonly longer: 'refuse' | 'start' | 'end';
  /** `refuse`: a path whose last part is a link is not read, as git does not read such a `.gitignore`. */
  readonly links: 'follow' | 'refuse';
}

export type FileContents =
  /** `path` is the kernel's path of the file; `size` is that of the whole file. */
  | { readonly kind: 'read'; readonly bytes: Buffer; readonly path: string; readonly size: number }
  | { readonly kind: 'missing' }
  /** `reason` is a clause: `it is not a regular file`. */
  | { readonly kind: 'refused'; readonly reason: string };

/** Reads a file that somebody else may have put there: never waits for a pipe or a device, reads no more than
 * `maxBytes`, and throws nothing. The program reads files unasked only through this function; test/architecture.test.ts
 * names the other readers. */
export function readBounded(path: string, { maxBytes, longer, links }: BoundedRead): FileContents {
  let descriptor: number;
  try {
    descriptor = openSync(
      path,
      constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY | (links === 'refuse' ? constants.O_NOFOLLOW : 0),
    );
  } catch (error) {
    return unopened(error);
  }
  try {
    const stats = fstatSync(descriptor);
    if (!stats.isFile()) return { kind: 'refused', reason: 'it is not a regular file' };
    const { size } = stats;
    if (size > maxBytes && longer === 'refuse')
      return { kind: 'refused', reason: `it has ${size} bytes, over ${maxBytes}` };
    const bytes = readFrom(descriptor, longer === 'end' ? Math.max(0, size - maxBytes) : 0, maxBytes + 1, size);
    if (bytes.length <= maxBytes) return { kind: 'read', bytes, path: landedPath(descriptor, path), size };
    if (longer === 'refuse') return { kind: 'refused', reason: `it has more than ${maxBytes} bytes` };
    return { kind: 'read', bytes: bytes.subarray(0, maxBytes), path: landedPath(descriptor, path), size };
  } catch (error) {
    return { kind: 'refused', reason: `it cannot be read (${codeOf(error)})` };
  } finally {
    closeSync(descriptor);
  }
}

/** Reads a file as text, without a byte order mark; null where there is none or it is refused. */
export function readBoundedText(path: string, options: BoundedRead): string | null {
  const found = readBounded(path, options);
  return found.kind === 'read' ? found.bytes.toString('utf8').replace(/^\uFEFF/, '') : null;
}

/** A line of a file without its end. `text` is null for one of more than the most bytes. */
export interface FileLine {
  readonly text: string | null;
  /** The file ends in this line: perhaps somebody is still writing it. */
  readonly torn: boolean;
  /** The position of its first byte in the file. */
  readonly at: number;
}

const chunkBytes = 256 * 1024;

/** Yields the lines of a regular file of any size behind the first `from` bytes, a piece of it in memory at a time;
 * empty lines where `empty` says so. Throws an Error whose message is a clause where the file cannot be read. */
export function* fileLines(
  path: string,
  maxLineBytes: number,
  { from: start = 0, empty = false } = {},
): Generator<FileLine> {
  let parts: Buffer[] = [];
  let length = 0;
  let at = start;
  const line = (torn: boolean): FileLine => {
    const text = length > maxLineBytes ? null : Buffer.concat(parts).toString('utf8').replace(/\r$/, '');
    const made = { text, torn, at };
    at += length + 1;
    parts = [];
    length = 0;
    return made;
  };
  const add = (part: Buffer): void => {
    length += part.length;
    if (length > maxLineBytes) parts = [];
    else if (part.length > 0) parts.push(part);
  };
  for (const chunk of fileChunks(path, start)) {
    let from = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
      add(chunk.subarray(from, end));
      if (length > 0 || empty) yield line(false);
      else at += 1;
      from = end + 1;
    }
    // The next chunk overwrites this buffer, so the part of a line that continues in it is copied.
    if (from < chunk.length) add(Buffer.from(chunk.subarray(from)));
  }
  if (length > 0) yield line(true);
}

/** Returns the SHA-256 (hex) of a regular file of any size. Throws as `fileLines`. */
export function fileSha256(path: string): string {
  const hash = createHash('sha256');
  for (const chunk of fileChunks(path)) hash.update(chunk);
  return hash.digest('hex');
}

/** Yields the same memory again and again. */
function* fileChunks(path: string, start = 0): Generator<Buffer> {
  const descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  try {
    if (!fstatSync(descriptor).isFile()) throw new Error('it is not a regular file');
    const chunk = Buffer.allocUnsafe(chunkBytes);
    let at = start;
    for (let count = 1; count > 0; at += count) {
      count = readSync(descriptor, chunk, 0, chunkBytes, at);
      if (count > 0) yield chunk.subarray(0, count);
    }
  } finally {
    closeSync(descriptor);
  }
}

/** Reads without trusting the size: files of the kernel say 0, and a file may grow meanwhile. */
function readFrom(descriptor: number, start: number, maxBytes: number, size: number): Buffer {
  const parts: Buffer[] = [];
  let length = 0;
  while (length < maxBytes) {
    const part = Buffer.allocUnsafe(Math.min(maxBytes - length, parts.length === 0 ? size + 1 : 65_536));
    const count = readSync(descriptor, part, 0, part.length, start + length);
    if (count === 0) break;
    parts.push(part.subarray(0, count));
    length += count;
  }
  return parts.length === 1 ? (parts[0] ?? Buffer.alloc(0)) : Buffer.concat(parts);
}

function unopened(error: unknown): FileContents {
  const code = codeOf(error);
  if (code === 'ENOENT' || code === 'ENOTDIR') return { kind: 'missing' };
  if (code === 'ELOOP') return { kind: 'refused', reason: 'it is a link' };
  if (code === 'ENXIO') return { kind: 'refused', reason: 'it is not a regular file' };
  return { kind: 'refused', reason: `it cannot be opened (${code})` };
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'error';
}

/** The kernel's path of an open descriptor. Where there is no /proc, `path` is resolved once more. */
export function landedPath(descriptor: number, path: string): string {
  try {
    return readlinkSync(`/proc/self/fd/${descriptor}`);
  } catch {
    return realpathSync(path);
  }
}
