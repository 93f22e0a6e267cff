// Runs a program written in TypeScript: bundles it with what it imports and starts it on this Node. `node
// test/bench/run.mjs <file.ts> [argument...]`
import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = fileURLToPath(new URL('../..', import.meta.url));
const [file = '', ...rest] = process.argv.slice(2);
const folder = `${root}/node_modules/.bench`;
mkdirSync(folder, { recursive: true });
const outfile = `${folder}/${basename(file, '.ts')}-${process.pid}.mjs`;
await build({
  absWorkingDir: root,
  entryPoints: [file],
  outfile,
  bundle: true,
  format: 'esm',
  platform: 'node',
  target: 'node20',
  mainFields: ['module', 'main'],
  external: [
    'better-sqlite3',
    '@vscode/ripgrep',
    'esbuild',
    'oxc-parser',
    '@lydell/node-pty',
    'pg-native',
    'pg-cloudflare',
    'playwright-core',
  ],
  define: { AGENT_VERSION: '"bench"', AGENT_ROOT: JSON.stringify(root) },
  logLevel: 'error',
  banner: {
    js: "import { createRequire as __createRequire } from 'node:module'; const require = __createRequire(import.meta.url);",
  },
});
const { status, signal } = spawnSync(process.execPath, ['--expose-gc', '--enable-source-maps', outfile, ...rest], {
  stdio: 'inherit',
  cwd: root,
});
(await import('node:fs')).rmSync(outfile, { force: true });
process.exitCode = signal ? 1 : (status ?? 1);
