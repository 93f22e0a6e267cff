import { existsSync, mkdirSync, readFileSync, watch } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { agent, place } from '../../e2e/program.js';
import {
  bash,
  edit,
  evaluated,
  git,
  goodModel,
  lazyModel,
  model,
  recorded,
  repository,
  sessions,
  task,
} from './eval-places.js';

const minutes = { timeout: 240_000 };
/** `npm run t:eval` has 20. */
const count = Number(process.env['EVAL_TASKS'] ?? 4);

test(
  'a session in a repository notes the commit and what was not committed, once, before its first change',
  minutes,
  async () => {
    const at = repository();
    at.file('new.txt', 'not committed\n');
    at.file('add.mjs', 'export const add = (a, b) => a - b; // mine\n');
    const sum = model(at, 'sum', [
      { calls: [{ name: 'file_read', arguments: { path: 'add.mjs' } }] },
      { calls: [edit('add.mjs', 'a - b', 'a + b')] },
      { calls: [edit('add.mjs', '// mine', '')] },
      { text: 'Done.' },
    ]);
    await agent(at, ['-p', '-m', sum, 'repair it']);
    const events = await recorded(at);
    const bases = events.filter(({ kind }) => kind === 'base');
    expect(bases.map(({ data }) => [data?.['root'], data?.['commit']])).toEqual([
      [at.work, git(at, 'rev-parse', 'HEAD')],
    ]);
    const patch = String(bases[0]?.data?.['patch']);
    expect(patch).toContain('+not committed');
    expect(patch).toContain('// mine');
    expect(patch).not.toContain('a + b');
    const kinds = events.map(({ kind }) => kind);
    expect(kinds.indexOf('base')).toBeLessThan(kinds.indexOf('tool_result', kinds.indexOf('tool_result') + 1));
  },
);

test('a session that only reads, or that is in no repository, notes nothing', minutes, async () => {
  const read = repository();
  await agent(read, [
    '-p',
    '-m',
    model(read, 'r', [{ calls: [{ name: 'file_read', arguments: { path: 'add.mjs' } }] }, { text: 'Done.' }]),
    'go',
  ]);
  const outside = place();
  await agent(outside, [
    '-p',
    '-m',
    model(outside, 'w', [{ calls: [bash('echo a > a.txt')] }, { text: 'Done.' }]),
    'go',
  ]);
  for (const at of [read, outside]) expect((await recorded(at)).filter(({ kind }) => kind === 'base')).toEqual([]);
});

test('a patch that is too long is left out, and a task that would need it is refused', minutes, async () => {
  const at = repository();
  at.file('long.txt', 'a line of the file\n'.repeat(20_000));
  await agent(at, ['-p', '-m', goodModel(at), 'repair it']);
  const [base] = (await recorded(at)).filter(({ kind }) => kind === 'base');
  expect([base?.data?.['patch'], base?.data?.['left_out']]).toEqual([null, 'the patch had more than 262144 bytes']);
  const [session] = await sessions(at);
  const { code, stderr } = await agent(at, ['eval', 'new', '--from', session?.id ?? '', '--yes']);
  expect([code, stderr]).toEqual([2, expect.stringContaining('the patch had more than 262144 bytes')]);
});

test('a task made of the second turn of a session begins with what the first turn had changed', minutes, async () => {
  const at = repository();
  at.file('notes.txt', 'one\n');
  const both = model(at, 'both', [
    { calls: [edit('notes.txt', 'one', 'two')] },
    { calls: [bash('cp notes.txt copy.txt')] },
    { text: 'Noted.' },
    { calls: [edit('add.mjs', 'a - b', 'a + b')] },
    { calls: [bash('grep two notes.txt copy.txt && node test.mjs')] },
    { text: 'Done.' },
  ]);
  await agent(at, ['-p', '-m', both, 'note it', '--next', 'repair it']);
  const [session] = await sessions(at);
  const made = await agent(at, [
    'eval',
    'new',
    '--from',
    session?.id ?? '',
    '--turn',
    '2',
    '--yes',
    '--out',
    'evals/second',
  ]);
  expect([made.code, made.stdout, made.stderr]).toEqual([0, `${join(at.work, 'evals/second/task.json')}\n`, '']);
  const written = JSON.parse(readFileSync(join(at.work, 'evals/second/task.json'), 'utf8')) as Record<string, unknown>;
  expect(written).toEqual({
    name: 'repair-it',
    prompt: 'repair it',
    repo: at.work,
    base: git(at, 'rev-parse', 'HEAD'),
    check: expect.stringContaining('node test.mjs'),
  });
  const patch = readFileSync(join(at.work, 'evals/second/patch.diff'), 'utf8');
  expect(patch).toContain('+two');
  expect(patch).toContain('copy.txt');
  expect(patch).not.toContain('a + b');
  const replay = model(at, 'replay', [{ calls: [edit('add.mjs', 'a - b', 'a + b')] }, { text: 'Done.' }]);
  expect((await evaluated(at, 'evals', '-m', replay)).runs.map(({ status }) => status)).toEqual(['passed']);
});

