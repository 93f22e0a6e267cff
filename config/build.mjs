// Bundles src/ into dist/: one entry, split at every dynamic import, so that a path loads only what it uses.
import { rm } from 'node:fs/promises';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Ajv } from 'ajv';
import standaloneCode from 'ajv/dist/standalone/index.js';
import { build } from 'esbuild';
import { writeThirdPartyLicenses } from './third-party.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const readJson = (file) => JSON.parse(readFileSync(`${root}/${file}`, 'utf8'));
const versionIn = (file) => readJson(file).version;
const standalone = standaloneCode.default ?? standaloneCode;

/** The checks of the settings and of themes, compiled now in the place of `src/config/validators.ts`, so that a start
 * loads no schema compiler. Source: ajv, "Standalone validation code". */
const withCompiledValidators = {
  name: 'compiled-validators',
  setup(plugin) {
    plugin.onResolve({ filter: /\/validators\.js$/ }, () => ({ path: 'validators', namespace: 'compiled' }));
    plugin.onLoad({ filter: /.*/, namespace: 'compiled' }, () => ({ contents: validators(), resolveDir: root }));
  },
};

function validators() {
  const ajv = new Ajv({ allErrors: true, code: { source: true, esm: true } });
  ajv.addSchema(readJson('config/config.schema.json'), 'settings');
  ajv.addSchema(readJson('config/theme.schema.json'), 'theme');
  return standalone(ajv, { settings: 'settings', theme: 'theme' });
}

await rm(`${root}/dist`, { recursive: true, force: true });
const { metafile } = await build({
  absWorkingDir: root,
  entryPoints: ['src/cli/main.ts'],
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
  external: ['better-sqlite3', '@vscode/ripgrep', 'react-devtools-core', 'ws'],
  define: {
    'process.env.NODE_ENV': '"production"',
    'process.env.DEV': '"false"',
    AGENT_VERSION: JSON.stringify(versionIn('package.json')),
  },
  // Packages in CommonJS ask for Node's own modules by `require`.
  banner: {
    js: "import{createRequire as createRequireHere}from'node:module';const require=createRequireHere(import.meta.url);",
  },
  minify: true,
  legalComments: 'none',
  logLevel: 'warning',
  plugins: [withCompiledValidators],
});
await writeThirdPartyLicenses({ root, metafile, file: `${root}/dist/third-party-licenses.txt` });
