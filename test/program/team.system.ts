import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test as anyTest } from 'vitest';
import type { Event } from '../../src/kernel/core/event.js';
import type { Team } from '../../src/features/team-store/team.js';
import { event, sessionRow } from '../kernel/store/samples.js';
import { share } from '../features/team-store/samples-team.js';
import { openAs, serverOfFile } from '../features/team-store/server.js';
import { agent, lines, place, repl, script } from './inside.js';

const { installed, server } = serverOfFile(7);
const test = installed ? anyTest : anyTest.skip;

const call = (seq: number, command: string) =>
  event(seq, {
    kind: 'tool_call',
    content: `bash(${command})`,
    data: {
      id: `c${seq}`,
      type: 'function',
      response_id: 'r',
      function: { name: 'bash', arguments: JSON.stringify({ command }) },
    },
  });
const result = (seq: number, ok: boolean) =>
  event(seq, {
    kind: 'tool_result',
    content: 'done',
    data: {
      tool_call_id: `c${seq - 1}`,
      name: 'bash',
      success: ok,
      duration_ms: 12,
      output: JSON.stringify(ok ? { output: 'fine' } : { error: 'late', code: 'timeout' }),
    },
  });
const spent = (seq: number, model: string, costUsd: number | null) =>
  event(seq, {
    kind: 'usage',
    content: null,
    data: {
      provider: 'openai',
      model,
      response_id: `r${seq}`,
      input_tokens: 100,
      output_tokens: 10,
      cost_usd: costUsd,
    },
  });

