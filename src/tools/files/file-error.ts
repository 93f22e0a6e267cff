import { readdirSync, readlinkSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import type { ToolOutcome } from '../../core/tool.js';
import type { ErrorCode } from '../../core/envelope.js';
import { nearest } from '../../core/text.js';
import { failed } from '../outcome.js';
import { shownPath } from '../tool-path.js';

/** A refusal of ours, as a value that can be thrown through a read or write. */
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
};

/** The outcome for an error of the file system or a refusal of ours; anything else is a bug and is thrown on. */
export function fileFailure(error: unknown, requested: string, absolute: string): ToolOutcome {
  if (error instanceof FileRefusal) return failed(error.code, error.message);
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (code === 'ENOENT') return notFound(requested, absolute);
  const known = sentences[code];
  if (!known) throw error;
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
  const near = neighbours(absolute);
  const hint = near.length > 0 ? ` Near it: ${near.map(shownPath).join(', ')}.` : '';
  return failed('not_found', `There is no ${shownPath(requested)}.${hint}`, { nearest: near });
}

function linkTarget(absolute: string): string | null {
  try {
    return readlinkSync(absolute);
  } catch {
    return null;
  }
}

/** Names in the same folder (or the nearest one that exists) which look like the missing one. */
function neighbours(absolute: string): readonly string[] {
  const folder = dirname(absolute);
  try {
    return nearest(basename(absolute), readdirSync(folder).slice(0, 5000));
  } catch {
    return folder === dirname(folder) ? [] : neighbours(folder);
  }
}
