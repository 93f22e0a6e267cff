import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { dropMark, readMarks, setMark } from '../../src/store/session-ends.js';
import { temporaryFolder } from './samples.js';

const folder = temporaryFolder();

test('marks are kept newest first, one for each session, and the oldest give way', async () => {
  const file = join(folder, 'a.db');
  expect(readMarks(file)).toEqual([]);
  for (let n = 0; n < 120; n++) await setMark(file, { sessionId: `s${n}`, seq: n, cwd: '/w' });
  await setMark(file, { sessionId: 's50', seq: 7, cwd: '/elsewhere' });
  const marks = readMarks(file);
  expect([marks.length, marks[0], marks.at(-1)?.sessionId]).toEqual([
    100,
    { sessionId: 's50', seq: 7, cwd: '/elsewhere' },
    's20',
  ]);
  await dropMark(file, 's50');
  await dropMark(file, 'never');
  expect([readMarks(file).length, readMarks(file)[0]?.sessionId]).toEqual([99, 's119']);
  expect(readdirSync(folder).filter((name) => name.startsWith('a.db'))).toEqual(['a.db.marks']);
});

test('what a killed process left half done goes with the next mark; what a living one works on stays', async () => {
  const file = join(folder, 'killed.db');
  const gone = spawnSync('true').pid;
  for (const name of [`killed.db.marks.${gone}-1`, `killed.db.marks.${process.ppid}-1`, 'killed.db.marks.old'])
    writeFileSync(join(folder, name), '');
  await setMark(file, { sessionId: 's', seq: 1, cwd: '/w' });
  expect(
    readdirSync(folder)
      .filter((name) => name.startsWith('killed'))
      .sort(),
  ).toEqual(['killed.db.marks', `killed.db.marks.${process.ppid}-1`, 'killed.db.marks.old']);
});

test.each(['', 'nonsense', '{"a":1}', '[1,["s"],["s","1","/w"],null]'])(
  'a damaged file has no marks and is written anew (%#)',
  async (text) => {
    const file = join(folder, 'b.db');
    writeFileSync(`${file}.marks`, text);
    expect(readMarks(file)).toEqual([]);
    await setMark(file, { sessionId: 's', seq: 1, cwd: '/w' });
    expect(readMarks(file)).toEqual([{ sessionId: 's', seq: 1, cwd: '/w' }]);
  },
);

test('marks stand beside the database that a link leads to; where they cannot be written nothing happens', async () => {
  writeFileSync(join(folder, 'c.db'), '');
  symlinkSync(join(folder, 'c.db'), join(folder, 'link.db'));
  await setMark(join(folder, 'link.db'), { sessionId: 's', seq: 1, cwd: '/w' });
  expect(readMarks(join(folder, 'c.db'))).toHaveLength(1);
  const taken = join(folder, 'd.db');
  mkdirSync(`${taken}.marks`);
  await setMark(taken, { sessionId: 's', seq: 1, cwd: '/w' });
  await setMark(join(folder, 'none/e.db'), { sessionId: 's', seq: 1, cwd: '/w' });
  expect([readMarks(taken), readdirSync(folder).filter((name) => name.startsWith('d.db'))]).toEqual([
    [],
    ['d.db.marks'],
  ]);
});
