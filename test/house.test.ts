import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';

const src = fileURLToPath(new URL('../src', import.meta.url));
const config = fileURLToPath(new URL('../config', import.meta.url));
const planted = mkdtempSync(join(tmpdir(), 'agent-house-'));
afterAll(() => {
  rmSync(planted, { recursive: true, force: true });
});

function plant(files: Readonly<Record<string, string>>): string {
  rmSync(planted, { recursive: true, force: true });
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(planted, name)), { recursive: true });
    writeFileSync(join(planted, name), text);
  }
  return planted;
}

/** Ways to change how Node loads, compiles or runs the code of others. */
const runtimeHook =
  /\b_extensions\b|\bModule\._|\bcachedData\b|\bvm\.Script\b|\bregisterHooks\b|\bnode:(?:module|vm)['"].*\b_/;

function hooked(root: string): string[] {
  const names = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) => /\.(?:tsx?|mjs)$/.test(name));
  return names.filter((name) => runtimeHook.test(readFileSync(join(root, name), 'utf8')));
}

/** Steps of a build that read a file of a package in order to give out another text for it. */
function patchers(root: string): string[] {
  const names = readdirSync(root).filter((name) => /\.(?:mjs|ts)$/.test(name));
  return names.filter((name) => /onLoad\(\s*\{[^}]*node_modules/.test(readFileSync(join(root, name), 'utf8')));
}

/** File names, without their ending, that appear in more than one folder. */
function repeatedNames(root: string): string[] {
  const names = readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.tsx?$/.test(name))
    .map((name) => basename(name).replace(/\.tsx?$/, ''));
  return [...new Set(names.filter((name, index) => names.indexOf(name) < index))];
}

test('a file name appears once in the tree', () => {
  expect(repeatedNames(src)).toEqual([]);
  const root = plant({ 'core/same.ts': 'export {};\n', 'ui/same.tsx': 'export {};\n', 'ui/other.ts': 'export {};\n' });
  expect(repeatedNames(root)).toEqual(['same']);
});

test('no runtime is hooked and no library is patched', () => {
  expect([...hooked(src), ...hooked(config)]).toEqual([]);
  expect(patchers(config)).toEqual([]);
  const root = plant({
    'a.ts': "Module._extensions['.js'] = load;\n",
    'b.ts': 'new vm.Script(text, { cachedData });\n',
    'c.ts': 'module.enableCompileCache?.();\n',
    'build.mjs': 'plugin.onLoad({ filter: /node_modules\\/ink\\/index\\.js$/ }, change);\n',
  });
  expect(hooked(root)).toEqual(['a.ts', 'b.ts']);
  expect(patchers(root)).toEqual(['build.mjs']);
});
