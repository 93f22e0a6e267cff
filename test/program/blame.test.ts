import { appendFileSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Place } from '../e2e/program.js';
import { agent, repl, script } from './inside.js';
import { bash, call, done, edit, git, importedEdit, repository, turn } from './provenance-place.js';

interface Line {
  readonly line: number;
  readonly text: string;
  readonly kind: string;
  readonly session_id: string | null;
  readonly seq: number | null;
  readonly prompt: string | null;
  readonly commit: string | null;
}

async function blamed(at: Place, ...args: readonly string[]): Promise<readonly Line[]> {
  const ran = await agent(at, ['blame', ...args, '--json']);
  expect(ran).toMatchObject({ code: 0, stderr: '' });
  return (JSON.parse(ran.stdout) as { readonly lines: readonly Line[] }).lines;
}

const kinds = (lines: readonly Line[]): readonly string[] => lines.map(({ text, kind }) => `${kind} ${text}`);

test('blame names the call, the command, the edit outside and the commit of each line', async () => {
  const at = repository();
  const commit = git(at, 'rev-parse', 'HEAD');
  await turn(at, 'Change it\nwith care', edit('a.txt', 'two', 'TWO'), bash('echo four >> a.txt && git mv a.txt b.txt'));
  writeFileSync(join(at.work, 'b.txt'), readFileSync(join(at.work, 'b.txt'), 'utf8').replace('one', 'ONE'));
  const ran = await agent(at, ['blame', 'b.txt', '--json']);
  const { file, lines } = JSON.parse(ran.stdout) as { file: string; lines: readonly (Line & { at: unknown })[] };
  expect(file).toBe('b.txt');
  const none = { session_id: null, seq: null, turn: null, model: null, approved_by: null, prompt: null, commit: null };
  const session = lines[1]?.session_id ?? '';
  expect(session).toMatch(/^[0-9A-Z]{26}$/);
  const calls = { session_id: session, turn: 1, approved_by: 'mode', prompt: 'Change it', commit: null };
  const times = { at: expect.any(Number) as unknown, model: expect.stringContaining('script') as unknown };
  expect(lines).toEqual([
    { line: 1, text: 'ONE', kind: 'outside', ...none, at: null },
    { line: 2, text: 'TWO', kind: 'edit', ...calls, ...times, seq: expect.any(Number) as unknown },
    { line: 3, text: 'three', kind: 'git', ...none, at: expect.any(Number) as unknown, commit },
    { line: 4, text: 'four', kind: 'command', ...calls, ...times, seq: expect.any(Number) as unknown },
  ]);
});

test('some lines are asked for behind the name or with -L, and whole prompts with --prompt', async () => {
  const at = repository();
  await turn(at, 'Change it\nwith care', edit('a.txt', 'two', 'TWO'));
  expect(kinds(await blamed(at, 'a.txt:2'))).toEqual(['edit TWO']);
  expect(kinds(await blamed(at, 'a.txt:2-3'))).toEqual(['edit TWO', 'git three']);
  expect(kinds(await blamed(at, 'a.txt', '-L', '1,+2'))).toEqual(['git one', 'edit TWO']);
  expect(kinds(await blamed(at, 'a.txt', '--since', '1h'))).toEqual(['git one', 'edit TWO', 'git three']);
  expect(kinds(await blamed(at, 'a.txt', '--since', '2999-01-01'))).toEqual([]);
  const text = (await agent(at, ['blame', 'a.txt:1-2', '--prompt'])).stdout;
  expect(text).toMatch(
    /^[0-9a-f]{12} .*First commit .*1│ one\n01[0-9A-Z]{11}:\d+ .* Change it .*2│ TWO\n {4}> Change it\n {4}> with care\n$/,
  );
});

