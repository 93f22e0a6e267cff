import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { sessionEnds } from '../../../src/kernel/store/session-rows.js';
import { temporaryFolder } from './samples.js';

const folder = temporaryFolder();

test('ends are listed newest first, one for each session, and the oldest give way', async () => {
  const file = join(folder, 'a.db');
  expect(sessionEnds(file).list()).toEqual([]);
  for (let n = 0; n < 120; n++) await sessionEnds(file).note({ sessionId: `s${n}`, seq: n, cwd: '/w' });
  await sessionEnds(file).note({ sessionId: 's50', seq: 7, cwd: '/elsewhere' });
  const ends = sessionEnds(file).list();
  expect([ends.length, ends[0], ends.at(-1)?.sessionId]).toEqual([
    100,
    { sessionId: 's50', seq: 7, cwd: '/elsewhere' },
    's20',
  ]);
  await sessionEnds(file).forget('s50');
  await sessionEnds(file).forget('never');
  expect([sessionEnds(file).list().length, sessionEnds(file).list()[0]?.sessionId]).toEqual([99, 's119']);
  expect(readdirSync(folder).filter((name) => name.startsWith('a.db'))).toEqual(['a.db.marks']);
});

test('drafts of killed processes are removed with the next end; those of living ones stay', async () => {
  const file = join(folder, 'killed.db');
  const gone = spawnSync('true').pid;
  for (const name of [`killed.db.marks.${gone}-1`, `killed.db.marks.${process.ppid}-1`, 'killed.db.marks.old'])
    writeFileSync(join(folder, name), '');
  await sessionEnds(file).note({ sessionId: 's', seq: 1, cwd: '/w' });
  expect(
    readdirSync(folder)
      .filter((name) => name.startsWith('killed'))
      .sort(),
  ).toEqual(['killed.db.marks', `killed.db.marks.${process.ppid}-1`, 'killed.db.marks.old']);
});

test.each(['', 'nonsense', '{"a":1}', '[1,["s"],["s","1","/w"],null]'])(
  'a damaged file has no ends and is written anew (%#)',
  async (text) => {
    const file = join(folder, 'b.db');
    writeFileSync(`${file}.marks`, text);
    expect(sessionEnds(file).list()).toEqual([]);
    await sessionEnds(file).note({ sessionId: 's', seq: 1, cwd: '/w' });
    expect(sessionEnds(file).list()).toEqual([{ sessionId: 's', seq: 1, cwd: '/w' }]);
  },
);

test('ends are stored beside the database that a link leads to, or not at all', async () => {
  writeFileSync(join(folder, 'c.db'), '');
  symlinkSync(join(folder, 'c.db'), join(folder, 'link.db'));
  await sessionEnds(join(folder, 'link.db')).note({ sessionId: 's', seq: 1, cwd: '/w' });
  expect(sessionEnds(join(folder, 'c.db')).list()).toHaveLength(1);
  const taken = join(folder, 'd.db');
  mkdirSync(`${taken}.marks`);
  await sessionEnds(taken).note({ sessionId: 's', seq: 1, cwd: '/w' });
  await sessionEnds(join(folder, 'none/e.db')).note({ sessionId: 's', seq: 1, cwd: '/w' });
  expect([sessionEnds(taken).list(), readdirSync(folder).filter((name) => name.startsWith('d.db'))]).toEqual([
    [],
    ['d.db.marks'],
  ]);
});
