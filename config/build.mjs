// Bundles src/ into dist/: one entry, split at every dynamic import, so that a path loads only what it uses.
import { execFileSync } from 'node:child_process';
import { copyFile, mkdir, rm, writeFile } from 'node:fs/promises';
import { existsSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { withCompiledChecks } from './compiled-checks.mjs';
import { writeLibraryTypes } from './library-types.mjs';
import { writeSbom } from './sbom.mjs';
import { bundledPackages, writeThirdPartyLicenses } from './third-party.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const readJson = (file) => JSON.parse(readFileSync(`${root}/${file}`, 'utf8'));
const versionIn = (file) => readJson(file).version;

/** The commit of the sources and its day, `1a2b3c4d, 2026-11-29`, and whether files differ from it; '' outside of a
 * clone. */
function commitOf(folder) {
  if (!existsSync(`${folder}/.git`)) return '';
  const git = (...args) => execFileSync('git', ['-C', folder, ...args], { encoding: 'utf8' }).trim();
  const changed = git('status', '--porcelain', '--untracked-files=no') === '' ? '' : ', modified';
  return `${git('log', '-1', '--abbrev=8', '--format=%h, %cs')}${changed}`;
}

/** What every session loads. */
const startRoots = ['src/cli/run.ts', 'src/kernel/providers/http/endpoint-provider.ts'];

/** Throws where two of these modules export the same name. */
function refuseEqualExports(outputs) {
  const names = Object.values(outputs).flatMap((file) => (startRoots.includes(file.entryPoint) ? file.exports : []));
  const twice = names.find((name, index) => names.indexOf(name) < index);
  if (twice !== undefined) throw new Error(`two modules of the start export \`${twice}\`: one name is lost`);
}

/** Puts what every session loads into one file, because Node takes half a millisecond to find and link each. esbuild
 * makes one file of the modules that the same entries reach. So each `import()` that reaches some of them goes to an
 * entry that reaches all, and those of the roots go to the same entry. `inputs` and `outputs`: what a build before
 * found. */
function withOneStart({ inputs, outputs }) {
  refuseEqualExports(outputs);
  const first = reached(inputs, ['src/cli/main.ts', 'src/ui/early-frame.ts']);
  const start = reached(inputs, startRoots);
  const later = Object.values(inputs).flatMap(({ imports }) =>
    imports.flatMap(({ kind, path }) => (kind === 'dynamic-import' && !first.has(path) ? [path] : [])),
  );
  const entries = new Set(later.filter((path) => [...reached(inputs, [path])].some((found) => start.has(found))));
  return {
    name: 'one-start',
    setup(plugin) {
      plugin.onResolve({ filter: /^\.\.?\// }, ({ kind, path, resolveDir, namespace }) => {
        const source = relative(root, join(resolveDir, path)).replace(/\.js$/, '.ts');
        if (kind !== 'dynamic-import' || namespace !== 'file' || !entries.has(source)) return null;
        return { path: startRoots.includes(source) ? startRoots[0] : source, namespace: 'entry' };
      });
      plugin.onLoad({ filter: /.*/, namespace: 'entry' }, ({ path }) => {
        const exported = path === startRoots[0] ? startRoots : [path];
        const lines = [
          ...startRoots.map((other) => `import './${other}';`),
          ...exported.map((other) => `export * from './${other}';`),
        ];
        return { contents: lines.join('\n'), resolveDir: root };
      });
    },
  };
}

/** Returns the modules that are loaded with `roots`. */
function reached(inputs, roots) {
  const found = new Set();
  const open = [...roots];
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    if (found.has(path) || !(path in inputs)) continue;
    found.add(path);
    open.push(...inputs[path].imports.filter(({ kind }) => kind !== 'dynamic-import').map((next) => next.path));
  }
  return found;
}

/** An `import` of one of Node's modules reads all of its properties. That of `node:http` loads WebSockets with it: 20 ms
 * on Node 22 and 24. So the bundle takes the properties that it uses, at the top of each file, where an `import` would
 * have run. */
