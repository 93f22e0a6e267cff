import { mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, type Plugin } from 'esbuild';
import { expect, onTestFinished, test } from 'vitest';
import { agent, place } from './program.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const list = join(root, 'src/app/features.ts');
const names = [...readFileSync(list, 'utf8').matchAll(/features\/([\w-]+)\/[\w-]+-feature\.js/g)].map(
  ([, name = '']) => name,
);

/** Takes the line of a feature out of the list, and its folder out of the tree. */
function without(name: string): Plugin {
  return {
    name: 'without-feature',
    setup(plugin) {
      plugin.onLoad({ filter: /src\/app\/features\.ts$/ }, ({ path }) => {
        const text = readFileSync(path, 'utf8');
        const line = new RegExp(`^import \\{ (\\w+) \\} from '../features/${name}/${name}-feature\\.js';\\n`, 'm');
        const exported = line.exec(text)?.[1] ?? '';
        const entry = new RegExp(`^ {2}${exported},\\n`, 'm');
        return { contents: text.replace(line, '').replace(entry, ''), loader: 'ts' };
      });
      plugin.onResolve({ filter: /^\.\.?\// }, ({ path, resolveDir }) => {
        const inside = relative(join(root, 'src/features', name), join(resolveDir, path));
        return inside.startsWith('..') ? null : { errors: [{ text: `${name} is not there` }] };
      });
    },
  };
}

/** Builds the program without a feature. Returns the file to start. */
async function builtWithout(name: string): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'agent-without-'));
  onTestFinished(() => {
    rmSync(folder, { recursive: true, force: true });
  });
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  await build({
    absWorkingDir: root,
    entryPoints: ['src/cli/main.ts'],
    outdir: join(folder, 'dist'),
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20.19',
    mainFields: ['module', 'main'],
    // Bundling them takes most of the time of a build.
    packages: 'external',
    define: { 'process.env.NODE_ENV': '"production"', 'process.env.DEV': '"false"', AGENT_VERSION: '"0.0.0"' },
    banner: {
      js: "import{createRequire as createRequireHere}from'node:module';const require=createRequireHere(import.meta.url);",
    },
    logLevel: 'silent',
    plugins: [without(name)],
  });
  return join(folder, 'dist/main.js');
}

test.each(names)('the program works without %s', async (name) => {
  const program = await builtWithout(name);
  const env = { AGENT_MODEL: 'offline/offline' };
  const starts = [['--help'], ['-p', 'hi'], ['doctor']].map(async (argv) => {
    const { code, stdout, stderr } = await agent(place(), argv, { program, env });
    expect([argv, code, stderr]).toEqual([argv, 0, '']);
    expect(stdout).not.toBe('');
  });
  await Promise.all(starts);
});
