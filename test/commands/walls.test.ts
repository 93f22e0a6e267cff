import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';

// Verbs know nothing of each other: what several of them need is a file that is no verb. They know nothing of the
// command line either: what they need of it is handed in. The record is read through its ports: SQL and the opening of
// a database belong to the store.

const root = fileURLToPath(new URL('../../src', import.meta.url));
const importPattern =
  /^(?:import|export)\b(?:[^;'"`]*?\bfrom\s*)?\s*(['"])([^'"\n]+)\1|\bimport\s*\(\s*(['"])([^'"\n]+)\3/gm;
/** What of the store has nothing to do with where it is kept. */
const storeParts: readonly string[] = [
  'store/erase-files.ts',
  'store/errors.ts',
  'store/inspect.ts',
  'store/memory-store.ts',
  // A database of another program, which is only read.
  'store/sets/opencode-rows.ts',
];

interface Source {
  /** Below `src`, as the imports. */
  readonly path: string;
  readonly text: string;
  readonly imports: readonly string[];
  /** Those that are loaded when they are needed. */
  readonly late: readonly string[];
}

function readCommands(src: string): readonly Source[] {
  return readdirSync(join(src, 'commands'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => {
      const path = join('commands', name);
      const text = readFileSync(join(src, path), 'utf8');
      const inside = (specifier: string): string =>
        relative(src, resolve(src, dirname(path), specifier)).replace(/\.js$/, '.ts');
      const found = [...text.matchAll(importPattern)];
      const late = found.flatMap((match) => (match[4] === undefined ? [] : [inside(match[4])]));
      return { path, text, late, imports: found.map((match) => inside(match[2] ?? match[4] ?? '')) };
    });
}

/** The table of all commands, and those it is made of. */
const tablePattern = /^commands\/(?:\w+-)?table\.ts$/;

/** What breaks the walls, one line each. */
function broken(sources: readonly Source[]): readonly string[] {
  const verbs = new Set(sources.filter(({ path }) => tablePattern.test(path)).flatMap(({ late }) => late));
  return sources.flatMap(({ path, text, imports }) => [
    ...(tablePattern.test(path) ? [] : imports.filter((other) => verbs.has(other))).map(
      (other) => `${path} imports the verb ${other}`,
    ),
    ...imports.filter((other) => other.startsWith('cli/')).map((other) => `${path} imports ${other}`),
    ...(/\b(?:SELECT|INSERT|UPDATE|DELETE)\b[^'"`\n]*\b(?:FROM|INTO|SET)\b/.test(withoutHelp(text))
      ? [`${path} holds SQL`]
      : []),
    ...imports
      .filter((other) => other.startsWith('store/') && !storeParts.includes(other))
      .map((other) => `${path} imports ${other}`),
  ]);
}

/** What a person reads of SQL is no question to the store. */
function withoutHelp(text: string): string {
  return text.replaceAll(/example: .*$/gm, '');
}

test('the table loads every verb when it is used, and none before', () => {
  const tables = readCommands(root).filter(({ path }) => tablePattern.test(path));
  const late = new Set(tables.flatMap((table) => table.late));
  const others = new Set(tables.flatMap(({ imports }) => imports).filter((path) => !late.has(path)));
  expect(late.size).toBeGreaterThan(15);
  expect([...others].filter((path) => !tablePattern.test(path))).toEqual(['commands/command.ts']);
});

test('no verb imports a verb or the command line, holds SQL or names the database', () => {
  expect(broken(readCommands(root))).toEqual([]);
});

test('each planted breach of the walls is found', () => {
  const src = mkdtempSync(join(tmpdir(), 'agent-walls-'));
  onTestFinished(() => {
    rmSync(src, { recursive: true, force: true });
  });
  const plant = (path: string, text: string): void => {
    mkdirSync(dirname(join(src, path)), { recursive: true });
    writeFileSync(join(src, path), text);
  };
  plant(
    'commands/table.ts',
    "load: async () => (await import('./a/one.js')).one;\nload: () => import('./b/two.js');\n",
  );
  plant('commands/a/one.ts', "import { two } from '../b/two.js';\n");
  plant(
    'commands/b/two.ts',
    "const late = () => import('../a/one.js');\nimport { print } from '../../cli/print.js';\n",
  );
  plant(
    'commands/a/shared.ts',
    "import { openStore } from '../../store/open-store.js';\nrecords.rows('SELECT tool FROM events');\n",
  );
  expect(broken(readCommands(src))).toEqual([
    'commands/a/one.ts imports the verb commands/b/two.ts',
    'commands/a/shared.ts holds SQL',
    'commands/a/shared.ts imports store/open-store.ts',
    'commands/b/two.ts imports the verb commands/a/one.ts',
    'commands/b/two.ts imports cli/print.ts',
  ]);
});