function withBuiltinsRead(code) {
  const read = [];
  const rest = code.replaceAll(/\bimport([^;"'()]+?)\s?from"(node:[\w/]+)";?/g, (_line, names, module) => {
    const [, one, all, some] = /^\s?(?:([\w$]+),?)?(?:\*as ([\w$]+))?(\{[^}]*\})?$/.exec(names);
    const found = `process.getBuiltinModule("${module}")`;
    for (const name of [one, all, some?.replaceAll(/\s+as\s+/g, ':')]) if (name) read.push(`${name}=${found}`);
    return '';
  });
  return read.length === 0 ? code : `const ${read.join(',\n')};\n${rest}`;
}

/** Node reads a table sooner as JSON in a text than as code. */
const withJsonAsText = {
  name: 'json-as-text',
  setup(plugin) {
    plugin.onLoad({ filter: /\/config\/.*\.json$/ }, ({ path }) => ({
      contents: `export default JSON.parse(${JSON.stringify(JSON.stringify(readJson(relative(root, path))))});`,
    }));
  },
};

const options = {
  absWorkingDir: root,
  entryPoints: [
    'src/cli/main.ts',
    'src/frontends/library/library.ts',
    'src/kernel/tools/page-worker.ts',
    'src/features/attachments/scale-worker.ts',
  ],
  outdir: 'dist',
  entryNames: '[name]',
  chunkNames: 'chunks/[name]-[hash]',
  bundle: true,
  splitting: true,
  metafile: true,
  format: 'esm',
  platform: 'node',
  target: 'node20.19',
  mainFields: ['module', 'main'],
  // It finds its WebAssembly beside itself, so it goes along as it is.
  alias: { '@silvia-odwyer/photon-node': './photon_rs.cjs' },
  external: [
    'better-sqlite3',
    '@vscode/ripgrep',
    'react-devtools-core',
    'ws',
    'pg-native',
    'pg-cloudflare',
    './photon_rs.cjs',
  ],
  define: {
    'process.env.NODE_ENV': '"production"',
    'process.env.DEV': '"false"',
    AGENT_VERSION: JSON.stringify(versionIn('package.json')),
    AGENT_COMMIT: JSON.stringify(commitOf(root)),
  },
  // Packages in CommonJS ask for Node's own modules by `require`.
  banner: {
    js: "const require=process.getBuiltinModule('node:module').createRequire(import.meta.url);",
  },
  minify: true,
  // Node prints the source line of an uncaught error.
  lineLimit: 200,
  legalComments: 'none',
  logLevel: 'warning',
};
// `npm start` builds once.
if (process.argv.includes('--once') && existsSync(`${root}/dist/agent.1`)) process.exit(0);
await rm(`${root}/dist`, { recursive: true, force: true });
const plugins = [withCompiledChecks, withJsonAsText];
const plan = await build({ ...options, write: false, plugins });
const built = await build({ ...options, write: false, plugins: [...plugins, withOneStart(plan.metafile)] });
const { metafile } = built;
await mkdir(`${root}/dist/chunks`, { recursive: true });
for (const { path, text } of built.outputFiles) await writeFile(path, withBuiltinsRead(text));
const photon = 'node_modules/@silvia-odwyer/photon-node';
await copyFile(`${root}/${photon}/photon_rs.js`, `${root}/dist/photon_rs.cjs`);
await copyFile(`${root}/${photon}/photon_rs_bg.wasm`, `${root}/dist/photon_rs_bg.wasm`);
const packages = bundledPackages({ root, metafile, copied: [photon] });
await writeThirdPartyLicenses(packages, `${root}/dist/third-party-licenses.txt`);
const bundled = [...new Set(packages.map(({ name, version }) => `${name}@${version}`))];
writeSbom({ root, bundled, file: `${root}/dist/sbom.cdx.json` });
writeLibraryTypes(root);
// The manual page is made from the table of commands, by the program itself.
await writeFile(`${root}/dist/agent.1`, execFileSync(process.execPath, [`${root}/bin/agent.js`, 'help', '--man']));
