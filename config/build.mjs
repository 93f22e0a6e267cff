// Bundles src/ into dist/: one entry, split at every dynamic import, so that a path loads only what it uses.
import { rm } from 'node:fs/promises';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = fileURLToPath(new URL('..', import.meta.url));
const { version } = JSON.parse(readFileSync(`${root}/package.json`, 'utf8'));

/** Ink imports react-devtools-core when DEV is set; it is not installed, so the bundle carries an empty module instead. */
const withoutDevtools = {
  name: 'without-devtools',
  setup(plugin) {
    plugin.onResolve({ filter: /^react-devtools-core$/ }, () => ({ path: 'react-devtools-core', namespace: 'empty' }));
    plugin.onLoad({ filter: /.*/, namespace: 'empty' }, () => ({ contents: 'export default {};' }));
  },
};

await rm(`${root}/dist`, { recursive: true, force: true });
await build({
  absWorkingDir: root,
  entryPoints: ['src/cli/main.ts'],
  outdir: 'dist',
  entryNames: '[name]',
  chunkNames: 'chunks/[name]-[hash]',
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node20.19',
  mainFields: ['module', 'main'],
  external: ['better-sqlite3', '@vscode/ripgrep'],
  define: { 'process.env.NODE_ENV': '"production"', 'process.env.DEV': '"false"', AGENT_VERSION: JSON.stringify(version) },
  banner: { js: "import { createRequire as __createRequire } from 'node:module'; const require = __createRequire(import.meta.url);" },
  plugins: [withoutDevtools],
  minifySyntax: true,
  minifyWhitespace: true,
  legalComments: 'none',
  logLevel: 'warning',
});
