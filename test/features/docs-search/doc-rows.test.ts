import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import type { DocIndex, IndexedDoc } from '../../../src/kernel/core/files/documents.js';
import { openDocIndex } from '../../../src/features/docs-search/doc-rows.js';

const folder = mkdtempSync(join(tmpdir(), 'agent-doc-index-'));
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

let made = 0;
const newFile = (): string => join(folder, String(made++), 'docs.db');

function doc(path: string, ...texts: readonly string[]): IndexedDoc {
  const parts = texts.map((text, at) => ({
    heading: `Part ${at + 1}`,
    fromLine: at * 10 + 1,
    toLine: at * 10 + 9,
    text,
  }));
  return { path, size: 10, modifiedMs: 0.5, parts };
}

async function filled(file = newFile()): Promise<DocIndex> {
  const index = await openDocIndex(file);
  index.update(
    '/a',
    [doc('one.md', 'Foxes are running here', 'A fox'), doc('sub/two.md', 'file_read reads files')],
    [],
  );
  index.update('/b', [doc('one.md', 'foxes elsewhere')], []);
  return index;
}
const found = (index: DocIndex, query: string, prefix = '', limit = 5) =>
  index.byWords({ root: '/a', prefix }, query, limit).map(({ path, fromLine }) => `${path}:${fromLine}`);

test('words are found by their stem, in one root and below one folder', async () => {
  const index = await filled();
  expect(found(index, 'fox run')).toEqual(['one.md:1', 'one.md:11']);
  expect(found(index, 'FOXES', 'sub/')).toEqual([]);
  expect(found(index, 'how does file_read work?')).toEqual(['sub/two.md:1']);
  expect(found(index, 'fox', '', 1)).toHaveLength(1);
  expect(found(index, '"* NEAR( OR ^')).toEqual([]);
  expect(found(index, '!?')).toEqual([]);
  index.close();
});

test('a hit says where it stands, with the words around it in one line', async () => {
  const index = await filled();
  index.update('/a', [doc('long.md', `${'before '.repeat(60)}\n\nneedle\n${'after '.repeat(60)}`)], []);
  const [hit] = index.byWords({ root: '/a', prefix: '' }, 'needle', 1);
  expect(hit).toMatchObject({ path: 'long.md', heading: 'Part 1', fromLine: 1, toLine: 9 });
  expect(hit?.snippet).toMatch(/^….*before needle after.*…$/);
  index.close();
});

test('a changed document takes the place of the old one, and one that is gone is forgotten', async () => {
  const index = await filled();
  index.update('/a', [doc('one.md', 'wolves')], ['sub/two.md']);
  expect([found(index, 'fox'), found(index, 'wolf'), found(index, 'wolves'), found(index, 'files')]).toEqual([
    [],
    [],
    ['one.md:1'],
    [],
  ]);
  expect(index.counts('/a')).toEqual({ docs: 1, parts: 1, unembedded: 1 });
  expect([...index.stamps('/a')]).toEqual([['one.md', expect.objectContaining({ size: 10, modifiedMs: 0.5 })]]);
  expect(index.counts('/b').parts).toBe(1);
  index.close();
});

test('vectors rank by their angle, each model for itself, and go with their document', async () => {
  const index = await filled();
  const parts = index.unembedded('/a', 'm', 10);
  expect(parts.map(({ text }) => text)).toEqual([
    'Part 1\nFoxes are running here',
    'Part 2\nA fox',
    'Part 1\nfile_read reads files',
  ]);
  index.embed('m', new Map(parts.map(({ id }, at) => [id, Float32Array.of(at === 1 ? 5 : 0, at === 0 ? 3 : 0, at)])));
  const nearest = (model: string, ...vector: number[]) =>
    index
      .byMeaning({ root: '/a', prefix: '' }, model, Float32Array.from(vector), 2)
      .map(({ path, fromLine }) => `${path}:${fromLine}`);
  expect(nearest('m', 0, 1, 0)[0]).toBe('one.md:1');
  expect(nearest('m', 0, 0, 1)[0]).toBe('sub/two.md:1');
  expect(nearest('other', 0, 1, 0)).toEqual([]);
  expect(index.counts('/a', 'm').unembedded).toBe(0);
  index.update('/a', [doc('one.md', 'Foxes are running here', 'A fox'), doc('sub/two.md', 'something new')], []);
  for (const text of ['alpha', 'beta']) {
    index.update('/c', [doc('last.md', text)], []);
    const last = index.unembedded('/c', 'm', 10);
    expect(last).toHaveLength(1);
    index.embed('m', new Map(last.map(({ id }) => [id, Float32Array.of(1, 0, 0)])));
  }
  expect(index.counts('/a', 'm').unembedded).toBe(3);
  expect(nearest('m', 0, 1, 0)).toEqual([]);
  index.close();
});

test('a damaged index is made anew, and so is one of another version', async () => {
  const file = newFile();
  (await filled(file)).close();
  writeFileSync(file, 'not a database'.repeat(1000));
  const index = await openDocIndex(file);
  expect(index.counts('/a')).toEqual({ docs: 0, parts: 0, unembedded: 0 });
  index.close();
  const again = await filled(file);
  expect(found(again, 'fox')).toHaveLength(2);
  again.close();
});

test('nobody else may read the index, and without a place on disk it is kept in memory', async () => {
  const file = newFile();
  (await filled(file)).close();
  expect((statSync(file).mode & 0o777).toString(8)).toBe('600');
  writeFileSync(join(folder, 'file'), '');
  const inMemory = await filled(join(folder, 'file', 'docs.db'));
  expect(found(inMemory, 'fox')).toHaveLength(2);
  inMemory.close();
});
