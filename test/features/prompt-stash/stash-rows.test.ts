import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { stashAt, type StashRows } from '../../../src/features/prompt-stash/stash-rows.js';
import { stashTableSet } from '../../../src/features/prompt-stash/stash-tables.js';
import { openSqliteStore } from '../../../src/kernel/store/sqlite-store.js';
import { temporaryFolder, tickingClock } from '../../kernel/store/samples.js';

const folder = temporaryFolder();
let files = 0;
const stores: readonly (readonly [string, () => Promise<StashRows>])[] = [
  ['memory', async () => stashAt({ kind: 'memory', now: tickingClock() })],
  [
    'SQLite',
    async () =>
      (await openSqliteStore({ file: join(folder, `${++files}.db`), now: tickingClock() })).tables(stashTableSet),
  ],
];

describe.each(stores)('the stashed prompts of the %s store', (_name, open) => {
  test('come back newest first, without those of other projects, and each is removed once', async () => {
    const rows = await open();
    expect([await rows.list('here'), await rows.count('here'), await rows.remove(1)]).toEqual([[], 0, false]);
    await rows.push('here', 'one\ntwo 🎉');
    await rows.push('there', 'other');
    const { id, count } = await rows.push('here', 'newest');
    expect([count, (await rows.list('here')).map(({ text }) => text)]).toEqual([2, ['newest', 'one\ntwo 🎉']]);
    expect([await rows.remove(id), await rows.remove(id), await rows.count('here')]).toEqual([true, false, 1]);
  });

  test('a full stack refuses a further prompt and keeps all it has', async () => {
    const rows = await open();
    for (let number = 1; number <= 500; number++) await rows.push('here', `prompt ${number}`);
    await expect(rows.push('here', 'one more')).rejects.toThrow('500 prompts are stashed');
    expect([await rows.count('here'), (await rows.list('here')).at(-1)?.text]).toEqual([500, 'prompt 1']);
  });
});

test('two processes share the prompts of a database', async () => {
  const file = join(folder, 'shared.db');
  const [one, other] = await Promise.all(
    [1, 2].map(async () => (await openSqliteStore({ file, now: tickingClock() })).tables(stashTableSet)),
  );
  const pushed = await one?.push('here', 'from one');
  expect((await other?.list('here'))?.map(({ text }) => text)).toEqual(['from one']);
  expect([await other?.remove(pushed?.id ?? 0), await one?.remove(pushed?.id ?? 0)]).toEqual([true, false]);
});
