import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { modelServer } from '../e2e/model-server.js';
import type { Finished, Place } from '../e2e/program.js';
import { agent, atTerminal, lines, place, repl, script } from './inside.js';

interface Row {
  readonly seq: number;
  readonly kind: string;
  readonly content: string | null;
  readonly data: Readonly<Record<string, unknown>> | null;
}

function rows({ home }: Place): readonly Row[] {
  const db = new Database(join(home, '.agent/agent.db'), { readonly: true });
  try {
    const all = db.prepare('select seq, kind, content, data_json from events order by session_id, seq').all();
    return (all as { seq: number; kind: string; content: string | null; data_json: string | null }[]).map(
      ({ data_json, ...row }) => ({ ...row, data: data_json === null ? null : (JSON.parse(data_json) as Row['data']) }),
    );
  } finally {
    db.close();
  }
}

const goals = (at: Place): readonly Row[] => rows(at).filter(({ kind }) => kind === 'goal');
const states = (at: Place): readonly unknown[] => goals(at).map(({ data }) => data?.['state']);
const bash = (command: string, more: object = {}) => ({ calls: [{ name: 'bash', arguments: { command } }], ...more });
const result = ({ stdout }: Finished): Readonly<Record<string, unknown>> =>
  lines(stdout).at(-1) as Readonly<Record<string, unknown>>;
const json = ['-p', '--output-format', 'json'];
const linesOf = (at: Place, name: string): readonly string[] =>
  existsSync(join(at.work, name)) ? readFileSync(join(at.work, name), 'utf8').trim().split('\n') : [];

/** Two turns of work; the second one makes what the check looks for. */
const twoTurns = [
  bash('echo one >> work.log'),
  { text: 'I did the first part.' },
  bash('echo two >> work.log; touch done'),
  { text: 'I did the rest.' },
  bash('test -f done || { echo two >> work.log; touch done; }'),
  { text: 'I did what was lost.' },
];
const check = 'echo checked >> checks.log; wc -l < checks.log; echo "done is missing" >&2; test -f done';

test('a goal continues until its check ends with 0; each turn gets the output of the check', async () => {
  const at = place();
  const model = script(at, twoTurns);
  const run = await agent(at, [...json, '-m', model, '--goal', 'done is there', '--goal-check', check]);
  expect(run).toMatchObject({ code: 0, stderr: expect.stringMatching(/^agent: Goal met after 2 turns: /) as string });
  expect(result(run)).toMatchObject({
    status: 'completed',
    text: 'I did the rest.',
    turns: 2,
    tool_calls: 2,
    goal: { condition: 'done is there', check, met: true, turns: 2, last_exit_code: 0 },
  });
  expect(linesOf(at, 'work.log')).toEqual(['one', 'two']);
  expect(linesOf(at, 'checks.log')).toEqual(['checked', 'checked']);
  expect(states(at)).toEqual(['set', 'checked', 'met']);
  const sent = rows(at).filter(({ kind, data }) => kind === 'user' && data?.['source'] === 'goal');
  expect(sent.map(({ content }) => content)).toEqual([
    'done is there',
    expect.stringMatching(/goal is not met yet, after turn 1 of 30[\s\S]*done is missing[\s\S]*\[exit code 1\]/),
  ]);
});

test('the check is a call like any other: it is in the log, policy decides it, and a denial stops the goal', async () => {
  const at = place();
  const goal = ['--goal', 'x', '--goal-check', 'test -f done'];
  const met = await agent(at, [...json, '-m', script(at, [bash('touch done'), { text: 'ok' }]), ...goal]);
  expect(met.code).toBe(0);
  const call = rows(at).find(({ kind, data }) => kind === 'tool_call' && data?.['by'] === 'command');
  expect(call?.content).toContain('test -f done');
  const denied = await agent(at, [
    ...[...json, '-m', script(at, [{ text: 'ok' }]), '--disallowed-tools', 'bash(test *)'],
    ...goal,
  ]);
  expect(denied).toMatchObject({ code: 1, stderr: expect.stringContaining('The check did not run') as string });
  expect(result(denied)).toMatchObject({
    status: 'failed',
    error: { code: 'goal' },
    goal: { met: false, turns: 1, last_exit_code: null },
  });
  const without = await agent(at, [...json, '--no-tools', '-m', script(at, [{ text: 'ok' }]), ...goal]);
  expect(without).toMatchObject({ code: 1, stderr: expect.stringContaining('The check did not run') as string });
});