test('wrong files, lines and ranges are errors of use', async () => {
  const at = repository();
  writeFileSync(join(at.work, 'new.txt'), 'x\n');
  writeFileSync(join(at.work, 'binary'), 'a\0b');
  for (const [args, problem] of [
    [['new.txt'], 'neither the log nor git has new.txt'],
    [['gone.txt'], 'gone.txt: it does not exist'],
    [['binary'], 'binary: it is not a text file'],
    [['a.txt:9'], 'a.txt has no line 9'],
    [['a.txt', '-L', '3,2'], '`3,2` is no range of lines'],
    [['a.txt', '-L', 'x'], '-L: `x` is no range of lines'],
    [['a.txt', '--json', '--porcelain'], '--json and --porcelain cannot both be'],
  ] as const) {
    const ran = await agent(at, ['blame', ...args]);
    expect([ran.code, ran.stderr.split('\n')[0]]).toEqual([2, `agent: ${problem}`]);
  }
});

/** Reads `git blame --porcelain` by its manual: a header, what is new of the commit, and the line behind a tab. */
function porcelain(text: string): readonly Readonly<Record<string, string>>[] {
  const commits = new Map<string, Record<string, string>>();
  const read: Readonly<Record<string, string>>[] = [];
  let about: Record<string, string> = {};
  for (const row of text.trimEnd().split('\n')) {
    const [, id = '', line = '', final = ''] = /^([0-9a-f]{40}) (\d+) (\d+)(?: \d+)?$/.exec(row) ?? [];
    if (id !== '') about = Object.assign(commits.get(id) ?? {}, { id, line, final });
    else if (row.startsWith('\t')) read.push({ ...about, text: row.slice(1) });
    else about[row.split(' ', 1)[0] ?? ''] = row.slice(row.indexOf(' ') + 1);
    commits.set(about['id'] ?? '', about);
  }
  return read;
}

test('--porcelain prints what git prints for a file without records, also of parts, below and after a rename', async () => {
  const at = repository();
  mkdirSync(join(at.work, 'deep'));
  git(at, 'mv', 'a.txt', 'deep/b c.txt');
  const committer = ['-c', 'user.name=Bob', '-c', 'user.email=bob@example.com'];
  writeFileSync(join(at.work, 'deep/b c.txt'), 'one\nnew\n2\nthree');
  git(at, ...committer, 'commit', '-qam', 'Second commit', '--author', 'Cy <cy@example.com>');
  appendFileSync(join(at.work, 'deep/b c.txt'), '\nfour\n\n');
  git(at, 'commit', '-qam', 'Third');
  const deep = { ...at, work: join(at.work, 'deep') };
  for (const lines of [[], ['-L', '2,4'], ['-L', '3,+1']]) {
    const real = git(deep, 'blame', '--porcelain', ...lines, 'b c.txt');
    expect((await agent(deep, ['blame', '--porcelain', ...lines, 'b c.txt'])).stdout.trim()).toBe(real);
  }
  await turn(at, 'Change it', edit('deep/b c.txt', 'new', 'NEW'));
  const { stdout } = await agent(deep, ['blame', '--porcelain', 'b c.txt']);
  const called = porcelain(stdout);
  const real = porcelain(git(deep, 'blame', '--porcelain', 'b c.txt'));
  const keys = (one: Readonly<Record<string, string>> | undefined): readonly string[] =>
    Object.keys(one ?? {}).filter((key) => key !== 'previous');
  for (const [index, line] of called.entries())
    if (index === 1) expect([keys(line), line['filename']]).toEqual([keys(real[1]), 'deep/b c.txt']);
    else expect(line).toEqual(real[index]);
});

test('--porcelain is the format of git, and the id of a call is no commit', async () => {
  const at = repository();
  await turn(at, 'Change it', edit('a.txt', 'two', 'TWO\nTWO AND A HALF'));
  const { stdout } = await agent(at, ['blame', 'a.txt', '--porcelain']);
  const lines = stdout.split('\n');
  const commit = git(at, 'rev-parse', 'HEAD');
  const id = /^([0-9a-f]{40}) 2 2 2$/m.exec(stdout)?.[1] ?? '';
  expect(lines.filter((line) => /^[0-9a-f]{40} /.test(line))).toEqual([
    `${commit} 1 1 1`,
    `${id} 2 2 2`,
    `${id} 3 3`,
    `${commit} 3 4 1`,
  ]);
  expect(lines.filter((line) => line.startsWith('\t'))).toEqual(['\tone', '\tTWO', '\tTWO AND A HALF', '\tthree']);
  expect(lines.filter((line) => line.startsWith('author ') || line.startsWith('summary '))).toEqual([
    'author Ann',
    'summary First commit',
    expect.stringMatching(/^author .*script/),
    'summary Change it',
  ]);
  expect(() => git(at, 'cat-file', '-e', id)).toThrow();
  expect((await agent(at, ['blame', 'a.txt', '--porcelain'])).stdout).toBe(stdout);
});

