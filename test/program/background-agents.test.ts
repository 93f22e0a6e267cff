import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { isRecord } from '../../src/kernel/core/json.js';
import { openSqliteStore } from '../../src/kernel/store/sqlite-store.js';
import { agent, lines, place, repl, script } from './inside.js';

type At = ReturnType<typeof place>;
type Call = readonly [name: string, args: object];

const paid = (cost: number): unknown => ({ input_tokens: 100, output_tokens: 10, cost_usd: cost });
const calls = (...made: readonly Call[]): object => ({
  calls: made.map(([name, args]) => ({ name, arguments: args })),
  usage: paid(0.01),
});
const says = (text: string): object => ({ text, usage: paid(0.01) });
const start = (name: string, more: object = {}): Call => [
  'agent',
  { agent: name, prompt: 'do it', description: `${name} works`, background: true, isolation: 'worktree', ...more },
];

function git(at: At, ...args: readonly string[]): string {
  const given = ['-c', 'user.name=t', '-c', 'user.email=t@t', ...args];
  return execFileSync('git', given, { cwd: at.work, encoding: 'utf8', env: { ...at.env, HOME: at.home } });
}

/** A repository with a commit, and on top of it a changed, a staged and an untracked file. */
function dirtyRepository(): At {
  const at = place({ 'a.txt': 'one\ntwo\nthree\n', 'b.txt': 'b\n', 'c.txt': 'c\n', '.gitignore': 'built\n' });
  git(at, 'init', '-q');
  git(at, 'add', '.');
  git(at, 'commit', '-q', '-m', 'first');
  at.file('a.txt', 'one\ntwo\nthree, changed\n');
  at.file('staged.txt', 'staged\n');
  git(at, 'add', 'staged.txt');
  at.file('new.txt', 'untracked\n');
  at.file('built', 'ignored\n');
  return at;
}

function define(at: At, name: string, turns: readonly unknown[], fields = ''): void {
  const folder = join(at.env.AGENT_HOME ?? '', 'agents');
  mkdirSync(folder, { recursive: true });
  const plays = join(folder, `${name}.json`);
  writeFileSync(plays, JSON.stringify({ turns }));
  const head = `name: ${name}\ndescription: Works.\nmodel: offline/${plays}\n${fields}`.trimEnd();
  writeFileSync(join(folder, `${name}.md`), `---\n${head}\n---\nYou work.\n`);
}

const go = (at: At, turns: readonly unknown[], ...more: readonly string[]): readonly string[] => [
  ...['-p', '-m', script(at, turns), '--output-format', 'stream-json'],
  ...more,
  'go',
];

const read = (at: At, path: string): string => readFileSync(join(at.work, path), 'utf8');

function worktrees(at: At): readonly string[] {
  return readdirSync(dirname(at.work)).filter((name) => name.startsWith('work-'));
}

function branches(at: At): readonly string[] {
  return git(at, 'branch', '--list', 'worktree-*').split('\n').filter(Boolean);
}

async function eventsOf(at: At, id: string) {
  const store = (await openSqliteStore({ file: join(at.env.AGENT_HOME ?? '', 'agent.db'), now: Date.now })).store;
  const events = await store.load(id);
  await store.close();
  return events;
}

const idOf = (stdout: string): string => String(lines(stdout)[0]?.session_id);

function envelopes(stdout: string): readonly Record<string, unknown>[] {
  const results = lines(stdout).filter(({ type, name }) => type === 'tool_result' && name === 'agent');
  return results.map(({ output }) => JSON.parse(String(output)) as Record<string, unknown>).filter(isRecord);
}

test('a call with background returns at once; each end begins a turn, and the run waits for it', async () => {
  const at = dirtyRepository();
  define(at, 'worker', [calls(['file_write', { path: 'made.txt', content: 'made\n' }]), says('I made it.')]);
  const ran = await agent(at, go(at, [calls(start('worker')), says('It works.'), says('It is there.')]));
  expect(ran.code).toBe(0);
  expect(envelopes(ran.stdout)[0]).toMatchObject({ agent_id: 1, running: true });
  expect(lines(ran.stdout).at(-1)).toMatchObject({
    text: 'It is there.',
    usage: { cost_usd: expect.closeTo(0.05, 9) },
  });
  const events = await eventsOf(at, idOf(ran.stdout));
  expect(events.filter(({ kind }) => kind === 'agent').map(({ data }) => (data as { state: string }).state)).toEqual([
    'started',
    'ended',
  ]);
  const note = events.find(({ content }) => content?.startsWith('[Note: agent 1 (worker: worker works) has finished'));
  expect(note?.content).toContain('I made it.');
  expect(note?.data).toEqual({ note: true });
  expect(existsSync(join(at.work, 'made.txt'))).toBe(false);
  expect(worktrees(at)).toHaveLength(1);
});

