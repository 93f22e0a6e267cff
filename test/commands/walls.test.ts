import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const root = fileURLToPath(new URL('../../src', import.meta.url));
const importPattern = /^import\b([^;'"`]*?)\bfrom\s*'([^'\n]+)'|\bimport\s*\(\s*'([^'\n]+)'/gm;

interface Source {
  /** Below `src`, as the imports. Types are no imports. */
  readonly path: string;
  readonly imports: readonly string[];
  /** Those that are loaded when they are needed. */
  readonly late: readonly string[];
}

const sources: readonly Source[] = readdirSync(root, { recursive: true, encoding: 'utf8' })
  .filter((name) => /^(?:commands|features)\/.*\.ts$/.test(name))
  .map((path) => readSource(path, readFileSync(join(root, path), 'utf8')));

function readSource(path: string, text: string): Source {
  const inside = (specifier: string): string =>
    relative(root, resolve(root, dirname(path), specifier)).replace(/\.js$/, '.ts');
  const found = [...text.matchAll(importPattern)];
  const late = found.flatMap(([, , , specifier]) => (specifier === undefined ? [] : [inside(specifier)]));
  const early = found.flatMap(([, names = '', specifier]) =>
    specifier?.startsWith('.') && !/^\s*type\b/.test(names) ? [inside(specifier)] : [],
  );
  return { path, late, imports: early };
}

/** The tables of commands, and the features, which hold tables. */
const tablePattern = /^commands\/(?:\w+-)?table\.ts$|^features\/[\w-]+\/[\w-]+-feature\.ts$/;
/** What they may import: each other, files that name or describe something, and what every start needs (`-start`). */
const lightPattern = /^kernel\/|^app\/features\.ts$|^features\/[\w-]+\/[\w-]+-(?:parts|start|tables|toolset)\.ts$/;

const tables = sources.filter(({ path }) => tablePattern.test(path));

function heavyImports({ path, imports }: Source): readonly string[] {
  return imports
    .filter((other) => !tablePattern.test(other) && !lightPattern.test(other))
    .map((other) => `${path} imports ${other}`);
}

test('tables and features load every command when it is used, and none before', () => {
  expect(new Set(tables.flatMap(({ late }) => late)).size).toBeGreaterThan(15);
  expect(tables.flatMap(heavyImports)).toEqual([]);
  const planted = readSource(
    'features/a/a-feature.ts',
    "import { run } from './run.js';\nimport type { A } from './a.js';\n",
  );
  expect(heavyImports(planted)).toEqual(['features/a/a-feature.ts imports features/a/run.ts']);
});