test('why names the prompt and the calls, and its last line goes there', async () => {
  const at = repository();
  await turn(
    at,
    'Change it\nwith care',
    call('file_read', { path: 'a.txt' }),
    edit('a.txt', 'two', 'TWO'),
    bash('true'),
  );
  const ran = await agent(at, ['why', 'a.txt:2', '--json']);
  const why = JSON.parse(ran.stdout) as Record<string, unknown> & { readonly resume: string; readonly line: Line };
  expect(why).toEqual({
    line: (await blamed(at, 'a.txt:2'))[0],
    prompt: 'Change it\nwith care',
    plan: null,
    calls: [
      { seq: expect.any(Number) as unknown, name: 'file_read', summary: 'file_read(path="a.txt")' },
      { seq: why.line.seq, name: 'file_edit', summary: 'file_edit(path="a.txt", old_string="two", new_string="TWO")' },
    ],
    resume: expect.stringMatching(new RegExp(`^agent -r ${why.line.session_id} --at \\d+$`)) as unknown,
  });
  const text = (await agent(at, ['why', 'a.txt:2'])).stdout;
  expect(text).toContain(`Go there: ${why.resume}\n`);
  const there = await agent(at, [
    ...why.resume.split(' ').slice(1),
    '-p',
    '-m',
    script(at, [done, done, { text: 'Third.' }]),
    'on',
  ]);
  expect(there).toMatchObject({ code: 0, stdout: 'Third.\n' });
  expect((await agent(at, ['why', 'a.txt'])).code).toBe(2);
  expect(JSON.parse((await agent(at, ['why', 'a.txt:1', '--json'])).stdout)).toMatchObject({
    line: { kind: 'git' },
    prompt: null,
    plan: null,
    calls: [],
    resume: null,
  });
});

test('a plan and a todo list are part of the answer', async () => {
  const at = repository();
  const items = [{ text: 'Change the line', status: 'active' }];
  const model = script(at, [call('todo', { items }), edit('a.txt', 'two', 'TWO'), done]);
  await agent(at, ['-p', '-m', model, '--approval', 'never', '--tools', '+todo', 'Go']);
  const { stdout } = await agent(at, ['why', 'a.txt:2', '--json']);
  expect((JSON.parse(stdout) as { readonly plan: string }).plan).toContain('Change the line');
});

test('an undo gives lines back to those who wrote them, and a redo takes them again', async () => {
  const at = repository();
  await turn(at, 'First', edit('a.txt', 'two', 'TWO'));
  await turn(at, 'Second', edit('a.txt', 'TWO', '2'));
  await agent(at, ['undo', '--yes']);
  expect((await blamed(at, 'a.txt')).map(({ text, prompt }) => [text, prompt])).toEqual([
    ['one', null],
    ['TWO', 'First'],
    ['three', null],
  ]);
  await agent(at, ['redo', '--yes']);
  expect((await blamed(at, 'a.txt:2'))[0]).toMatchObject({ text: '2', kind: 'edit', prompt: 'Second' });
});

test('a line of a redacted call keeps its call and says so', async () => {
  const at = repository();
  await turn(at, 'Write the phrase', edit('a.txt', 'two', 'a phrase of several words that should be gone'));
  const [line] = await blamed(at, 'a.txt:2');
  expect((await agent(at, ['redact', line?.session_id ?? '', String(line?.seq)])).code).toBe(0);
  expect(await blamed(at, 'a.txt:2')).toEqual([line]);
  expect((await agent(at, ['blame', 'a.txt:2'])).stdout).toContain('(redacted)');
  expect((await agent(at, ['why', 'a.txt:2'])).stdout).toContain('The call was redacted.\n');
});

