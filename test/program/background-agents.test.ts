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

/** The same repository with a submodule `libs/sub` that has an uncommitted change. */
function withSubmodule(): At {
  const library = place({ 'lib.txt': 'lib\n', 'kept.txt': 'kept\n' });
  git(library, 'init', '-q');
  git(library, 'add', '.');
  git(library, 'commit', '-q', '-m', 'library');
  const at = dirtyRepository();
  git(at, '-c', 'protocol.file.allow=always', 'submodule', 'add', '-q', library.work, 'libs/sub');
  git(at, 'commit', '-q', '-m', 'submodule');
  at.file('libs/sub/kept.txt', 'kept, changed\n');
  return at;
}

test('a submodule is in the worktree of an agent with its present state; changes in it are shown, merged and undone', async () => {
  const at = withSubmodule();
  const before = git(at, 'status', '--porcelain');
  define(at, 'idle', [calls(['file_read', { path: 'libs/sub/kept.txt' }]), says('Seen.')]);
  define(at, 'worker', [
    calls(['bash', { command: 'cat libs/sub/kept.txt; echo more >> libs/sub/lib.txt; echo x > libs/sub/new.txt' }]),
    says('Done.'),
  ]);
  const turns = [calls(start('idle'), start('worker')), says('They work.'), says('1'), says('2')];
  const ran = await agent(at, go(at, turns));
  expect(ran.code).toBe(0);
  expect(git(at, 'status', '--porcelain')).toBe(before);
  const [tree = '', ...others] = worktrees(at);
  expect(others).toEqual([]);
  expect(readFileSync(join(dirname(at.work), tree, 'libs/sub/kept.txt'), 'utf8')).toBe('kept, changed\n');
  const ids = (await eventsOf(at, idOf(ran.stdout))).flatMap(({ kind, data }) =>
    kind === 'agent' && isRecord(data) ? [String(data.agent_session_id)] : [],
  );
  const told = (await eventsOf(at, ids[0] ?? '')).map(({ content }) => content).join('\n');
  expect(told).toContain('The submodules libs/sub are in it; change their files as any other.');
  const diff = (await agent(at, ['agents', 'diff', '2'])).stdout;
  expect(diff).toMatch(/--- a\/libs\/sub\/lib\.txt[^]*\+more/);
  expect(diff).toContain('+++ b/libs/sub/new.txt');
  expect(diff).not.toContain('kept');

  expect((await agent(at, ['agents', 'merge', '2', '--yes'])).stdout).toContain('Merged 2 files');
  expect([read(at, 'libs/sub/lib.txt'), read(at, 'libs/sub/new.txt')]).toEqual(['lib\nmore\n', 'x\n']);
  expect([worktrees(at), branches(at)]).toEqual([[], []]);
  expect(
    git({ ...at, work: join(at.work, 'libs/sub') }, 'worktree', 'list')
      .trim()
      .split('\n'),
  ).toHaveLength(1);
  await agent(at, ['undo', '--yes']);
  expect([read(at, 'libs/sub/lib.txt'), existsSync(join(at.work, 'libs/sub/new.txt'))]).toEqual(['lib\n', false]);
  expect((await agent(at, ['agents', 'discard', '2', '--yes'])).stdout).toContain('Discarded');
  await agent(at, ['undo', '--yes']);
  expect((await agent(at, ['agents', 'diff', '2'])).stdout).toContain('+++ b/libs/sub/new.txt');
  expect((await agent(at, ['agents', 'merge', '2', '--yes'])).stdout).toContain('Merged 2 files');
});

test('a submodule that is not checked out is empty, and what an agent changes in it is refused at the merge', async () => {
  const at = withSubmodule();
  git(at, 'submodule', 'deinit', '-q', '--force', 'libs/sub');
  const fetches = 'git -c protocol.file.allow=always submodule update --init && echo more >> libs/sub/lib.txt';
  define(at, 'worker', [calls(['bash', { command: fetches }]), says('Done.')]);
  const ran = await agent(at, go(at, [calls(start('worker')), says('It works.'), says('1')], '--approval', 'never'));
  const [tree = ''] = worktrees(at);
  expect(readFileSync(join(dirname(at.work), tree, 'libs/sub/lib.txt'), 'utf8')).toBe('lib\nmore\n');
  const id = (await eventsOf(at, idOf(ran.stdout))).flatMap(({ kind, data }) =>
    kind === 'agent' && isRecord(data) ? [String(data.agent_session_id)] : [],
  )[0];
  const told = (await eventsOf(at, id ?? '')).map(({ content }) => content).join('\n');
  expect(told).toContain('The submodules libs/sub are empty in the worktree.');
  expect((await agent(at, ['agents', 'diff', '1'])).stdout).toContain(
    'Files of the submodule libs/sub were changed. They are not merged.',
  );
  const merged = await agent(at, ['agents', 'merge', '1', '--yes']);
  expect(merged.stdout + merged.stderr).toContain('changes in this submodule are not merged');
  expect(existsSync(join(at.work, 'libs/sub/lib.txt'))).toBe(false);
  expect(worktrees(at)).toEqual([tree]);
});

test('agents in the background have a limit, and only one of them writes into the working directory', async () => {
  const at = dirtyRepository();
  define(at, 'slow', [{ text: 'late', delay_ms: 6000 }]);
  const here: Call = start('slow', { isolation: undefined });
  const ran = await agent(
    at,
    go(
      at,
      [calls(here, here, start('slow'), start('slow')), says('ok'), says('1'), says('2')],
      ...['--set', 'agents.max_background=2'],
    ),
  );
  expect(envelopes(ran.stdout).map(({ code, agent_id: id }) => code ?? id)).toEqual([
    1,
    'execution_failed',
    2,
    'limit_reached',
  ]);
});

