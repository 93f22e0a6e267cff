import { expect, test } from 'vitest';
import { lineRig } from '../../commands/line-rig.js';

test('a person keeps, finds, changes, pins, archives and removes notes', async () => {
  const { notes, run } = await lineRig();
  expect((await run('memory', 'list')).out).toBe('There are no notes.\n');
  expect(await run('memory', 'add', 'Tests', 'need', 'port 5433', '--tag', 'test ports', '--pin')).toMatchObject({
    code: 0,
    out: 'Note 1 (Tests need port 5433) is saved.\n',
  });
  await run('memory', 'add', 'Be brief', '--global');
  await notes.save({ project: '/elsewhere', content: 'Other', tags: [], trust: 'model', approved: true });
  await notes.save({ project: '/work/project', content: 'Send it', tags: [], trust: 'tool', approved: false });
  const listed = (await run('memory', 'list')).out.replaceAll(/\S+ ago/g, 'now');
  expect(listed.split('\n').map((line) => line.replaceAll(/ +/g, ' '))).toEqual([
    '1 pinned now Tests need port 5433 #test ports',
    '4 waits now Send it',
    '2 global now Be brief',
    'Untrusted text may have asked for the waiting notes: memory approve <note>, or memory rm <note>.',
    '',
  ]);
  const json = JSON.parse((await run('memory', 'list', '--all', '--json')).out) as readonly { id: number }[];
  expect(json.map(({ id }) => id)).toEqual([1, 4, 3, 2]);
  expect(json[0]).toMatchObject({
    scope: 'project',
    trust: 'user',
    pinned: true,
    tags: ['test ports'],
    session_id: null,
  });

  await run('memory', 'edit', '4', 'Send', 'it', 'on Friday');
  expect(await notes.note(4)).toMatchObject({ content: 'Send it on Friday', approved: true });
  await run('memory', 'unpin', '1');
  await run('memory', 'pin', '2');
  expect((await notes.list({ project: '/work/project' })).map(({ id }) => id)).toEqual([2, 4, 1]);
  await notes.change(4, { archived: true });
  expect((await run('memory', 'list', '--archived')).out).toContain('Send it on Friday');
  await run('memory', 'restore', '4');
  expect((await run('memory', 'rm', '4', '1')).out.split('\n')).toHaveLength(3);
  expect((await notes.list({ project: '/work/project' })).map(({ id }) => id)).toEqual([2]);
  expect((await run('memory', 'show', '2')).out).toMatch(
    /note +2, pinned\nfor +every directory\nby +you\n[^]*\n\nBe brief\n$/,
  );
});

test('what is not a note and what must not be one is said', async () => {
  const { notes, run } = await lineRig();
  const token = ['ghp_gq', 'n7b5QokBiphCHNKIf', 'WJaDbTIFavPsiTmao'].join('');
  const cases: readonly (readonly [readonly string[], number, string])[] = [
    [['show', '7'], 2, 'there is no note `7`'],
    [['rm', 'x'], 2, 'there is no note `x`'],
    [['approve', '1e0'], 2, 'there is no note'],
    [['add', ' '], 2, 'there is nothing to save'],
    [['add', 'x'.repeat(4001)], 2, 'at most 4000 characters'],
    [['add', `the token is ${token}`], 1, 'A note must not contain a secret.'],
  ];
  for (const [words, code, said] of cases) {
    const ran = await run('memory', ...words);
    expect(ran.code, words.join(' ')).toBe(code);
    expect(ran.err).toContain(said);
  }
  expect(await notes.list()).toEqual([]);
});
