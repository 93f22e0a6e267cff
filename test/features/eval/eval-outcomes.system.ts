import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { agent, place } from '../../e2e/program.js';
import { bash, edit, evaluated, goodModel, lazyModel, model, repository, sessions, task } from './eval-places.js';

const minutes = { timeout: 240_000 };

test(
  'what ends a run is named: the check, time, cost, turns, a setup that fails, a provider that fails',
  minutes,
  async () => {
    const at = repository();
    const good = goodModel(at);
    const looping = model(
      at,
      'looping',
      Array.from({ length: 9 }, (_, number) => ({ calls: [bash(`echo ${number}`)] })),
    );
    const costly = model(at, 'costly', [
      { calls: [bash('echo a')], usage: { input_tokens: 10, output_tokens: 10, cost_usd: 1 } },
      { calls: [bash('echo b')], usage: { input_tokens: 10, output_tokens: 10, cost_usd: 1 } },
      { text: 'Done.' },
    ]);
    const slow = model(at, 'slow', [{ text: 'Done.', delay_ms: 60_000 }]);
    const broken = model(at, 'broken', [{ fault: { code: 'quota', message: 'the account has no credit' } }]);
    task(at, 'plain');
    task(at, 'short', { timeout_s: 2 });
    task(at, 'cheap', { max_cost_usd: 0.5, model_settings: { 'models.prices': {} } });
    task(at, 'few', { model_settings: { max_tool_turns: 3 } });
    task(at, 'no-setup', { setup: 'echo no such program >&2; exit 3' });
    task(at, 'no-commit', { base: '1'.repeat(40) });
    const outcome = async (name: string, by: string): Promise<readonly [string, string | null]> => {
      const { runs } = await evaluated(at, `evals/${name}`, '-m', by);
      return [runs[0]?.status ?? '', runs[0]?.reason ?? null];
    };
    expect(await outcome('plain', good)).toEqual(['passed', null]);
    expect(await outcome('short', slow)).toEqual(['limit', 'the time of the task was over']);
    expect(await outcome('few', looping)).toEqual(['limit', 'the limit of responses with tool calls was reached']);
    expect(await outcome('no-setup', good)).toEqual(['error', 'setup ended with exit code 3: no such program']);
    expect(await outcome('no-commit', good)).toEqual(['error', expect.stringMatching(/^git rev-parse failed: /)]);
    expect(await outcome('plain', broken)).toEqual(['error', 'the account has no credit']);
    expect((await outcome('cheap', costly))[0]).toMatch(/limit|error/);
  },
);

test('files stand in the place of a repository: texts, a folder, a list', minutes, async () => {
  const at = place({ 'kit/a/one.txt': 'one\n', 'kit/two.txt': 'two\n' });
  const good = model(at, 'good', [{ calls: [edit('two.txt', 'two', 'three')] }, { text: 'Done.' }]);
  const check = 'test "$(cat two.txt)" = three';
  const write = (name: string, files: unknown): void => {
    at.file(`evals/${name}/task.json`, JSON.stringify({ prompt: 'three, please', check, files }));
  };
  write('texts', { 'two.txt': 'two\n', 'deep/er.txt': 'x' });
  write('folder', '../../kit');
  at.file('evals/list/two.txt', 'two\n');
  write('list', ['two.txt']);
  const { runs, run_id: id } = await evaluated(at, 'evals', '-m', good);
  expect(runs.map(({ task: name, status }) => [name, status])).toEqual([
    ['folder', 'passed'],
    ['list', 'passed'],
    ['texts', 'passed'],
  ]);
  expect(readFileSync(join(at.work, 'kit/two.txt'), 'utf8')).toBe('two\n');
  expect((await agent(at, ['eval', 'report', id, '--html', 'page.html'])).code).toBe(0);
  const page = readFileSync(join(at.work, 'page.html'), 'utf8');
  expect(page).toContain('<div class="added">+three</div>');
  expect(page).toContain('<div class="removed">-two</div>');
  expect(page).not.toContain('<script');
});