test('the limit of turns ends a goal with 3; a later run with a higher one continues it', async () => {
  const at = place();
  const model = script(at, [{ text: 'a' }, { text: 'b' }, bash('touch done'), { text: 'c' }]);
  const goal = ['-m', model, '--goal', 'done is there', '--goal-check', 'date +%N; test -f done'];
  const limited = await agent(at, [...json, ...goal, '--max-goal-turns', '2']);
  expect(limited.code).toBe(3);
  expect(result(limited)).toMatchObject({
    status: 'limit_reached',
    limit: 'goal_turns',
    goal: { met: false, turns: 2, last_exit_code: 1 },
  });
  expect(goals(at).at(-1)?.data).toMatchObject({ state: 'ended', cause: 'turns' });
  const again = await agent(at, [...json, '-c', ...goal, '--max-goal-turns', '5']);
  expect(again.code).toBe(0);
  expect(result(again)['goal']).toMatchObject({ met: true });
});

test('three failures of the same kind in a row stop the goal', async () => {
  const at = place();
  const model = script(at, [{ text: 'a' }], { loop: true });
  const run = await agent(at, [...json, '-m', model, '--goal', 'x', '--goal-check', 'date; echo no; exit 7']);
  expect(run).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('failed 3 times in a row in the same way') as string,
  });
  expect(result(run)).toMatchObject({ error: { code: 'goal' }, goal: { met: false, turns: 3, last_exit_code: 7 } });
  expect(states(at)).toEqual(['set', 'checked', 'checked', 'checked', 'ended']);
  const other = place();
  const changing = 'echo x >> n; wc -l < n; exit 7';
  const rest = [...json, '-m', script(other, [{ text: 'a' }], { loop: true }), '--goal', 'x', '--max-goal-turns', '5'];
  expect((await agent(other, [...rest, '--goal-check', changing])).code).toBe(3);
});

test('the spend limit ends a goal with 5, whose log says so', async () => {
  const [at, server] = [place(), await modelServer(Array.from({ length: 9 }, (_, at) => ({ text: `turn ${at}` })))];
  mkdirSync(join(at.home, '.agent'));
  const models = {
    'openai/dear': { context_window: 100_000, max_output_tokens: 100, input_usd: 100, output_usd: 1000 },
  };
  writeFileSync(join(at.home, '.agent', 'config.json'), JSON.stringify({ models }));
  const env = { OPENAI_API_KEY: 'test-key-openai-1', OPENAI_BASE_URL: `${server.url}/v1` };
  const goal = ['--goal', 'x', '--goal-check', 'date +%N; false', '-m', 'openai/dear', '--max-cost', '0.5'];
  const run = await agent(at, [...json, ...goal], { env });
  expect(run.code).toBe(5);
  expect(result(run)).toMatchObject({
    status: 'limit_reached',
    error: { code: 'max_cost' },
    goal: { met: false, last_exit_code: 1 },
  });
  expect(goals(at).at(-1)?.data).toMatchObject({ state: 'ended', cause: 'cost' });
});

