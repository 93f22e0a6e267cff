import {
  closeSync,
  constants,
  fstatSync,
  openSync,
  read,
  readdirSync,
  readlinkSync,
  readSync,
  type Stats,
  statSync,
} from 'node:fs';
import { basename, dirname, isAbsolute, relative } from 'node:path';
import { promisify } from 'node:util';
import type { ErrorCode } from '../../core/envelope.js';
import { nearest } from '../../core/text.js';
import type { ArgumentProblem, ToolOutcome } from '../../core/tool.js';
import { landedPath } from '../../disk/bounded-file.js';
import { failed } from '../define-tool.js';

export interface OpenFile {
  readonly stats: Stats;
  /** The path as the kernel resolved it. */
  readonly path: string;
  /** Fills `buffer` from the end of the last read. Returns the number of bytes, 0 at the end of the file. */
  read(buffer: Uint8Array): Promise<number>;
  close(): void;
}

/** Files up to this size are read synchronously: waking a worker takes longer. */
const smallBytes = 256 * 1024;
const readAside = promisify(read);

/** The places that a call may reach: `landings` of its context. */
type Landings = readonly string[] | undefined;

/** Opens a regular file for reading, without ever waiting for a FIFO, a device or a terminal, and asks the kernel for
 * the path that was opened. Throws the error of the system, or a FileRefusal for anything but a regular file. The
 * caller closes the file. */
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

/** Reads the rest of the file. */
export async function readWhole(file: OpenFile): Promise<Buffer> {
  const parts: Buffer[] = [];
  for (;;) {
    const part = Buffer.allocUnsafe(parts.length === 0 ? file.stats.size + 1 : 65_536);
    const bytes = await file.read(part);
    if (bytes === 0) return parts.length === 1 ? (parts[0] ?? Buffer.alloc(0)) : Buffer.concat(parts);
    parts.push(part.subarray(0, bytes));
  }
}

/** Refuses a path that leads to another place than when the call was judged, because a link or a folder was exchanged
 * meanwhile. Only Linux shows where a descriptor leads. */
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

/** A refusal of our own, thrown out of a read or a write. */
export class FileRefusal extends Error {
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}

const sentences: Readonly<Record<string, readonly [ErrorCode, string]>> = {
  ENOTDIR: ['execution_failed', 'a part of the path is a file, not a folder'],
  EISDIR: ['execution_failed', 'it is a directory; name a file, or list it with glob'],
  EACCES: ['permission_denied', 'the system does not allow it'],
  EPERM: ['permission_denied', 'the system does not allow it'],
  EROFS: ['permission_denied', 'the file system is read-only'],
  ELOOP: ['execution_failed', 'its symbolic links form a loop'],
  ENAMETOOLONG: ['execution_failed', 'the name is too long for the file system'],
  ENOSPC: ['execution_failed', 'no space left on the device; the old content is untouched'],
  EDQUOT: ['execution_failed', 'the disk quota is used up; the old content is untouched'],
  EFBIG: ['execution_failed', 'the file would be larger than the system allows; the old content is untouched'],
  ENXIO: ['execution_failed', 'it is a socket or a device, not a regular file'],
  EMFILE: ['execution_failed', 'too many files are open; try again'],
  EIO: ['execution_failed', 'the disk reports an input/output error'],
  EBUSY: ['execution_failed', 'something else is using it, such as a mount'],
  ETXTBSY: ['execution_failed', 'it is a program that is running'],
};

/** Returns the outcome for an error of the file system or a refusal of our own. Throws any other error: it is a bug. */
export function fileFailure(error: unknown, requested: string, absolute: string): ToolOutcome {
  if (error instanceof FileRefusal) return failed(error.code, error.message);
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (code === 'ENOENT') return notFound(requested, absolute);
  if (!/^E[A-Z0-9]+$/.test(code)) throw error;
  const known = sentences[code] ?? (['execution_failed', 'the system reports an error'] as const);
  return failed(known[0], `${shownPath(requested)}: ${known[1]} (${code}).`);
}

function notFound(requested: string, absolute: string): ToolOutcome {
  const target = linkTarget(absolute);
  if (target !== null)
    return failed(
      'not_found',
      `${shownPath(requested)} is a symbolic link to ${shownPath(target)}, which does not exist.`,
      { link_to: target },
    );
  const { near, twin } = neighbours(absolute);
  if (twin !== null)
    return failed(
      'not_found',
      `There is no ${shownPath(requested)}. ${shownPath(twin)} looks the same and is another name: ` +
        `its characters are encoded differently. In JSON it is written ${escaped(twin)}.`,
      { nearest: [twin] },
    );
  const hint = near.length > 0 ? ` Near it: ${near.map(shownPath).join(', ')}.` : '';
  return failed('not_found', `There is no ${shownPath(requested)}.${hint}`, { nearest: near });
}

/** Returns a JSON string that shows every character beyond ASCII by its number. */
function escaped(name: string): string {
  return JSON.stringify(name).replace(
    /[^\x20-\x7e]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

function linkTarget(absolute: string): string | null {
  try {
    return readlinkSync(absolute);
  } catch {
    return null;
  }
}

/** Returns similar names in the same folder, or in the nearest folder that exists. `twin`: a name there that looks the
 * same, such as a decomposed one (NFD) or one with a narrow blank, as macOS writes them. */
function neighbours(absolute: string): { readonly near: readonly string[]; readonly twin: string | null } {
  const folder = dirname(absolute);
  const name = basename(absolute);
  try {
    const names = readdirSync(folder);
    const looks = name.normalize('NFKC');
    const twin = names.find((other) => other !== name && other.normalize('NFKC') === looks) ?? null;
    return { near: nearest(name, names.slice(0, 5000)), twin };
  } catch {
    return folder === dirname(folder) ? { near: [], twin: null } : neighbours(folder);
  }
}

/** Returns the absolute form of a path. `..` and a final `/` stay, because the kernel decides what they mean behind
 * links. */
export function absolutePath(cwd: string, path: string): string {
  return isAbsolute(path) ? path : `${cwd.endsWith('/') ? cwd : `${cwd}/`}${path}`;
}

/** Returns a path as results show it: relative to the working directory, with `/`; as a JSON string if it has a control
 * character. */
export function shownPath(path: string): string {
  return /\p{Cc}/u.test(path)
    ? JSON.stringify(path).replace(/[\u007f-\u009f]/g, (c) => `\\u00${c.charCodeAt(0).toString(16)}`)
    : path;
}

/** Returns `path` relative to `cwd`; `.` for `cwd` itself. */
export function relativePath(cwd: string, path: string): string {
  return relative(cwd, path) || '.';
}

/** Returns true for files that the kernel generates: some of them look like regular files, never end or hold our own
 * secrets. */
export function isKernelPath(path: string): boolean {
  return /^\/(?:proc|sys|dev)(?:\/|$)/.test(path) && !path.startsWith('/dev/shm/');
}

/** Returns what is wrong with a path before the file system is asked, or null. */
export function pathProblem(argument: string, path: unknown): ArgumentProblem | null {
  if (typeof path !== 'string') return null;
  if (path === '') return { argument, problem: 'empty', expected: 'a path' };
  if (path.includes('\0')) return { argument, problem: 'contains a NUL character', expected: 'a path without it' };
  if (/^~(?:\/|$)/.test(path))
    return {
      argument,
      problem: '~ is not expanded here',
      expected: 'the full path of the home folder, or ./~ for a folder of that name',
    };
  return null;
}