const edit = (path: string, from: string, to: string): Call => [
  'file_edit',
  { path, old_string: from, new_string: to },
];

/** Agents of which one changes what nobody else does, one what the user changes meanwhile, and one what is not wanted. */
function three(at: At): void {
  define(at, 'free', [
    calls(['file_read', { path: 'b.txt' }], edit('b.txt', 'b', 'b of the agent'), [
      'file_write',
      { path: 'deep/er/new.txt', content: 'made\n' },
    ]),
    says('Done.'),
  ]);
  define(at, 'meeting', [
    calls(['file_read', { path: 'a.txt' }], edit('a.txt', 'three, changed', 'three of the agent')),
    says('Done.'),
  ]);
  define(at, 'unwanted', [calls(['bash', { command: 'rm c.txt; echo x > other.txt' }]), says('Done.')]);
}

test('three agents write into worktrees of a dirty repository: one is merged, one conflicts, one is discarded; each is undone', async () => {
  const at = dirtyRepository();
  three(at);
  const before = git(at, 'status', '--porcelain');
  const all = [calls(start('free'), start('meeting'), start('unwanted')), says('They work.')];
  const ran = await agent(at, go(at, [...all, says('1'), says('2'), says('3')]));
  expect(ran.code).toBe(0);
  expect(git(at, 'status', '--porcelain')).toBe(before);
  expect(worktrees(at)).toHaveLength(3);
  expect(branches(at)).toHaveLength(3);
  const [free = '', , unwanted = ''] = worktrees(at);
  expect(readFileSync(join(dirname(at.work), free, 'a.txt'), 'utf8')).toBe('one\ntwo\nthree, changed\n');
  expect(readdirSync(join(dirname(at.work), unwanted))).not.toContain('built');
  const listed = (await agent(at, ['worktrees', 'list', '--json'])).stdout;
  expect(JSON.parse(listed)).toHaveLength(3);
  expect((await agent(at, ['agents', 'diff', '1'])).stdout).toContain('+b of the agent');

  at.file('a.txt', 'one\ntwo\nthree of the user\n');
  const resumed = ['-m', script(at, [...all, says('1'), says('2'), says('3')]), '-c'];
  const seen = await repl(at, resumed, [
    ['/agents', /3: unwanted: unwanted works {2}finished, 2 files, \+1 −1 not merged[\s\S]*number: /],
    ['3', /Discard its worktree[\s\S]*number: /],
    ['', /❯/],
    ['/agents merge 1', /Merged 2 files of agent 1/],
    ['/agents merge 2', /with 1 conflict/],
    ['/agents discard 3', /Discarded the changes of agent 3/],
  ]);
  expect(seen.stdout).toContain('a.txt: has both versions between markers');
  expect(read(at, 'b.txt')).toBe('b of the agent\n');
  expect(read(at, 'deep/er/new.txt')).toBe('made\n');
  expect(read(at, 'a.txt')).toBe(
    'one\ntwo\n<<<<<<< yours\nthree of the user\n=======\nthree of the agent\n>>>>>>> meeting\n',
  );
  expect(read(at, 'c.txt')).toBe('c\n');
  // The one with the conflict remains.
  expect(worktrees(at)).toHaveLength(1);
  expect(branches(at)).toHaveLength(1);

  expect((await agent(at, ['undo', '--yes'])).stdout).toContain('(worktree)');
  expect(worktrees(at)).toHaveLength(2);
  const back = worktrees(at).find((name) => name.startsWith('work-unwanted')) ?? '';
  expect(readFileSync(join(dirname(at.work), back, 'other.txt'), 'utf8')).toBe('x\n');
  expect(existsSync(join(dirname(at.work), back, 'c.txt'))).toBe(false);
  await agent(at, ['undo', '--yes']);
  expect(read(at, 'a.txt')).toBe('one\ntwo\nthree of the user\n');
  await agent(at, ['undo', '--yes']);
  expect(read(at, 'b.txt')).toBe('b\n');
  expect(existsSync(join(at.work, 'deep'))).toBe(false);

  // After an undo each is as it was, and can be settled in another way.
  expect((await agent(at, ['agents', 'merge', '3', '--yes'])).stdout).toContain('Merged 2 files');
  expect(existsSync(join(at.work, 'c.txt'))).toBe(false);
  expect((await agent(at, ['agents', 'discard', '2', '--yes'])).code).toBe(0);
  expect((await agent(at, ['agents', 'merge', '1', '--yes'])).stdout).toContain('Merged 2 files');
  expect(read(at, 'b.txt')).toBe('b of the agent\n');
  expect([worktrees(at), branches(at)]).toEqual([[], []]);
  expect(git(at, 'worktree', 'list').trim().split('\n')).toHaveLength(1);
});