test('an answer in JSON passes where it fits the schema, and fails where it does not', minutes, async () => {
  const at = repository();
  task(at, 'json', {
    check: undefined,
    json_schema: { type: 'object', properties: { sum: { type: 'number' } }, required: ['sum'] },
  });
  const right = model(at, 'right', [{ text: '{"sum": 3}' }]);
  const wrong = model(at, 'wrong', [{ text: 'three' }, { text: 'three' }, { text: 'three' }]);
  const { runs } = await evaluated(at, 'evals', '-m', right, '-m', wrong);
  expect(runs.map(({ status }) => status)).toEqual(['passed', 'failed']);
  expect(runs[1]?.reason).toContain('does not match the JSON Schema');
});

test.each([
  [{ prompt: 'a', prompts: ['b'] }, 'give either prompt or prompts'],
  [{ check: undefined }, 'there is neither a check nor a json_schema'],
  [{ chek: 'npm test' }, 'there is no field chek'],
  [{ timeout_s: -1 }, 'timeout_s must be > 0'],
  [{ repo: '../../nowhere' }, 'repo: there is no folder'],
  [{ files: { '../a': '' }, repo: undefined, base: undefined }, 'files: ../a leads out of the place'],
  [{ directory: '../..' }, 'directory ../.. leads out of the place'],
  [{ base: undefined }, 'give repo and base (a commit), or files'],
])('a task file with %j is refused with exit code 2', minutes, async (fields, problem) => {
  const at = repository();
  task(at, 'wrong', fields);
  const { code, stdout, stderr } = await agent(at, ['eval', 'run', 'evals', '-m', lazyModel(at), '--sandbox', 'off']);
  expect([code, stdout, stderr]).toEqual([2, '', expect.stringContaining(problem)]);
  expect(stderr).toContain('evals/wrong/task.json');
  expect(await sessions(at)).toEqual([]);
});

test('two evaluations are compared task by task, listed and removed', minutes, async () => {
  const at = repository();
  for (const name of ['a', 'b', 'c']) task(at, name);
  const first = await evaluated(at, 'evals', '-m', goodModel(at));
  const second = await evaluated(at, 'evals', '-m', lazyModel(at));
  const compared = await agent(at, ['eval', 'compare', first.run_id, second.run_id, '--json']);
  expect(JSON.parse(compared.stdout)).toEqual({
    a: first.run_id,
    b: second.run_id,
    tasks: ['a', 'b', 'c'].map((name) => ({ task: name, repeat: 1, model: null, a: 'passed', b: 'failed' })),
    only_a: 3,
    only_b: 0,
    p_value: 0.25,
  });
  const listed = JSON.parse((await agent(at, ['eval', 'list', '--json'])).stdout) as readonly {
    readonly run_id: string;
  }[];
  expect(listed.map(({ run_id: id }) => id)).toEqual([second.run_id, first.run_id]);
  expect((await agent(at, ['eval', 'rm', first.run_id])).code).toBe(0);
  const gone = await agent(at, ['eval', 'report', first.run_id]);
  expect([gone.code, gone.stderr]).toEqual([2, expect.stringContaining(`there is no evaluation ${first.run_id}`)]);
  expect((await sessions(at)).length).toBe(6);
});

test('Ctrl-C stops the runs under way, leaves no process, and the evaluation continues', minutes, async () => {
  const at = repository();
  task(at, 'one');
  const slow = model(at, 'slow', [
    { calls: [edit('add.mjs', 'a - b', 'a + b'), bash('echo begun > begun.txt; sleep 3')] },
    { text: 'Done.' },
  ]);
  const marker = join(at.home, 'tmp');
  at.file('../home/tmp/.keep', '');
  const { code, stderr } = await agent(at, ['eval', 'run', 'evals', '-m', slow, '--sandbox', 'off'], {
    env: { TMPDIR: marker },
    onStart: (child) => child.stderr?.once('data', () => child.kill('SIGINT')),
  });
  expect(code).toBe(130);
  const [, id = ''] = /agent eval run --resume (\w+)/.exec(stderr) ?? [];
  const again = await agent(at, ['eval', 'run', '--resume', id, '--json'], { env: { TMPDIR: marker } });
  expect((JSON.parse(again.stdout) as Awaited<ReturnType<typeof evaluated>>).runs.map(({ status }) => status)).toEqual([
    'passed',
  ]);
  expect(existsSync(join(marker, 'agent-eval'))).toBe(false);
});