test(
  'a task made of a session and played by the same script passes; a model that does nothing fails',
  minutes,
  async () => {
    const at = repository();
    at.file('notes.txt', 'not committed\n');
    const good = goodModel(at);
    await agent(at, ['-p', '-m', good, 'repair it']);
    git(at, 'checkout', '--quiet', 'add.mjs');
    const [session] = await sessions(at);
    expect((await agent(at, ['eval', 'new', '--from', session?.id ?? '', '--yes'])).code).toBe(0);
    const reference = readFileSync(join(at.work, 'evals/repair-it/reference.diff'), 'utf8');
    expect(reference).toContain('+export const add = (a, b) => a + b;');
    const { runs, summary } = await evaluated(at, 'evals', '-m', good, '-m', lazyModel(at), '--repeat', '2');
    expect(runs.map(({ model: name, repeat, status }) => [name, repeat, status])).toEqual([
      [good, 1, 'passed'],
      [good, 2, 'passed'],
      ['offline/lazy.json', 1, 'failed'],
      ['offline/lazy.json', 2, 'failed'],
    ]);
    expect(runs[2]?.reason).toBe('check ended with exit code 1: 1 + 2 is -1');
    expect(summary.map(({ passed, total, cost_usd: cost }) => [passed, total, cost?.toFixed(4)])).toEqual([
      [2, 2, '0.0660'],
      [0, 2, '0.0020'],
    ]);
    expect(git(at, 'status', '--porcelain')).toBe('?? notes.txt');
  },
);

test('without --yes and without a terminal a guessed check is not used', minutes, async () => {
  const at = repository();
  await agent(at, ['-p', '-m', goodModel(at), 'repair it']);
  const [session] = await sessions(at);
  const { code, stderr } = await agent(at, ['eval', 'new', '--from', session?.id ?? '']);
  expect([code, stderr]).toEqual([2, expect.stringContaining('the check `node test.mjs` is a guess')]);
  expect(existsSync(join(at.work, 'evals'))).toBe(false);
});

test(
  'many tasks and 3 models side by side: each run has a place of its own, costs add up, the repository is as it was',
  minutes,
  async () => {
    const at = repository();
    const branch = model(at, 'branch', [
      {
        calls: [
          bash(
            'git checkout -q -b mine && echo x > x.txt && git add x.txt && git -c user.name=n -c user.email=n@n commit -qm mine; git tag t',
          ),
        ],
      },
      { calls: [edit('add.mjs', 'a - b', 'a + b')], usage: { input_tokens: 1, output_tokens: 1, cost_usd: 0.0123 } },
      { text: 'Done.' },
    ]);
    const good = goodModel(at);
    const lazy = lazyModel(at);
    for (let number = 1; number <= count; number++) task(at, `task-${number}`);
    const before = [
      git(at, 'for-each-ref'),
      git(at, 'worktree', 'list'),
      git(at, 'status', '--porcelain', '--ignored'),
    ];
    const { runs, summary } = await evaluated(at, 'evals', '-m', good, '-m', lazy, '-m', branch, '--jobs', '4');
    expect(runs.map(({ status }) => status).filter((status) => status === 'passed')).toHaveLength(2 * count);
    expect(new Set(runs.map(({ session_id: id }) => id)).size).toBe(3 * count);
    expect(summary.map(({ passed, total, cost_usd: cost }) => [passed, total, cost?.toFixed(4)])).toEqual([
      [count, count, (0.033 * count).toFixed(4)],
      [0, count, (0.001 * count).toFixed(4)],
      [count, count, (0.0123 * count).toFixed(4)],
    ]);
    const cents = (cost: number | null): number => Math.round((cost ?? Number.NaN) * 100);
    for (const { model: name, cost_usd: cost } of summary)
      expect(cents(cost)).toBe(
        cents(runs.filter((run) => run.model === name).reduce((sum, run) => sum + (run.cost_usd ?? 0), 0)),
      );
    expect([
      git(at, 'for-each-ref'),
      git(at, 'worktree', 'list'),
      git(at, 'status', '--porcelain', '--ignored'),
    ]).toEqual(before);
    expect(readFileSync(join(at.work, 'add.mjs'), 'utf8')).toContain('a - b');
  },
);

