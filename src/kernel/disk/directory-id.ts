import { statSync } from 'node:fs';

/** Identifies a directory, also after it or a folder above it was moved within its file system: by its inode and its
 * time of birth, since inodes are used again. The number of the device may change with a restart and is left out.
 * Returns null where the file system does not say. */
export function directoryId(path: string): string | null {
  try {
    const { ino, birthtimeNs, ctimeNs } = statSync(path, { bigint: true });
    return birthtimeNs === 0n || birthtimeNs > ctimeNs ? null : `${ino}:${birthtimeNs}`;
  } catch {
    return null;
  }
}

/** Returns the key for the notes of a directory: its id, which remains the same when the directory is moved, or its
 * path if it has no id. */
export function projectOf(cwd: string): string {
  return directoryId(cwd) ?? cwd;
}
