import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { bagsBelow, bagsIn } from './bags.js';
import { measureHouse } from './house-measures.js';

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

test('the tree is one that a stranger can find the way in', () => {
  const { files, filesOfToolsets, largest, oneImporterPercent, smallPercent, bytesALine, ...lists } = measureHouse(src);
  // 230 when the tree was rebuilt. A tool, a command, a component each add one.
  expect(files).toBeLessThanOrEqual(262);
  expect(filesOfToolsets).toBeLessThanOrEqual(230);
  expect(largest).toBeLessThanOrEqual(500);
  expect(oneImporterPercent).toBeLessThanOrEqual(25);
  expect(smallPercent).toBeLessThanOrEqual(8);
  expect(bytesALine).toBeLessThanOrEqual(40);
  expect(lists).toEqual({
    medianLines: expect.any(Number) as number,
    linesOver120: 0,
    doubledNames: [],
    crowdedFolders: [],
    repeatedPrefixes: [],
  });
});

test('a planted second name, crowded folder, repeated prefix and long line are found', () => {
  const many = Object.fromEntries([...Array(21).keys()].map((index) => [`tools/t${index}.ts`, 'export {};\n']));
  const root = plant({
    ...many,
    'core/same.ts': "import '../ui/same.js';\n",
    'ui/same.ts': `export const long = '${'x'.repeat(120)}';\n`,
    'ui/shell/shell-words.ts': 'export {};\n',
    'ui/wires/wire-usage.ts': "export const load = () => import('../same.js');\n",
  });
  const measures = measureHouse(root);
  expect(measures).toMatchObject({
    files: 25,
    filesOfToolsets: 0,
    linesOver120: 1,
    doubledNames: ['same'],
    crowdedFolders: ['tools'],
    repeatedPrefixes: ['ui/shell/shell-words.ts', 'ui/wires/wire-usage.ts'],
    oneImporterPercent: 4,
    smallPercent: 100,
  });
});

test('nothing that is handed around has more than 12 members', () => {
  expect(bagsBelow(src, 12).filter((bag) => bag.works)).toEqual([]);
  const members = [...Array(13).keys()].map((index) => `readonly m${index}: number;`).join(' ');
  const source = `interface Row { ${members} }\nexport interface Bag { run(): void; ${members} }\ntype Late = Readonly<{ a: () => void; ${members} }>;\n`;
  expect(bagsIn('a.ts', source, 12)).toEqual([
    { file: 'a.ts', name: 'Row', members: 13, works: false },
    { file: 'a.ts', name: 'Bag', members: 14, works: true },
    { file: 'a.ts', name: 'Late', members: 14, works: true },
  ]);
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