test('without a check the model names the events that show it; a claim without evidence does not count', async () => {
  const call = { calls: [{ name: 'bash', arguments: { command: 'echo 12 passed' } }] };
  const turns = [
    { text: 'I believe so.' },
    { text: '{"met": true, "evidence": [], "reason": "I am sure"}' },
    call,
    { text: 'They pass.' },
    { text: 'Yes, event 99999 shows it.' },
    call,
    { text: 'They still pass.' },
    { text: '```json\n{"met": false, "evidence": [], "reason": "One is skipped."}\n```' },
    { text: 'Now none is skipped.' },
    { text: '{"met": true, "evidence": [EVENT], "reason": "All pass."}' },
  ];
  let answers = 0;
  const server = await modelServer((body) => {
    // The last answer names the first result that the question lists.
    const listed = /event (\d+): bash\(/.exec(JSON.stringify(body))?.[1] ?? '';
    const { text, ...turn } = { text: '', ...turns[answers++] };
    return { ...turn, text: text.replace('EVENT', listed) };
  });
  const at = place();
  const env = { OPENAI_API_KEY: 'test-key-openai-1', OPENAI_BASE_URL: `${server.url}/v1` };
  const run = await agent(at, [...json, '-m', 'openai/gpt-5.2', '--goal', 'the tests pass'], { env });
  expect(goals(at).map(({ data }) => [data?.['state'], data?.['reason']])).toEqual([
    ['set', undefined],
    ['checked', 'The model said that it is met and named no event that shows it.'],
    ['checked', 'The model said that it is met and named no event that shows it.'],
    ['checked', 'One is skipped.'],
    ['met', 'All pass.'],
  ]);
  const proof = rows(at).find(({ kind }) => kind === 'tool_result');
  expect(goals(at).at(-1)?.data).toMatchObject({ evidence: [proof?.seq] });
  expect(run).toMatchObject({
    code: 0,
    stderr: expect.stringMatching(/Goal met after 4 turns\. All pass\. Shown by:\nevent \d+: .*12 passed/) as string,
  });
  expect(rows(at).filter(({ kind, data }) => kind === 'usage' && data?.['purpose'] === 'goal')).toHaveLength(4);
  const said = rows(at).filter(({ kind, content }) => kind === 'assistant' && content !== '');
  expect(said.map(({ content }) => content)).toEqual([
    ...['I believe so.', 'They pass.', 'They still pass.', 'Now none is skipped.'],
  ]);
});

test(
  'a goal whose program died after any event continues from there; no call that has a result runs again',
  {
    timeout: 300_000,
  },
  async () => {
    const whole = place();
    const model = script(whole, twoTurns);
    const goal = ['-m', model, '--goal', 'done is there', '--goal-check', check];
    expect((await agent(whole, [...json, ...goal])).code).toBe(0);
    const log = rows(whole);
    const first = log.findIndex(({ kind }) => kind === 'user');
    const saved = join(whole.home, '..', 'saved');
    cpSync(join(whole.home, '.agent'), saved, { recursive: true });
    for (const [index, { seq, kind }] of log.entries()) {
      if (index < first) continue;
      const at = whole;
      for (const name of ['work.log', 'checks.log', 'done']) rmSync(join(at.work, name), { force: true });
      const before = log.slice(0, index + 1);
      const effects = before.filter((event) => event.kind === 'tool_started').map(({ data }) => data?.['tool_call_id']);
      const commands = effects.map((id) => {
        const call = before.find((event) => event.kind === 'tool_call' && event.data?.['id'] === id);
        return String(call?.content);
      });
      const had = (text: string): number => commands.filter((command) => command.includes(text)).length;
      const put = (name: string, words: readonly string[]): void => {
        if (words.length > 0) writeFileSync(join(at.work, name), `${words.join('\n')}\n`);
      };
      put('work.log', [...(had('echo one') ? ['one'] : []), ...(had('echo two') ? ['two'] : [])]);
      put(
        'checks.log',
        Array.from({ length: had('echo checked') }, () => 'checked'),
      );
      if (had('touch done') > 0) put('done', ['']);
      rmSync(join(at.home, '.agent'), { recursive: true });
      cpSync(saved, join(at.home, '.agent'), { recursive: true });
      const db = new Database(join(at.home, '.agent/agent.db'));
      db.prepare('delete from events where seq > ?').run(seq);
      db.close();

      const run = await agent(at, [...json, '-c', ...goal]);
      const where = `killed after ${seq} ${kind}`;
      expect([where, run.code, result(run)['goal']]).toEqual([
        where,
        0,
        { condition: 'done is there', check, met: true, turns: expect.any(Number) as number, last_exit_code: 0 },
      ]);
      const work = linesOf(at, 'work.log');
      expect([where, new Set(work).size]).toEqual([where, work.length]);
      const results = rows(at).filter(
        ({ kind: one, data }) => one === 'tool_result' && data?.['synthetic'] === undefined,
      );
      const ids = results.map(({ data }) => data?.['tool_call_id']);
      expect([where, new Set(ids).size]).toEqual([where, ids.length]);
      // A check whose result was lost runs again, and no other.
      const lost = effects.filter(
        (id) => !before.some((e) => e.kind === 'tool_result' && e.data?.['tool_call_id'] === id),
      );
      const turns = goals(at).filter(({ data }) => data?.['state'] === 'checked' || data?.['state'] === 'met').length;
      const lostChecks = lost.length > 0 && commands.at(-1)?.includes('echo checked') ? 1 : 0;
      const already = before.some((e) => e.kind === 'goal' && e.data?.['state'] === 'met') ? -turns : 0;
      expect([where, linesOf(at, 'checks.log').length + already]).toEqual([where, turns + lostChecks + already]);
    }
  },
);

test('/goal works in the REPL: it stops and asks at the third failure, and off ends it', async () => {
  const at = place();
  const more = [{ text: 'once' }, { text: 'twice' }, { text: 'thrice' }, bash('touch done'), { text: 'Now it is.' }];
  const { code } = await repl(
    at,
    ['-m', script(at, more)],
    [
      ['/goal', 'There is no goal. Set one'],
      ['/goal off', 'There is no goal.'],
      ['/goal resume', 'There is no goal to resume.'],
      ['/goal x --max-turns none', '--max-turns: none is not a number from 1'],
      [
        "/goal done is there --check 'echo no; test -f done'",
        /Goal not met after turn 1 of 30[^]*failed 3 times in a row/,
      ],
      [
        '/goal',
        /The goal is paused: done is there\nCheck: echo no; test -f done\nLast check: exit code 1\nTurns: 3 of 30/,
      ],
      ['/goal resume', /Goal met after 4 turns/],
      ['/goal', /The goal is met/],
      ["/goal more --check 'false' --max-turns 1", /limit of 1 turn\. \/goal resume --max-turns 2 continues it/],
      ['/goal off', 'There is no goal.'],
    ],
  );
  expect(code).toBe(0);
  expect(states(at)).toEqual([
    ...['set', 'checked', 'checked', 'checked', 'paused', 'resumed', 'met'],
    ...['set', 'checked', 'ended'],
  ]);
});

test('an interrupt pauses a goal, in the turn and in its check; it continues by command only', async () => {
  const at = place();
  const turns = [
    { text: 'slow', delay_ms: 60_000 },
    { text: 'slow', delay_ms: 60_000 },
  ];
  await atTerminal(
    at,
    ['-m', script(at, turns)],
    [
      ['❯ ', "/goal x --check 'true'\n"],
      ['the user has set a goal', null],
      [/Goal paused: `true`\. Interrupted\.[^\n]*\n/, '/goal resume\n'],
      // The turn that was interrupted is judged first.
      ['Goal met after 1 turn', "/goal y --check 'echo begun; sleep 60'\n"],
      ['the user has set a goal', null],
      [/Goal paused: [^\n]*\n/, '/goal resume\n'],
      ['· running', null],
      [/Goal paused: [^\n]*\n/, '/goal off\n'],
      ['Goal ended: ', '/exit\n'],
    ],
  );
  expect(states(at)).toEqual([
    ...['set', 'paused', 'resumed', 'met'],
    ...['set', 'paused', 'resumed', 'paused', 'ended'],
  ]);
  expect(goals(at).flatMap(({ data }) => data?.['cause'] ?? [])).toEqual(['user', 'user', 'user', 'user']);
});

test('a goal that the REPL was left with continues when the session is opened again', async () => {
  const at = place();
  const model = script(at, twoTurns);
  expect((await agent(at, [...json, '-m', model, '--goal', 'done is there', '--goal-check', check])).code).toBe(0);
  const db = new Database(join(at.home, '.agent/agent.db'));
  const judged = goals(at).find(({ data }) => data?.['state'] === 'checked');
  db.prepare('delete from events where seq > ?').run(judged?.seq);
  db.close();
  rmSync(join(at.work, 'done'));
  const { stdout } = await repl(at, ['-c', '-m', model], [['/goal', /Goal met after 2 turns/]]);
  expect(stdout).toMatch(/Goal continues: .* · 1\/30/);
  expect(states(at)).toEqual(['set', 'checked', 'met']);
});

test('the goal is in exports, and a redaction of it leaves none of its words', async () => {
  const at = place();
  const goal = ['--goal', 'the zebra is striped', '--goal-check', 'test -n zebra'];
  expect((await agent(at, ['-p', '-m', script(at, [{ text: 'ok' }]), ...goal])).code).toBe(0);
  const [id = ''] = (JSON.parse((await agent(at, ['sessions', 'list', '--json'])).stdout) as { id: string }[]).map(
    (session) => session.id,
  );
  const shown = await agent(at, ['sessions', 'show', id]);
  expect(shown.stdout).toContain('Goal met after 1 turn');
  const exported = await agent(at, ['sessions', 'export', id, '--format', 'jsonl']);
  const kinds = lines(exported.stdout).filter(({ kind }) => kind === 'goal');
  expect(kinds.map(({ data }) => (data as { state: string }).state)).toEqual(['set', 'met']);
  const events = goals(at).map(({ seq }) => seq);
  for (const seq of events) expect((await agent(at, ['redact', id, String(seq)])).code).toBe(0);
  expect(JSON.stringify(goals(at))).not.toContain('zebra');
  expect(states(at)).toEqual(['set', 'met']);
});

test('options of goals are checked before anything is sent', async () => {
  const at = place();
  for (const [args, text] of [
    [['--goal', ' '], '--goal is empty'],
    [['--goal-check', 'true'], '--goal-check: there is no goal'],
    [['--goal', 'x', '--goal-check', ''], '--goal-check is empty'],
    [['--goal', 'x', '--max-goal-turns', '0'], '--max-goal-turns: `0` is not a number from 1'],
    [['--goal', 'x', '--json-schema', '{}'], '--goal does not go with --json-schema'],
    [['-c'], 'no session'],
  ] as const) {
    const run = await agent(at, ['-p', ...args]);
    expect([args, run.code, run.stderr]).toEqual([args, args[0] === '-c' ? 7 : 2, expect.stringContaining(text)]);
  }
  await agent(at, ['-p', '-m', script(at, [{ text: 'x' }]), 'hi']);
  const nothing = await agent(at, ['-p', '-c', '-m', script(at, [{ text: 'x' }])]);
  expect([nothing.code, nothing.stderr]).toEqual([2, expect.stringContaining('there is no prompt')]);
});
