import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const root = fileURLToPath(new URL('../../src/cli', import.meta.url));

/** The command line from the bottom to the top: a file imports what stands below it, or beside it in its own line. */
const floors: readonly (readonly string[])[] = [
  ['version.ts', 'options.ts', 'print.ts', 'home-directory.ts'],
  ['early-frame.ts', 'ending.ts'],
  ['secrets.ts', 'trust.ts', 'headless.ts', 'project-files.ts'],
  ['settings.ts'],
  ['mcp'],
  ['session', 'terminal-theme.ts'],
  ['tasks', 'doors', 'comfort'],
  ['command-line.ts'],
  ['repl'],
  ['conversation.ts'],
  ['run.ts'],
  ['main.ts'],
];
/** A front is handed a session port: it knows neither settings nor how a session is opened. */
const fronts: Readonly<Record<string, readonly string[]>> = {
  'headless.ts': ['ending.ts', 'print.ts', 'version.ts'],
};

const part = (path: string): string => path.split('/')[0] ?? '';
const floorOf = (path: string): number => floors.findIndex((names) => names.includes(part(path)));

function importsOf(path: string): readonly string[] {
  const text = readFileSync(join(root, path), 'utf8');
  return [...text.matchAll(/(?:from|import\()\s*'(\.[^']+)\.js'/g)]
    .map((match) => relative(root, resolve(dirname(join(root, path)), `${match[1] ?? ''}.ts`)))
    .filter((target) => !target.startsWith('..'));
}

const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'));

test('each file of the command line has its floor, and imports nothing from above', () => {
  expect(files.filter((file) => floorOf(file) < 0)).toEqual([]);
  const upwards = files.flatMap((file) =>
    importsOf(file)
      .filter((target) => floorOf(target) > floorOf(file))
      .map((target) => `${file} imports ${target}`),
  );
  expect(upwards).toEqual([]);
});

test('a front knows a session port and the streams, not how either came to be', () => {
  for (const [file, allowed] of Object.entries(fronts))
    expect(importsOf(file).filter((target) => !allowed.includes(target))).toEqual([]);
});
