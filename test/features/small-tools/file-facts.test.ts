import { chmodSync, symlinkSync, unlinkSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { fileFactTools } from '../../../src/features/small-tools/file-facts.js';
import { context, envelopeOf, makeFifo, tree } from '../../kernel/tools/workbench.js';
import { registryOf } from '../registered.js';

const tools = registryOf(fileFactTools());
const ask = (cwd: string, name: string, args: object, landings?: readonly string[]) =>
  envelopeOf(name, args, context(cwd, landings ? { landings } : {}), tools);

function folder(): string {
  const root = tree({
    '.gitignore': 'ignored\n',
    ignored: '',
    'b.txt': 'twelve bytes',
    'a/inside.txt': '',
    'new\nline': '',
    é: '',
  });
  symlinkSync('a', join(root, 'link'));
  symlinkSync('nowhere', join(root, 'broken'));
  makeFifo(join(root, 'pipe'));
  return root;
}

test('a folder is listed as it is, sorted, with the kind of each entry', async () => {
  expect(await ask(folder(), 'fs_list', { path: '.' })).toEqual({
    output: [
      '"new\\nline"',
      '.gitignore',
      'a/',
      'b.txt',
      'broken -> nowhere',
      'ignored',
      'link -> a',
      'pipe',
      'é',
    ].join('\n'),
    count: 9,
  });
});

test('a limit cuts the list and says how much is left', async () => {
  expect(await ask(folder(), 'fs_list', { path: '.', limit: 2 })).toEqual({
    output: '"new\\nline"\n.gitignore',
    count: 9,
    truncated: true,
    left_off: 7,
  });
  for (const limit of [0, 10_001])
    expect(await ask(folder(), 'fs_list', { path: '.', limit })).toMatchObject({ code: 'invalid_args' });
});

test('what is not a folder cannot be listed', async () => {
  const root = folder();
  expect(await ask(root, 'fs_list', { path: 'b.txt' })).toEqual({
    error: 'b.txt is not a directory; see it with fs_metadata.',
    code: 'execution_failed',
  });
  expect(await ask(root, 'fs_list', { path: 'c' })).toMatchObject({ code: 'not_found' });
  expect(await ask(root, 'fs_list', { path: 'link' })).toEqual({ output: 'inside.txt', count: 1 });
});

test('a path exists or does not, and that is not an error', async () => {
  const root = folder();
  const facts = await Promise.all(
    ['b.txt', 'a', 'link', 'broken', 'pipe', 'none', 'none/below', 'b.txt/below'].map((path) =>
      ask(root, 'fs_exists', { path }),
    ),
  );
  expect(facts).toEqual([
    { output: 'true', type: 'file' },
    { output: 'true', type: 'dir' },
    { output: 'true', type: 'dir', target: 'a' },
    { output: 'false', type: 'link', target: 'nowhere' },
    { output: 'true', type: 'fifo' },
    { output: 'false' },
    { output: 'false' },
    { output: 'false' },
  ]);
});

test('metadata is that of what a path leads to', async () => {
  const root = folder();
  const modified = new Date('2026-01-27T13:35:00Z');
  chmodSync(join(root, 'b.txt'), 0o640);
  utimesSync(join(root, 'b.txt'), modified, modified);
  symlinkSync('b.txt', join(root, 'to-b'));
  const facts = { size: 12, modified: '2026-01-27T13:35:00.000Z', mode: '0640', type: 'file' };
  const line = 'file, 12 bytes, modified 2026-01-27T13:35:00.000Z, mode 0640';
  expect(await ask(root, 'fs_metadata', { path: 'b.txt' })).toEqual({ output: line, ...facts });
  expect(await ask(root, 'fs_metadata', { path: 'to-b' })).toEqual({
    output: `${line}, through a link to b.txt`,
    ...facts,
    target: 'b.txt',
  });
  expect(await ask(root, 'fs_metadata', { path: 'broken' })).toMatchObject({ code: 'not_found' });
});

test('a path that leads elsewhere than where policy saw it is refused', async () => {
  const root = folder();
  const secret = tree({ key: 'secret' });
  const judged = [join(root, 'a')];
  unlinkSync(join(root, 'link'));
  symlinkSync(secret, join(root, 'link'));
  for (const name of ['fs_list', 'fs_exists', 'fs_metadata'])
    expect(await ask(root, name, { path: 'link' }, judged)).toMatchObject({
      code: 'execution_failed',
      error: expect.stringContaining('points to a different file') as string,
    });
});

test('a path with a NUL character or without any is refused before the disk is asked', async () => {
  for (const name of ['fs_list', 'fs_exists', 'fs_metadata'])
    for (const path of ['', 'a\0b']) expect(await ask('/', name, { path })).toMatchObject({ code: 'invalid_args' });
});
