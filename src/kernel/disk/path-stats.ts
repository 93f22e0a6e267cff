import { lstatSync, type Stats, statSync } from 'node:fs';

/** The result of a look-up of a path. Only "there is nothing" counts as missing; every other error is a refusal. */
export type PathStats =
  | { readonly kind: 'there'; readonly stats: Stats }
  | { readonly kind: 'missing' }
  /** `code`: `EACCES`, `ELOOP`. */
  | { readonly kind: 'refused'; readonly code: string };

/** Returns the facts of a path; with `links: 'keep'` those of a link itself. A path below a file, or one that is too
 * long or no path at all, names nothing. Throws nothing. */
export function pathStats(path: string, links: 'follow' | 'keep'): PathStats {
  try {
    return { kind: 'there', stats: links === 'keep' ? lstatSync(path) : statSync(path) };
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'error';
    return namesNothing.has(code) ? { kind: 'missing' } : { kind: 'refused', code };
  }
}

const namesNothing = new Set(['ENOENT', 'ENOTDIR', 'ENAMETOOLONG', 'ERR_INVALID_ARG_VALUE']);

/** Returns the facts of a path, or null where there is nothing or the system refuses to look. */
export function statsAt(path: string, links: 'follow' | 'keep' = 'follow'): Stats | null {
  const found = pathStats(path, links);
  return found.kind === 'there' ? found.stats : null;
}