test('an evaluation that is killed again and again makes each run once', { timeout: 400_000 }, async () => {
  const at = repository();
  const slow = model(at, 'slow', [
    {
      calls: [edit('add.mjs', 'a - b', 'a + b')],
      delay_ms: 150,
      usage: { input_tokens: 1, output_tokens: 1, cost_usd: 0.01 },
    },
    { calls: [bash('node test.mjs')], delay_ms: 150 },
    { text: 'Done.' },
  ]);
  for (let number = 1; number <= 4; number++) task(at, `task-${number}`);
  const lines = /^agent: evaluation (\w+): 8 runs, (\d+) done already$/m;
  const first = await agent(at, ['eval', 'run', 'evals', '-m', slow, '-m', lazyModel(at), '--sandbox', 'off'], {
    onStart: (child) => child.stderr?.on('data', () => child.kill('SIGKILL')),
  });
  const [, id = ''] = lines.exec(first.stderr) ?? [];
  let kills = 1;
  for (let more = true; more; kills++) {
    let said = '';
    const { signal, stdout } = await agent(at, ['eval', 'run', '--resume', id, '--json'], {
      onStart: (child) =>
        child.stderr?.on('data', (chunk: Buffer) => {
          said += chunk.toString();
          // The next kill comes once another run has ended, in the middle of others.
          if (/^\d+\/8 /m.test(said)) child.kill('SIGKILL');
        }),
    });
    more = signal === 'SIGKILL' || stdout === '';
    expect(kills).toBeLessThan(30);
  }
  const report = JSON.parse((await agent(at, ['eval', 'report', id, '--json'])).stdout) as Awaited<
    ReturnType<typeof evaluated>
  >;
  expect(report.runs).toHaveLength(8);
  const wrong = report.runs.filter(({ model: name, status }) => status !== (name === slow ? 'passed' : 'failed'));
  expect(wrong).toEqual([]);
  expect(report.runs.map(({ cost_usd: cost }) => cost)).toEqual(Array.from({ length: 4 }, () => [0.01, 0.001]).flat());
  // No session but theirs: nothing was run twice.
  const known = await sessions(at);
  expect(known.map(({ id: session }) => session).sort()).toEqual(
    report.runs.map(({ session_id: session }) => session ?? '').sort(),
  );
  for (const { session_id: session } of report.runs) {
    const typed = (await recorded(at, session ?? '')).filter(
      ({ kind, data }) => kind === 'user' && data?.['note'] !== true,
    );
    expect(typed.map(({ content }) => content)).toEqual(['repair it']);
  }
});

test('a run that is cut with its own process begins anew in a fresh place', minutes, async () => {
  const at = repository();
  task(at, 'one');
  const stuck = model(at, 'stuck', [{ calls: [bash('echo half > half.txt')] }, { text: 'Done.', delay_ms: 60_000 }]);
  const temporary = join(at.home, 'tmp');
  mkdirSync(temporary);
  const env = { TMPDIR: temporary };
  let program = 0;
  const first = await agent(at, ['eval', 'run', 'evals', '-m', stuck, '--sandbox', 'off'], {
    env,
    onStart: (child) => {
      const watcher = watch(temporary, { recursive: true }, (_event, name) => {
        if (name?.endsWith('half.txt') !== true) return;
        watcher.close();
        program = Number(readFileSync(join(temporary, dirname(dirname(name)), 'turn-1.pid'), 'utf8'));
        child.kill('SIGKILL');
      });
    },
  });
  process.kill(-program, 'SIGKILL');
  const [, id = ''] = /evaluation (\w+)/.exec(first.stderr) ?? [];
  at.file(
    'stuck.json',
    JSON.stringify({ turns: [{ calls: [bash('test ! -e half.txt && sed -i s/-/+/ add.mjs')] }, { text: 'Done.' }] }),
  );
  const { code, stdout } = await agent(at, ['eval', 'run', '--resume', id, '--json'], { env });
  expect(code).toBe(0);
  expect((JSON.parse(stdout) as Awaited<ReturnType<typeof evaluated>>).runs.map(({ status }) => status)).toEqual([
    'passed',
  ]);
});
