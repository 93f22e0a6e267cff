import { expect, test } from 'vitest';
import { createRank } from '../../../src/ui/editor/suggestions.js';

const settled = async (): Promise<void> => {
  await import('fuzzysort');
  for (let i = 0; i < 5; i++)
    await new Promise((done) => {
      setImmediate(done);
    });
};

test('paths are found by parts, by initials, by words in any order, before and after the matcher is loaded', async () => {
  const rank = createRank();
  const texts = ['docs/readme.md', 'src/ui/key-decoder.ts', 'src/ui/editor.ts', 'test/ui/editor/editor.test.ts'];
  expect(rank('edit', texts).map((index) => texts[index])).toEqual([
    'src/ui/editor.ts',
    'test/ui/editor/editor.test.ts',
  ]);
  await settled();
  expect(texts[rank('editor', texts)[0] ?? -1]).toBe('src/ui/editor.ts');
  expect(texts[rank('keydec', texts)[0] ?? -1]).toBe('src/ui/key-decoder.ts');
  expect(rank('decoder ui', texts)).toEqual([1]);
  expect(rank('zzz', texts)).toEqual([]);
});

test('of 100,000 paths each is found, and no more are scored than a key has time for', async () => {
  const rank = createRank();
  const texts = Array.from(
    { length: 100_000 },
    (_, i) => `packages/module-${i % 97}/src/feature-${i % 1013}/file-${i}.ts`,
  );
  rank('f', texts);
  await settled();
  expect(texts[rank('file-98765.', texts)[0] ?? -1]).toBe('packages/module-19/src/feature-504/file-98765.ts');
  expect(rank('f', texts)).toHaveLength(200);
});
