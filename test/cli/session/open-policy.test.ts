import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { createPathFacts } from '../../../src/cli/session/open-policy.js';

const root = realpathSync(mkdtempSync(join(tmpdir(), 'agent-facts-')));
afterAll(() => {
  rmSync(root, { recursive: true, force: true });
});
mkdirSync(join(root, 'real/deep'), { recursive: true });
writeFileSync(join(root, 'real/file'), 'text');
symlinkSync('real/deep', join(root, 'link'));
symlinkSync('loop', join(root, 'loop'));
symlinkSync(join(root, 'nowhere'), join(root, 'dangling'));
const facts = createPathFacts({ home: root, workspace: root, ownPaths: [] });

test.each([
  ['real/file', 'real/file'],
  ['link/../file', 'real/file'],
  ['link/new/name', 'real/deep/new/name'],
  ['absent/../real/file', 'real/file'],
  ['dangling', 'nowhere'],
])('%s lands on %s', async (path, landed) => {
  expect(await facts.landing(`${root}/${path}`)).toBe(join(root, landed));
});

test('a loop and a relative path land nowhere', async () => {
  expect([await facts.landing(`${root}/loop/x`), await facts.landing('real')]).toEqual([null, null]);
});

test('only regular files that are not longer than asked are read', async () => {
  const read = ['real/file', 'real', 'none', 'dangling'].map((path) => facts.readWhole(`${root}/${path}`, 4));
  expect(await Promise.all([...read, facts.readWhole(`${root}/real/file`, 3)])).toEqual([
    Buffer.from('text'),
    'refused',
    'missing',
    'refused',
    'refused',
  ]);
});
