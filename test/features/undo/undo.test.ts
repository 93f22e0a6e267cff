import { rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { act, goalAt } from '../../../src/features/undo/revert-plan.js';
import { replaceFile } from '../../../src/kernel/tools/changes/replace-file.js';
import { chooseReverts, listReverts } from '../../../src/features/undo/choose-reverts.js';
import type { ChangeData, Event } from '../../../src/kernel/core/event.js';
import { put, type Step, treeOf, undoRig, type UndoRig } from './undo-rig.js';

const changesOf = (event: Event | undefined): readonly ChangeData[] =>
  (event?.data as { readonly changes?: readonly ChangeData[] } | undefined)?.changes ?? [];

async function revert(
  rig: UndoRig,
  kind: 'undo' | 'redo',
  argument = '',
): Promise<{ readonly done: number; readonly skipped: readonly string[] }> {
  const choice = chooseReverts(rig.session.events(), kind, argument);
  if ('problem' in choice) throw new Error(choice.problem);
  let done = 0;
  const skipped: string[] = [];
  for (const item of choice.reverts) {
    const result = await act(rig.session, item);
    done += result.done.length;
    skipped.push(...result.skipped.map(({ path, reason }) => `${path.slice(rig.root.length + 1)}: ${reason}`));
  }
  return { done, skipped };
}

const write = (path: string, content: string): Step => ['file_write', { path, content }];
const edit = (path: string, old_string: string, new_string: string): Step => [
  'file_edit',
  { path, old_string, new_string },
];
const bash = (command: string): Step => ['bash', { command }];

/** Thirty calls of all kinds; each finds the tree as the one before left it. */
const mixed: readonly Step[] = [
  write('new.txt', 'one\n'),
  edit('src/a.ts', 'alpha', 'ALPHA'),
  bash('echo two >> new.txt'),
  bash("sed -i 's/beta/BETA/' src/b.ts"),
  write('deep/er/still/c.txt', 'c\n'),
  bash('mv src/b.ts src/moved.ts'),
  edit('src/moved.ts', 'BETA', 'Beta'),
  bash('chmod +x run.sh'),
  bash('rm old.txt'),
  write('old.txt', 'again\n'),
  bash('mkdir -p made/by/bash && echo x > made/by/bash/x.txt && echo y > made/y.txt'),
  bash('ln -s ../src/a.ts made/link'),
  edit('run.sh', 'echo hi', 'echo ho'),
  bash('cp src/a.ts copy.ts && echo "// end" >> copy.ts'),
  write('bin.dat', '\u0000\u0001'),
  bash('printf "\\001\\002\\003" > bin.dat'),
  edit('copy.ts', '// end', '// the end'),
  bash('rm -r deep'),
  write('deep/new.txt', 'new\n'),
  bash('for i in 1 2 3; do echo $i > n$i.txt; done'),
  bash('cat n1.txt n2.txt > n3.txt && rm n1.txt'),
  edit('n3.txt', '2', '22'),
  bash('truncate -s 0 n2.txt'),
  write('src/a.ts', 'all new\n'),
  bash('ln -sfn run.sh made/link'),
  bash('touch same.txt src/a.ts'),
  edit('src/a.ts', 'all', 'ALL'),
  bash('true'),
  write('ünïcode 文件.txt', 'ß\n'),
  bash('rm made/link && mv "ünïcode 文件.txt" "with space.txt" && chmod 600 run.sh'),
];
const files = {
  'src/a.ts': 'alpha\n',
  'src/b.ts': 'beta\r\nline\r\n',
  'old.txt': 'old\n',
  'run.sh': 'echo hi\n',
  'untouched.txt': 'u\n',
};

test('thirty changes are undone and redone one by one, the tree the same by hash, mode and link', async () => {
  const rig = await undoRig(files);
  const trees = [treeOf(rig.root)];
  const results: Event[] = [];
  for (const step of mixed) {
    results.push(...(await rig.run([step])));
    trees.push(treeOf(rig.root));
  }
  expect(results.map((event) => (event.data as { readonly success: boolean }).success)).toEqual(mixed.map(() => true));
  expect(results.flatMap(changesOf).filter((change) => !change.captured)).toEqual([]);
  const changed = mixed.map((_step, index) => changesOf(results[index]).length > 0);
  expect(changed.filter((yes) => yes)).toHaveLength(29);
  for (const index of mixed.keys()) {
    const step = mixed.length - 1 - index;
    if (!changed[step]) continue;
    expect((await revert(rig, 'undo')).skipped, `undo ${step}`).toEqual([]);
    expect(treeOf(rig.root), `undo ${step}`).toEqual(trees[step]);
  }
  expect(treeOf(rig.root)).toEqual(trees[0]);
  for (const step of mixed.keys()) {
    if (!changed[step]) continue;
    expect((await revert(rig, 'redo')).skipped, `redo ${step}`).toEqual([]);
    expect(treeOf(rig.root), `redo ${step}`).toEqual(trees[step + 1]);
  }
  expect((await revert(rig, 'undo', 'all')).skipped).toEqual([]);
  expect(treeOf(rig.root)).toEqual(trees[0]);
  expect(await rig.store.load('s1')).toEqual(rig.session.events());
});

test('a file that something else changed is left alone, and the others are undone', async () => {
  const rig = await undoRig({ 'a.txt': 'a\n', 'b.txt': 'b\n' });
  await rig.run([bash('echo A > a.txt; echo B > b.txt')]);
  put(join(rig.root, 'a.txt'), 'mine\n');
  expect(await revert(rig, 'undo')).toEqual({ done: 1, skipped: ['a.txt: another program has changed it since'] });
  expect(treeOf(rig.root)).toEqual(treeOf((await undoRig({ 'a.txt': 'mine\n', 'b.txt': 'b\n' })).root));
});

test('an earlier call is not undone over a later one; the list says which', async () => {
  const rig = await undoRig({ 'a.txt': 'a\n' });
  const [first, second] = await rig.run([edit('a.txt', 'a', 'b'), edit('a.txt', 'b', 'c')]);
  const result = await revert(rig, 'undo', String(first?.seq));
  expect(result).toEqual({
    done: 0,
    skipped: [
      `a.txt: it is as event ${second?.seq} left it ` +
        '(file_edit(path="a.txt", old_string="b", new_string="c")); undo that first',
    ],
  });
});

test('a link, a folder or a device in the place of a file is left alone', async () => {
  const rig = await undoRig({ 'a.txt': 'a\n', 'sub/b.txt': 'b\n', 'other.txt': 'A\n' });
  await rig.run([write('a.txt', 'A\n'), write('sub/b.txt', 'B\n')]);
  unlinkSync(join(rig.root, 'a.txt'));
  symlinkSync('other.txt', join(rig.root, 'a.txt'));
  rmSync(join(rig.root, 'sub'), { recursive: true });
  put(join(rig.root, 'elsewhere/b.txt'), 'B\n');
  symlinkSync('elsewhere', join(rig.root, 'sub'));
  const before = treeOf(rig.root);
  expect((await revert(rig, 'undo', 'all')).done).toBe(0);
  expect(treeOf(rig.root)).toEqual(before);
});

test('what a command changed and nobody could read before is said to be not captured, and stays', async () => {
  const rig = await undoRig(
    { 'big.txt': 'x'.repeat(3000), 'small.txt': 's\n' },
    { limits: { maxFileBytes: 1000, maxNamedFileBytes: 1000 } },
  );
  const [result] = await rig.run([bash('echo more >> big.txt; echo more >> small.txt')]);
  expect(
    changesOf(result).map(({ path, captured, reason }) => [path.slice(rig.root.length + 1), captured, reason]),
  ).toEqual([
    ['big.txt', false, 'it had more than 1000 bytes'],
    ['small.txt', true, undefined],
  ]);
  expect(await revert(rig, 'undo')).toEqual({
    done: 1,
    skipped: ['big.txt: not captured: it had more than 1000 bytes'],
  });
});

test('contents of secret files are not kept', async () => {
  const rig = await undoRig({ '.env': 'KEY=1\n' }, { isSecret: (path) => path.endsWith('.env') });
  const [result] = await rig.run([bash('echo KEY=2 > .env')]);
  expect(changesOf(result)).toMatchObject([
    { what: 'changed', before: null, after: null, captured: false, reason: 'it may contain secrets' },
  ]);
  expect(new Database(rig.file).prepare('SELECT count(*) FROM blobs').pluck().get()).toBe(0);
});

test('a tree too large to be watched whole is said to be so', async () => {
  const rig = await undoRig(Object.fromEntries(Array.from({ length: 30 }, (_, n) => [`d${n}/f.txt`, 'x'])), {
    limits: { maxEntries: 10 },
  });
  const [result] = await rig.run([bash('echo new > new.txt')]);
  expect(result?.data).toMatchObject({ unwatched: expect.stringContaining('only its first 10 files') as unknown });
  const choice = chooseReverts(rig.session.events(), 'undo', '');
  if ('problem' in choice) throw new Error(choice.problem);
  expect((await listReverts(rig.session, choice.reverts, [])).lines.at(-1)).toBe(
    '  There may be more: the tree is large: only its first 10 files were watched.',
  );
});

test('what ignore rules leave out is not watched unless the command names it', async () => {
  const rig = await undoRig({ '.gitignore': 'out/\n', 'make.sh': 'echo b > out/a.txt; echo c > out/c.txt' });
  put(join(rig.root, 'out/a.txt'), 'a');
  const [unnamed, named] = await rig.run([bash('sh make.sh'), bash('echo d > out/a.txt')]);
  expect([changesOf(unnamed), changesOf(named).map(({ path }) => path)]).toEqual([[], [join(rig.root, 'out/a.txt')]]);
});

test('a file that stops to be ignored is not a new file', async () => {
  const rig = await undoRig({ '.gitignore': 'out/\n*.log\n' });
  put(join(rig.root, 'out/a.txt'), 'a');
  put(join(rig.root, 'b.log'), 'b');
  const [result] = await rig.run([bash('rm .gitignore')]);
  expect(changesOf(result).map(({ path }) => path)).toEqual([join(rig.root, '.gitignore')]);
});

test('the list comes first and names every file with what would become of it', async () => {
  const rig = await undoRig({ 'a.txt': 'a\n' });
  const [result] = await rig.run([bash('echo A > a.txt; echo n > new.txt')]);
  const choice = chooseReverts(rig.session.events(), 'undo', '');
  if ('problem' in choice) throw new Error(choice.problem);
  expect(await listReverts(rig.session, choice.reverts, choice.passed)).toEqual({
    files: 2,
    folders: 0,
    lines: [
      `Undo event ${result?.seq}, bash(command="echo A > a.txt; echo n > new.txt"):`,
      '  remove  new.txt',
      '  write   a.txt',
    ],
  });
});

test('undo is on record, the model is told, and an edit right after it needs no new reading', async () => {
  const rig = await undoRig({ 'a.txt': 'a\n' });
  await rig.run([edit('a.txt', 'a', 'b')]);
  await revert(rig, 'undo');
  expect(rig.session.events().at(-1)).toMatchObject({
    kind: 'undo',
    content: expect.stringMatching(
      /^\[Note: the user undid what file_edit.* did to files \(event \d+\): a\.txt\]$/,
    ) as unknown,
  });
  const [again] = await rig.run([edit('a.txt', 'a', 'c')]);
  expect(again?.data).toMatchObject({ success: true });
});

test('restore brings a file back to any event, before the first change too', async () => {
  const rig = await undoRig({ 'a.txt': 'v0\n' });
  const [first, , third] = await rig.run([write('a.txt', 'v1\n'), write('a.txt', 'v2\n'), bash('echo v3 > a.txt')]);
  for (const [seq, text] of [
    [first?.seq ?? 0, 'v1\n'],
    [1, 'v0\n'],
    [third?.seq ?? 0, 'v3\n'],
  ] as const) {
    const goal = goalAt(rig.session.events(), join(rig.root, 'a.txt'), seq);
    await act(rig.session, {
      kind: 'restore',
      ofSeq: seq,
      title: 'a.txt',
      goals: goal ? [goal] : [],
      folders: [],
      unwatched: null,
    });
    expect(treeOf(rig.root)).toEqual(treeOf((await undoRig({ 'a.txt': text })).root));
  }
});

test('contents are stored once, compressed, and go with the last session that refers to them', async () => {
  const rig = await undoRig();
  const text = 'the same line\n'.repeat(500);
  await rig.run([write('a.txt', text), write('b.txt', text), bash('cp a.txt c.txt')]);
  const db = new Database(rig.file);
  expect(db.prepare('SELECT size, encoding, length(bytes) < 1000 AS small FROM blobs').all()).toEqual([
    { size: text.length, encoding: 'deflate', small: 1 },
  ]);
  await rig.store.fork('s1', {
    id: 's2',
    parentId: null,
    cwd: rig.root,
    title: null,
    provider: null,
    model: null,
    createdAt: 1,
    updatedAt: 1,
  });
  await rig.store.remove('s1');
  expect(db.prepare('SELECT count(*) FROM blobs').pluck().get()).toBe(1);
  await rig.store.remove('s2');
  expect(db.prepare('SELECT count(*) FROM blobs').pluck().get()).toBe(0);
  db.close();
});

test('a change made while the list was read is not overwritten', async () => {
  const rig = await undoRig({ 'a.txt': 'a\n' });
  await rig.run([write('a.txt', 'b\n')]);
  const choice = chooseReverts(rig.session.events(), 'undo', '');
  if ('problem' in choice) throw new Error(choice.problem);
  await listReverts(rig.session, choice.reverts, choice.passed);
  writeFileSync(join(rig.root, 'a.txt'), 'mine\n');
  expect(await act(rig.session, choice.reverts[0]!)).toMatchObject({
    done: [],
    skipped: [{ reason: 'another program has changed it since' }],
  });
});

test('a file that changes at the last moment is left, and nothing is removed or overwritten', async () => {
  const rig = await undoRig({ 'a.txt': 'mine\n' });
  const path = join(rig.root, 'a.txt');
  for (const bytes of [null, Buffer.from('before\n')]) {
    await expect(replaceFile({ path, expected: 'another hash', bytes, mode: null, links: [] })).rejects.toThrow(
      'another program changed it just now',
    );
  }
  expect(treeOf(rig.root)).toEqual(treeOf((await undoRig({ 'a.txt': 'mine\n' })).root));
});
