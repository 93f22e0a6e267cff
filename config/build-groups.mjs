// Joins the pieces of a bundle that are always loaded together. esbuild makes one file for every set of imports that
// shares code, which is some fifty files for one start; each costs Node 0.3 ms to find, open and link. A piece that was
// joined stays as a file that passes its names on.
import { createHash } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { build } from 'esbuild';

/** `groups`: names of groups with the sources that open them, in order; a piece belongs to the first group that needs
 * it. `apart`: sources that load before any group and stay as they are. `options` are those of the bundle. */
export async function joinGroups({ folder, metafile, groups, apart, options }) {
  const outputs = new Map(Object.entries(metafile.outputs).map(([path, output]) => [basename(path), output]));
  const taken = closure(outputs, apart);
  const joined = new Set();
  for (const [name, sources] of groups) {
    const pieces = [...closure(outputs, sources)].filter((piece) => !taken.has(piece));
    for (const piece of pieces) taken.add(piece);
    await join(folder, `${name}-${hashOf(pieces)}`, pieces, joined, outputs, options);
    for (const piece of pieces) joined.add(piece);
  }
}

/** The names of pieces hold a hash of what is in them. A file of another build is not found, and not taken for this
 * one's. */
function hashOf(pieces) {
  return createHash('sha256').update(pieces.join()).digest('hex').slice(0, 8).toUpperCase();
}

/** The files that are loaded with `sources`: what they import when they load, and not what they load later. */
function closure(outputs, sources) {
  const found = new Set();
  const visit = (piece) => {
    if (found.has(piece)) return;
    for (const { path, kind } of outputs.get(piece)?.imports ?? [])
      if (kind === 'import-statement' && outputs.has(basename(path))) visit(basename(path));
    found.add(piece);
  };
  for (const source of sources) {
    const piece = [...outputs].find(([, output]) => output.entryPoint === source)?.[0];
    if (piece === undefined) throw new Error(`config/build.mjs names ${source}, which nothing loads by itself`);
    visit(piece);
  }
  return found;
}

/** What an earlier group holds is imported from there without the detour over its piece. */
async function join(folder, name, pieces, joined, outputs, options) {
  const within = (piece) => pieces.includes(piece) || joined.has(piece);
  const exported = (piece) => outputs.get(piece).exports;
  const alias = (piece, exportName) => `p${pieces.indexOf(piece)}_${exportName}`;
  const lines = pieces.map(
    (piece) =>
      `import './${piece}';\nexport { ${exported(piece)
        .map((item) => `${item} as ${alias(piece, item)}`)
        .join(', ')} } from './${piece}';`,
  );
  await build({
    ...options,
    stdin: { contents: lines.join('\n'), resolveDir: folder, loader: 'js' },
    outfile: `${folder}/${name}.js`,
    bundle: true,
    plugins: [
      {
        name: 'group',
        setup(plugin) {
          plugin.onResolve({ filter: /^\.\// }, ({ path, kind }) =>
            kind === 'import-statement' && within(basename(path)) ? undefined : { path, external: true },
          );
        },
      },
    ],
  });
  await Promise.all(
    pieces.map(async (piece) => {
      const names = exported(piece).map((item) => `${alias(piece, item)} as ${item}`);
      await writeFile(
        `${folder}/${piece}`,
        names.length === 0 ? `import './${name}.js';\n` : `export{${names.join(',')}}from'./${name}.js';\n`,
      );
    }),
  );
}
