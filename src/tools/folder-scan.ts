import { readdirSync, statSync, type Dirent } from 'node:fs';
import { join } from 'node:path';

const skippedFolders = new Set(['node_modules', '.git']);
const maxFolders = 1000;
/** A folder that changed this shortly before it was read may change again without another time stamp. */
const settleMs = 50;

type Read<T> = (path: string, entries: readonly Dirent[]) => T;

interface Folder<T> {
  readonly changedAt: number;
  readonly settled: boolean;
  readonly folders: readonly string[];
  readonly found: T;
}

/** Looks through the folders of `root`, breadth first and up to 1,000, without `node_modules` and `.git`; `read` says
 * of each what there is to know. The first look reads them all, later ones read what changed (by the kernel's change
 * time, which no program can set). Folders that cannot be read are left out. */
export function createFolderScan<T>(root: string, read: Read<T>): () => ReadonlyMap<string, T> {
  let known = new Map<string, Folder<T>>();
  return () => {
    const seen = new Map<string, Folder<T>>();
    const queue = [root];
    for (let index = 0; index < queue.length && seen.size < maxFolders; index++) {
      const path = queue[index] ?? '';
      const folder = readFolder(path, known.get(path), read);
      if (!folder) continue;
      seen.set(path, folder);
      queue.push(...folder.folders);
    }
    known = seen;
    return new Map([...seen].map(([path, folder]) => [path, folder.found]));
  };
}

function readFolder<T>(path: string, known: Folder<T> | undefined, read: Read<T>): Folder<T> | null {
  const now = Date.now();
  try {
    const stat = statSync(path);
    if (!stat.isDirectory()) return null;
    if (known?.settled && known.changedAt === stat.ctimeMs) return known;
    const entries = readdirSync(path, { withFileTypes: true });
    const inner = entries.filter((entry) => entry.isDirectory() && !skippedFolders.has(entry.name));
    const folders = inner.map((entry) => join(path, entry.name));
    return { found: read(path, entries), folders, changedAt: stat.ctimeMs, settled: now - stat.ctimeMs > settleMs };
  } catch {
    return null; // gone, or not readable for us, and so not for a command
  }
}
