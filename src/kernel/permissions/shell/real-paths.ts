import type { PathFacts } from '../guarded-paths.js';
import { shellGlob } from '../guarded-paths.js';

/** A path that a command names, and where the kernel would land on it: the same path, or the end of its links. */
export interface RealPath {
  readonly path: string;
  readonly landed: string;
  /** The word with wildcards that the shell makes this path from; null: the command names it itself. */
  readonly wildcard: string | null;
}

const maxNamed = 64;
/** The most names that are checked of a wildcard. */
const maxExpanded = 512;

/** Paths of a command's own input and substitutions. They lead elsewhere in this process. */
const ownDescriptor = /^\/dev\/(?:fd\/\d+|std(?:in|out|err))$/;

/** Resolves the paths that a command names: wildcards are expanded on disk, links followed. Text that only the running
 * shell knows (NUL) is left out. */
export async function realPaths(paths: readonly string[], facts: PathFacts): Promise<readonly RealPath[]> {
  const known = paths.filter((path) => !path.includes('\0') && !ownDescriptor.test(path)).slice(0, maxNamed);
  const found: RealPath[] = [];
  for (const path of known) {
    found.push({ path, landed: (await facts.landing(path)) ?? path, wildcard: null });
    for (const name of await expanded(path, facts, maxExpanded - found.length))
      found.push({ path: name, landed: (await facts.landing(name)) ?? name, wildcard: path });
  }
  return found;
}

/** Returns the paths that match an absolute word with wildcards; none if it has no wildcards. */
async function expanded(word: string, facts: PathFacts, most: number): Promise<readonly string[]> {
  if (!/[*?[]/.test(word)) return [];
  let folders: readonly string[] = [''];
  for (const part of word.split('/').slice(1)) {
    const next: string[] = [];
    const fits = /[*?[]/.test(part) ? shellGlob(part) : null;
    for (const folder of folders) {
      const names = fits === null ? [part] : ((await facts.namesIn?.(folder === '' ? '/' : folder)) ?? []).filter(fits);
      for (const name of names.slice(0, Math.max(0, most - next.length))) next.push(`${folder}/${name}`);
    }
    folders = next;
  }
  return folders;
}
