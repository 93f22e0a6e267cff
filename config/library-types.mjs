import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';

const importPattern = /(?:from|import\()\s*['"](\.[^'"]+)\.js['"]/g;

/** Writes the types of `agent-shell` to dist/types: those that src/frontends/library/library.ts leads to, and no others. Throws where they
 * name a package, which a program that uses them may not have. */
export function writeLibraryTypes(root) {
  const folder = join(root, 'dist/types');
  const compiler = join(root, 'node_modules/typescript/bin/tsc');
  execFileSync(process.execPath, [compiler, '-p', join(root, 'config/library.tsconfig.json')], { stdio: 'inherit' });
  const needed = new Set();
  const visit = (file) => {
    if (needed.has(file)) return;
    needed.add(file);
    const text = readFileSync(file, 'utf8');
    const stray = /(?:from|import\()\s*['"](?!\.)([^'"]+)['"]/.exec(text);
    if (stray) throw new Error(`${file} needs the types of ${stray[1]}`);
    for (const [, path] of text.matchAll(importPattern)) visit(resolve(dirname(file), `${path}.d.ts`));
  };
  visit(join(folder, 'frontends/library/library.d.ts'));
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    const file = join(folder, name);
    if (name.endsWith('.d.ts') && !needed.has(file)) rmSync(file);
  }
}