test('a file that was renamed outside keeps its authors, by its recorded contents or by git', async () => {
  const at = repository();
  await turn(at, 'Change it', edit('a.txt', 'two', 'TWO'));
  mkdirSync(join(at.work, 'deep'));
  renameSync(join(at.work, 'a.txt'), join(at.work, 'deep/b.txt'));
  expect(kinds(await blamed(at, 'deep/b.txt'))).toEqual(['git one', 'edit TWO', 'git three']);
  git(at, 'add', '-A');
  git(at, 'commit', '-qm', 'Move it');
  appendFileSync(join(at.work, 'deep/b.txt'), 'four\n');
  git(at, 'commit', '-qam', 'Add four');
  git(at, 'mv', 'deep/b.txt', 'c.txt');
  git(at, 'commit', '-qm', 'Move it again');
  expect(kinds(await blamed(at, 'c.txt'))).toEqual(['git one', 'edit TWO', 'git three', 'outside four']);
});

test('a file that was renamed and changed outside keeps the authors of the lines that it kept', async () => {
  const at = repository();
  await turn(at, 'Change it', edit('a.txt', 'two', 'TWO\nTWO AND A HALF'));
  rmSync(join(at.work, 'a.txt'));
  mkdirSync(join(at.work, 'deep'));
  const kept = 'one\nTWO\nTWO AND A HALF\nthree\n';
  writeFileSync(join(at.work, 'deep/b.txt'), `${kept.replace('three', '3')}four\n`);
  const expected = ['git one', 'edit TWO', 'edit TWO AND A HALF', 'outside 3', 'outside four'];
  expect(kinds(await blamed(at, 'deep/b.txt'))).toEqual(expected);
  // The same once git has it, and once a session has changed it.
  git(at, 'add', '-A');
  expect(kinds(await blamed(at, 'deep/b.txt'))).toEqual(expected);
  git(at, 'reset', '-q');
  await turn(at, 'Again', edit('deep/b.txt', 'four', '4'));
  expect(kinds(await blamed(at, 'deep/b.txt'))).toEqual([...expected.slice(0, 4), 'edit 4']);
  // Another file that is less alike is another file.
  writeFileSync(join(at.work, 'c.txt'), 'one\nTWO\n2\n3\n4\n5\n');
  expect((await agent(at, ['blame', 'c.txt'])).code).toBe(2);
});

test('lines of an imported conversation are of the kind edit and belong to its calls', async () => {
  const at = repository();
  writeFileSync(join(at.work, 'a.txt'), 'one\nTWO\nthe new one\nthree\nby hand\n');
  const file_path = join(at.work, 'a.txt');
  await importedEdit(at, 'Shout it', { file_path, old_string: 'two', new_string: 'TWO\nthe new one' });
  const lines = await blamed(at, 'a.txt');
  expect(lines.map(({ text, kind, prompt }) => [text, kind, prompt])).toEqual([
    ['one', 'git', null],
    ['TWO', 'edit', 'Shout it'],
    ['the new one', 'edit', 'Shout it'],
    ['three', 'git', null],
    ['by hand', 'outside', null],
  ]);
  expect(lines[1]).toMatchObject({ model: 'claude-x', turn: 1, approved_by: null, commit: null });
  const why = JSON.parse((await agent(at, ['why', 'a.txt:2', '--json'])).stdout) as Record<string, unknown>;
  expect(why).toMatchObject({ prompt: 'Shout it', calls: [{ name: 'Edit' }] });
  const there = await agent(at, [
    ...String(why['resume']).split(' ').slice(1),
    '-p',
    '-m',
    script(at, [done, done, done]),
    'on',
  ]);
  expect(there).toMatchObject({ code: 0, stdout: 'Done.\n' });
});