test('what an agent in the background changes in the working directory is one undo step', async () => {
  const at = place({ 'a.txt': 'a\n' });
  define(
    at,
    'writer',
    [calls(['file_write', { path: 'made.txt', content: 'x\n' }]), says('Done.')],
    'background: true',
  );
  const call: Call = ['agent', { agent: 'writer', prompt: 'go', description: 'writes' }];
  const ran = await agent(at, go(at, [calls(call), says('ok'), says('it is there')]));
  expect([ran.code, read(at, 'made.txt')]).toEqual([0, 'x\n']);
  expect((await agent(at, ['undo', '--yes'])).stdout).toContain('agent(writer: writes)');
  expect(existsSync(join(at.work, 'made.txt'))).toBe(false);
});

test('isolation never falls back to the working directory: what is missing is said', async () => {
  const tried = async (prepare: (at: At) => void): Promise<unknown> => {
    const at = place({ 'a.txt': 'a\n' });
    prepare(at);
    define(at, 'worker', [calls(['file_write', { path: 'made.txt', content: 'x' }]), says('Done.')]);
    const ran = await agent(at, go(at, [calls(start('worker', { background: false })), says('ok')]));
    expect(existsSync(join(at.work, 'made.txt'))).toBe(false);
    return envelopes(ran.stdout)[0]?.error;
  };
  expect(await tried(() => undefined)).toContain('is in no git repository, and isolation: worktree needs one');
  expect(await tried((at) => git(at, 'init', '-q'))).toContain('has no commit yet');
});

test('an agent without changes leaves nothing, and one that writes outside of its worktree is refused', async () => {
  const at = dirtyRepository();
  define(at, 'idle', [says('Nothing to do.')], 'isolation: worktree');
  define(
    at,
    'stray',
    [calls(['file_write', { path: join(at.work, 'a.txt'), content: 'x' }]), says('I could not.')],
    'isolation: worktree',
  );
  const call = (name: string): Call => ['agent', { agent: name, prompt: 'go', description: 'works' }];
  const ran = await agent(at, go(at, [calls(call('idle'), call('stray')), says('ok')], '--approval', 'never'));
  const [idle, stray] = envelopes(ran.stdout);
  expect(String(idle?.output)).toContain('It changed nothing, and its worktree was removed.');
  const events = await eventsOf(at, String(stray?.agent_session_id));
  expect(events.find(({ kind }) => kind === 'tool_result')?.content).toContain(
    'belongs to the directory of the session',
  );
  expect(read(at, 'a.txt')).toBe('one\ntwo\nthree, changed\n');
  expect([worktrees(at), branches(at)]).toEqual([[], []]);
});

test('the model merges where edits are allowed, and nobody merges what would be asked about', async () => {
  const merge: Call = ['agent', { merge: 1 }];
  const turns = [calls(start('worker')), says('ok'), calls(merge), says('done')];
  const tried = async (...more: readonly string[]) => {
    const at = dirtyRepository();
    define(at, 'worker', [calls(['file_write', { path: 'made.txt', content: 'x\n' }]), says('Done.')]);
    const ran = await agent(at, go(at, turns, ...more));
    return { ran, has: existsSync(join(at.work, 'made.txt')), left: worktrees(at).length };
  };
  expect(await tried()).toMatchObject({ has: true, left: 0 });
  const held = await tried(
    '--set',
    'rules.ask=[{"tool":"file_write","path":"**/made.txt"}]',
    '--approval',
    'dangerous',
  );
  expect(held.has).toBe(false);
  const denied = await tried('--set', 'rules.deny=[{"path":"/**/work/made.txt"}]');
  expect(denied).toMatchObject({ has: false, left: 1 });
  expect(JSON.stringify(envelopes(denied.ran.stdout))).toContain('denied by policy');
  const auto = await tried('--set', 'agents.merge=auto');
  expect(auto).toMatchObject({ has: true, left: 0 });
});

test('hooks make and remove the worktrees of agents', async () => {
  const at = dirtyRepository();
  define(at, 'worker', [calls(['file_write', { path: 'made.txt', content: 'x\n' }]), says('Done.')]);
  const seen = join(at.home, 'seen');
  const tree = join(dirname(at.work), 'work-of-the-hook');
  const hook = (command: string) => [{ hooks: [{ type: 'command', command }] }];
  const hooks = {
    WorktreeCreate: hook(`cat >> ${seen}; git worktree add -q --detach ${tree} HEAD >&2 && echo ${tree}`),
    WorktreeRemove: hook(`cat >> ${seen}`),
  };
  writeFileSync(join(at.env.AGENT_HOME ?? '', 'hooks.json'), JSON.stringify({ hooks }));
  const ran = await agent(at, go(at, [calls(start('worker')), says('ok'), says('ended')]));
  expect(ran.code).toBe(0);
  expect(readFileSync(join(tree, 'made.txt'), 'utf8')).toBe('x\n');
  const resumed = ['-m', script(at, [calls(start('worker')), says('ok'), says('ended')]), '-c'];
  await repl(at, resumed, [['/agents merge 1', /Merged 1 file of agent 1/]]);
  expect(read(at, 'made.txt')).toBe('x\n');
  expect(existsSync(tree)).toBe(false);
  const inputs = readFileSync(seen, 'utf8').replaceAll('}{', '}\n{');
  expect(lines(inputs)).toEqual([
    expect.objectContaining({ hook_event_name: 'WorktreeCreate', name: expect.stringMatching(/^worker-/) }),
    expect.objectContaining({ hook_event_name: 'WorktreeRemove', worktree_path: tree }),
  ]);
});
