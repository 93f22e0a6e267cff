import { realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { readBounded } from './bounded-file.js';
import { statsAt } from './path-stats.js';

const imported = /(?:\bfrom|\bimport|\brequire)\s*\(?\s*(['"`])(\.{1,2}\/[^'"`\n]+)\1/g;
/** Endings that Node tries for the path of a `require`. */
const endings = ['', '.js', '.cjs', '.mjs', '.json', '.ts', '/index.js'];

/** Returns a module of JavaScript and all files that it imports by relative paths, at any depth, links resolved. Returns
 * at most `maxFiles` + 1 paths. A file that cannot be read imports nothing. */
export function importedFiles(path: string, maxFiles: number): readonly string[] {
  const files = new Set([path]);
  for (const file of files) {
    const found = readBounded(file, { maxBytes: 64 * 1024 * 1024, longer: 'refuse', links: 'follow' });
    if (found.kind !== 'read') continue;
    for (const [, , name = ''] of found.bytes.toString('utf8').matchAll(imported)) {
      const target = endings
        .map((ending) => join(dirname(file), name + ending))
        .find((one) => statsAt(one)?.isFile() === true);
      if (target !== undefined) files.add(realpathSync(target));
      if (files.size > maxFiles) return [...files];
    }
  }
  return [...files];
}