test('/blame shows the page in the REPL', async () => {
  const at = repository();
  await turn(at, 'Change it', edit('a.txt', 'two', 'TWO'));
  const ran = await repl(
    at,
    ['-m', 'offline/small-tools'],
    [
      ['/blame a.txt', /Change it .*2│ TWO/],
      ['/blame', 'Name a file: /blame src/main.ts'],
      ['/blame nothing.txt', 'it does not exist'],
    ],
  );
  expect(ran.code).toBe(0);
});

test.each([
  ['in the directory of the session', {}],
  ['in a worktree that is merged', { background: true, isolation: 'worktree' }],
])('lines of a sub-agent %s belong to the call that the sub-agent made', async (_where, more) => {
  const at = repository();
  const folder = join(at.home, '.agent/agents');
  mkdirSync(folder, { recursive: true });
  const plays = join(folder, 'worker.json');
  writeFileSync(plays, JSON.stringify({ turns: [edit('a.txt', 'two', 'TWO'), done] }));
  writeFileSync(
    join(folder, 'worker.md'),
    `---\nname: worker\ndescription: Works.\nmodel: offline/${plays}\n---\nYou work.\n`,
  );
  const asked = { agent: 'worker', prompt: 'Shout the second line', description: 'shouts', ...more };
  const model = script(at, [call('agent', asked), done, done]);
  const ran = await agent(at, ['-p', '-m', model, '--approval', 'never', '--tools', '+agents', 'Use a worker']);
  expect(ran.code).toBe(0);
  if ('isolation' in more) expect((await agent(at, ['agents', 'merge', '1', '--yes'])).code).toBe(0);
  const [, line] = await blamed(at, 'a.txt');
  expect(line).toMatchObject({ text: 'TWO', kind: 'edit', prompt: 'Shout the second line' });
  const { stdout } = await agent(at, ['why', 'a.txt:2', '--json']);
  const { resume } = JSON.parse(stdout) as { readonly resume: string };
  expect(resume).toMatch(/^agent -r [0-9A-Z]{26} --fork --at \d+$/);
  const there = await agent(at, [...resume.split(' ').slice(1), '-p', '-m', script(at, [done, done, done]), 'on']);
  expect(there.code).toBe(0);
});

test('a line that a session and its copy have belongs to the session, and a later one to the copy', async () => {
  const at = repository();
  await turn(at, 'First', edit('a.txt', 'two', 'TWO'));
  const [, line] = await blamed(at, 'a.txt');
  const session = line?.session_id ?? '';
  const model = script(at, [
    edit('a.txt', 'one', 'ONE'),
    edit('a.txt', 'one', 'ONE'),
    edit('a.txt', 'one', 'ONE'),
    done,
  ]);
  await agent(at, ['-r', session, '--fork', '-p', '-m', model, '--approval', 'never', 'In the copy']);
  const lines = await blamed(at, 'a.txt');
  expect(lines.map(({ text, prompt }) => [text, prompt])).toEqual([
    ['ONE', 'In the copy'],
    ['TWO', 'First'],
    ['three', null],
  ]);
  expect([lines[1]?.session_id === session, lines[0]?.session_id === session]).toEqual([true, false]);
});

test('the same contents in another checkout belong to the call that wrote them there, unless a commit is older', async () => {
  const at = repository();
  await turn(at, 'Change it', edit('a.txt', 'two', 'TWO'));
  git(at, 'commit', '-qam', 'Second');
  git(at, 'clone', '-q', '.', '../copy');
  const copy = { ...at, work: join(at.work, '../copy') };
  expect(kinds(await blamed(copy, 'a.txt'))).toEqual(['git one', 'edit TWO', 'git three']);
  mkdirSync(join(at.work, '../other'));
  const other = { ...at, work: join(at.work, '../other') };
  writeFileSync(join(other.work, 'a.txt'), 'one\nTWO\nthree\n');
  git(other, 'init', '-q');
  git(other, 'add', '-A');
  git(other, 'commit', '-qm', 'Old', '--date', '2020-01-02T03:04:05Z');
  expect(kinds(await blamed(other, 'a.txt'))).toEqual(['git one', 'git TWO', 'git three']);
});
