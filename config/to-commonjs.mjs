// Turns the files of a bundle into CommonJS, which Node loads without its loader of ES modules and which can be kept
// compiled (src/cli/compiled-files.ts). esbuild splits ES modules only, so this comes after it.
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { transform } from 'esbuild';

/** An import at run time of another file of the bundle; one of a package stays what it is. */
const importLater = /\bimport\((["']\.\.?\/[^"']+["'])\)/g;

/** From this size on files are kept compiled, and what V8 keeps compiled cannot `import()`. */
const keptChars = 8192;

/** `options` are those of the bundle. */
export async function toCommonJs(dist, { target, platform, minify, legalComments, external }) {
  const names = (await readdir(dist, { recursive: true })).filter((name) => name.endsWith('.js'));
  await Promise.all(
    names.map(async (name) => {
      const path = `${dist}/${name}`;
      const { code } = await transform(await readFile(path, 'utf8'), {
        format: 'cjs',
        platform,
        target,
        minify,
        legalComments,
        define: { 'import.meta.url': '__filename' },
        banner: '"use strict";',
        logLevel: 'warning',
      });
      const common = code.replace(importLater, 'Promise.resolve().then(()=>require($1))');
      if (common.length >= keptChars && external.some((pkg) => common.includes(`import("${pkg}")`)))
        throw new Error(`${name} is kept compiled and imports a package: give that import a file of its own`);
      await writeFile(path, common);
    }),
  );
  await writeFile(`${dist}/package.json`, '{"type":"commonjs"}\n');
}
