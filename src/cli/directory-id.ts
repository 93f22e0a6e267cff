import { statSync } from 'node:fs';

/** What tells a directory from others, also after it or a folder above it was moved within its file system: its inode
 * and when it was made (inodes are used again). Without the device, whose number may be another one after a restart.
 * Null where the file system does not say. */
export function directoryId(path: string): string | null {
  try {
    const { ino, birthtimeNs, ctimeNs } = statSync(path, { bigint: true });
    return birthtimeNs === 0n || birthtimeNs > ctimeNs ? null : `${ino}:${birthtimeNs}`;
  } catch {
    return null;
  }
}