describe('the record of a team', () => {
  let database = '';
  /** The session of alice that her crew may read. */
  let shared = '';
  /** The one that is hers alone. */
  let hidden = '';
  const run = async (role: string, ...args: readonly string[]) =>
    await agent(place(), args, { env: { AGENT_STORE_URL: server().url(database, role) } });
  const tomorrow = (): string => new Date(Date.now() + 86_400_000).toISOString().slice(0, 10);
  const rows = async (...args: readonly string[]): Promise<readonly Record<string, unknown>[]> =>
    JSON.parse((await run('bob', ...args, '--json')).stdout) as readonly Record<string, unknown>[];

  beforeAll(async () => {
    if (!installed) return;
    database = await server().database();
    const [alice, bob] = [openAs(server(), database, 'alice'), openAs(server(), database, 'bob')] as [Team, Team];
    const begun = Date.now() - 60_000;
    const tell = async (
      team: Team,
      minute: number,
      cwd: string,
      title: string,
      events: readonly Event[],
      with_?: string,
    ) => {
      const createdAt = begun + minute * 1000;
      const told = events.map((one) => ({ ...one, createdAt: createdAt + one.seq }));
      const row = sessionRow({ cwd, title, createdAt });
      await share(team, row, told, { team: with_ ?? null });
      return row.id;
    };
    shared = await tell(
      alice,
      1,
      '/work/docks',
      'About docks',
      [event(1, { content: 'where are the docks' }), call(2, 'ls docks'), result(3, true), spent(4, 'gpt-5.2', 0.25)],
      'crew',
    );
    const secret = [event(1, { content: 'docks that nobody knows' }), spent(2, 'gpt-5.2', 9)];
    hidden = await tell(alice, 2, '/work/docks', 'Secret docks', secret);
    await tell(bob, 3, '/work/cranes', 'Cranes', [
      event(1, { content: 'cranes at the docks' }),
      call(2, 'lift'),
      result(3, false),
      spent(4, 'small', 0.5),
      spent(5, 'own', null),
    ]);
    await alice.close();
    await bob.close();
  });

  test('is listed, searched, audited and summed up as far as a person may read it', async () => {
    const seen = {
      owner: 'alice',
      title: 'About docks',
      team: 'crew',
      machine: 'laptop',
      prompt: 'where are the docks',
    };
    expect(await rows('sessions', 'list', '--team')).toMatchObject([
      { owner: 'bob', cost_usd: 0.5 },
      { ...seen, cost_usd: 0.25 },
    ]);
    expect(await rows('sessions', 'list', '--person', 'alice')).toMatchObject([seen]);
    expect(
      (await rows('search', 'docks', '--team')).map(({ owner, kind }) => `${String(owner)} ${String(kind)}`),
    ).toEqual(['bob user', 'alice tool_call', 'alice user']);
    const filtered = await rows('search', 'tool:bash', 'kind:call', `before:${tomorrow()}`, '--team');
    expect(filtered.map(({ owner, seq }) => `${String(owner)} ${String(seq)}`)).toEqual(['bob 2', 'alice 2']);
    expect(await rows('search', 'docks', 'from:codex', '--team')).toEqual([]);
    expect(await rows('search', 'docks', 'after:2020-01-01', 'session:about', '--person', 'alice')).toHaveLength(2);
    expect(await rows('audit', '--team')).toMatchObject([
      { owner: 'alice', status: 'ok' },
      { owner: 'bob', tool: 'bash', status: 'timeout', duration_ms: 12, summary: 'bash(lift)' },
    ]);
    expect(await rows('audit', '--team', '--errors')).toMatchObject([{ owner: 'bob' }]);
    expect(await rows('audit', '--team', '--tool', 'grep')).toEqual([]);
    for (const name of [shared, shared.slice(0, -2).toLowerCase()])
      expect(await rows('audit', '--team', '--session', name)).toMatchObject([{ owner: 'alice', session_id: shared }]);
    const csv = (await run('bob', 'audit', '--team', '--csv', '--session', shared)).stdout;
    expect(csv.split('\r\n')).toEqual([
      'created_at,owner,session_id,seq,cwd,tool,duration_ms,status,summary',
      expect.stringMatching(new RegExp(`^\\d+,alice,${shared},2,/work/docks,bash,12,ok,bash\\(ls docks\\)$`)),
      '',
    ]);
    const counted = { requests: 1, input_tokens: 100, output_tokens: 10, unpriced: 0 };
    expect(await rows('stats', '--team')).toEqual([
      { ...counted, person: 'bob', requests: 2, input_tokens: 200, output_tokens: 20, cost_usd: 0.5, unpriced: 1 },
      { ...counted, person: 'alice', cost_usd: 0.25 },
    ]);
    expect((await rows('stats', '--by', 'model')).map(({ model, cost_usd: cost }) => [model, cost])).toEqual([
      ['openai/small', 0.5],
      ['openai/gpt-5.2', 0.25],
      ['openai/own', 0],
    ]);
    expect((await rows('stats', '--by', 'project')).map(({ project }) => project)).toEqual([
      '/work/cranes',
      '/work/docks',
    ]);
    expect(await rows('stats', '--by', 'day')).toMatchObject([{ requests: 3 }]);
  });

  test('is shown in lines that name the person', async () => {
    const { stdout } = await run('bob', 'search', 'docks', '--person', 'alice');
    expect(stdout).toMatch(
      new RegExp(String.raw`^${shared} {2}#2 {2}tool_call {2}\dm ago {2}alice {2}\/work\/docks {2}About docks\n`),
    );
    expect((await run('bob', 'stats', '--team')).stdout).toMatch(
      /^person +requests +input +output +cost\nbob +2 +200 +20 +\$0\.5000 \(\+1 unpriced\)\n/,
    );
    expect((await run('bob', 'sessions', 'list', '--team')).stdout).toMatch(
      new RegExp(`${shared} +alice +\\dm +4 events`),
    );
    expect((await run('bob', 'stats', '--by', 'moon')).stderr).toBe(
      'agent: --by moon is not a listing\nChoose one of person, project, model, day.\n',
    );
  });

  test('refuses options that mean nothing there', async () => {
    const refused = [
      [['audit', '--team', '--csv', '--json'], 2, '--json and --csv cannot both be'],
      [['audit', '--team', '--session', '7ZZZZ'], 7, 'there is no session `7ZZZZ` on the server'],
      [['audit', '--team', '--session', shared.slice(0, 4)], 7, `several sessions on the server begin with`],
      [['sessions', 'list', '--team', '--page', '2'], 2, '--page does not work with --team'],
      [['sessions', 'list', '--team', '--all'], 2, '--all does not work with --team'],
    ] as const;
    for (const [args, code, problem] of refused) {
      const ended = await run('bob', ...args);
      expect([ended.code, ended.stderr], args.join(' ')).toEqual([code, expect.stringContaining(problem)]);
    }
  });

  test('is watched by the start of an id', async () => {
    const env = { AGENT_STORE_URL: server().url(database, 'bob') };
    let seen = '';
    const onStdout = (text: string): void => {
      if (!text.includes('done')) return;
      if (seen === '') setImmediate(() => process.emit('SIGINT', 'SIGINT'));
      seen = text;
    };
    const start = shared.slice(0, -2).toLowerCase();
    expect((await agent(place(), ['watch', start], { env, onStdout })).code).toBe(130);
    expect(seen).toContain(`Session ${shared}, About docks, in /work/docks.`);
    seen = '';
    // What was pulled of it does not go on: it is followed where it does.
    const at = place();
    await agent(at, ['db', 'pull', '--session', shared], { env });
    await agent(at, ['sessions', 'rename', shared, 'A copy'], { env });
    expect((await agent(at, ['watch', start], { env, onStdout })).code).toBe(130);
    expect(seen).toContain(`Session ${shared}, About docks, in /work/docks.`);
    // So is a session of one's own that another machine writes.
    seen = '';
    const [mine, own] = [place(), { AGENT_STORE_URL: server().url(database, 'alice') }];
    await agent(mine, ['db', 'pull', '--session', shared], { env: own });
    await agent(mine, ['sessions', 'rename', shared, 'A copy'], { env: own });
    expect((await agent(mine, ['watch', start], { env: own, onStdout })).code).toBe(130);
    expect(seen).toContain(`Session ${shared}, About docks, in /work/docks.`);
    const several = await run('bob', 'watch', shared.slice(0, 4));
    expect([several.code, several.stderr]).toEqual([
      7,
      expect.stringContaining('several sessions on the server begin'),
    ]);
    expect((await run('bob', 'watch', '7ZZZZ')).code).toBe(7);
  });

  test('has its chains looked at: the owner of the tables sees every one, a person those they may read', async () => {
    const heads = async (role: string): Promise<readonly unknown[]> => {
      const env = { AGENT_STORE_URL: server().url(database, role), AGENT_STORE_MODE: 'remote' };
      const report = JSON.parse((await agent(place(), ['audit', 'verify', '--json'], { env })).stdout) as object;
      expect(report).toMatchObject({ ok: true });
      return (report as { readonly heads: readonly { readonly session_id: unknown }[] }).heads.map(
        ({ session_id: id }) => id,
      );
    };
    expect(await heads('postgres')).toEqual(expect.arrayContaining([shared, hidden]));
    expect(await heads('bob')).toContain(shared);
    expect(await heads('bob')).not.toContain(hidden);
  });

  test('answers questions in SQL, and changes nothing', async () => {
    expect(await rows('sql', '--team', 'SELECT owner, tool, status FROM v_tool_calls ORDER BY owner')).toEqual([
      { owner: 'alice', tool: 'bash', status: 'ok' },
      { owner: 'bob', tool: 'bash', status: 'timeout' },
    ]);
    expect(await rows('sql', '--team', "SELECT title FROM sessions WHERE title LIKE '%docks%'")).toEqual([
      { title: 'About docks' },
    ]);
    for (const question of [
      "UPDATE sessions SET title = 'x'",
      `SELECT agent.remove('${shared}')`,
      'WITH gone AS (DELETE FROM queue RETURNING 1) SELECT * FROM gone',
      "SELECT set_config('transaction_read_only', 'off', true), agent.make_partitions(); SELECT 1",
      "SELECT pg_read_file('/etc/passwd')",
    ])
      expect((await run('alice', 'sql', '--team', question)).code, question).toBe(2);
    expect((await rows('sessions', 'list', '--person', 'alice')).length).toBe(1);
  });

  test('is searched from the REPL behind what is here, and goes on there in a copy', async () => {
    const at = place();
    const env = { ...at.env, AGENT_STORE_URL: server().url(database, 'bob') };
    const model = script(at, [{ text: 'Docks are here, too.' }]);
    await agent(at, ['-p', '-m', model, 'the docks of this machine']);
    const { stdout } = await repl(
      { ...at, env },
      ['-m', model],
      [
        [
          '/search docks',
          /1\. Docks are here, too\. {2}yours · [^]*is asked …[^]*bob · [^]*alice · [^]* more from the team/,
        ],
        ['5', 'is a copy of it.'],
      ],
    );
    expect(stdout).toMatch(/5\. where are the docks {2}alice · \d+m ago · user · [^]*About docks/);
    expect(stdout).toContain(`Session ${shared} is one of alice; this session continues from a copy of it.`);
    expect(stdout).not.toContain('nobody knows');
    const found = JSON.parse((await agent(at, ['search', 'docks', '--json'])).stdout) as readonly { owner?: string }[];
    expect(new Set(found.map(({ owner }) => owner))).toEqual(new Set([undefined, 'alice']));
  });

  test('is searched with filters, and a server that is gone holds nothing up', async () => {
    const at = place();
    const model = script(at, [{ text: 'Docks.' }]);
    await agent(at, ['-p', '-m', model, 'docks']);
    const search = async (url: string, line: string, shows: RegExp, then = 'Docks.'): Promise<unknown> =>
      await repl(
        { ...at, env: { ...at.env, AGENT_STORE_URL: url } },
        ['-m', model],
        [
          [line, shows],
          ['1', then],
        ],
      );
    const gone = /1\. Docks\. {2}yours [^]*The team was not asked: [^\n]*127\.0\.0\.1:1\/[^\n]*\.\n/;
    await search('postgresql://bob@127.0.0.1:1/agent?connect_timeout=2', '/search docks', gone);
    const url = server().url(database, 'bob');
    await search(url, '/search docks kind:user', / more from the team, in sessions started since \d{4}-\d\d-\d\d\./);
    const calls = /1\. [^\n]* {2}bob · [^\n]* · tool_call · [^]*\d\. [^\n]* {2}alice · /;
    await search(url, '/search tool:bash kind:call', calls, 'bash lift');
  });

  test('gives a session to those who may read it: it goes on in a copy of their own', async () => {
    const at = place();
    const env = { AGENT_STORE_URL: server().url(database, 'bob'), AGENT_STORE_TEAM: 'crew' };
    const model = script(at, [{ text: 'Asked before.' }, { text: 'At the harbour.' }]);
    const turn = async (...args: readonly string[]) =>
      await agent(at, ['-p', '-m', model, '--output-format', 'stream-json', ...args, 'and now?'], { env });
    const first = await turn('-r', shared);
    expect([first.code, first.stderr]).toEqual([0, '']);
    const said = lines(first.stdout);
    expect(said.find(({ type }) => type === 'notice')?.message).toBe(
      `Session ${shared} is one of alice; this session continues from a copy of it.`,
    );
    const id = String(said[0]?.session_id);
    expect(id).not.toBe(shared);
    expect((await rows('sessions', 'list', '--person', 'bob'))[0]).toMatchObject({
      id,
      parent_id: shared,
      owner: 'bob',
      team: 'crew',
    });
    const alice = openAs(server(), database, 'alice');
    expect((await alice.log.events(shared, 0, 99)).length).toBe(4);
    const pushed = await alice.log.events(id, 0, 99);
    expect(pushed.map(({ kind, content }) => [kind, content])).toContainEqual(['assistant', 'At the harbour.']);
    expect(lines((await turn('-r', shared)).stdout)[0]?.session_id).not.toBe(shared);
    expect((await turn('-r', hidden)).code).toBe(7);
    const { code, stdout } = await turn('-r', shared.slice(0, -1).toLowerCase());
    expect([code, stdout]).toEqual([0, expect.stringContaining(`Session ${shared} is one of alice`)]);
    expect(lines((await turn('-r', shared, '--fork')).stdout)[0]?.session_id).not.toBe(shared);
    await alice.close();
  });

  test("gives a session of one's own to another machine, and a copy while it is written elsewhere", async () => {
    const at = place();
    const env = { AGENT_STORE_URL: server().url(database, 'alice') };
    const model = script(at, [{ text: 'Here.' }]);
    const turn = async () =>
      await agent(at, ['-p', '-m', model, '--output-format', 'stream-json', '-r', hidden, 'go'], { env });
    const alice = openAs(server(), database, 'alice');
    const lease = await alice.leases.acquire(hidden);
    const copied = lines((await turn()).stdout);
    expect(copied[0]?.session_id).not.toBe(hidden);
    expect(JSON.stringify(copied)).toContain(`Session ${hidden} is written on `);
    if (lease.held) await alice.leases.release(hidden, lease.token);
    await agent(at, ['sessions', 'rm', hidden]);
    await alice.close();
  });

  test('has its tables made and its facts told on the command line', async () => {
    const before = database;
    database = await server().emptyDatabase();
    expect(await run('alice', 'db', 'status')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('agent db init') as string,
    });
    expect(await run('alice', 'db', 'init')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('Your role lacks the permission') as string,
    });
    expect(await run('postgres', 'db', 'init')).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('Created the tables') as string,
    });
    expect((await run('postgres', 'db', 'init')).stdout).toContain('up to date');
    expect((await run('alice', 'db', 'status')).stdout).toMatch(
      /you +alice\nmay read +your own sessions and those of crew\n/,
    );
    database = before;
  });

  test('is not to be had from a project, and without an address the setting is named', async () => {
    const at = place();
    mkdirSync(join(at.work, '.agent'), { recursive: true });
    writeFileSync(
      join(at.work, '.agent', 'config.json'),
      JSON.stringify({ store: { url: server().url(database, 'alice') } }),
    );
    const { code, stderr } = await agent(at, ['db', 'status']);
    expect([code, stderr]).toEqual([2, expect.stringContaining('store.url is not set')]);
    expect((await agent(at, ['config', 'check'])).stdout + stderr).toContain('store.url');
  });
});
