import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { agent, lines, place, repl, script } from './inside.js';
import type { Place } from '../e2e/program.js';

const key = `sk-${'test0'.repeat(6)}`;

interface Recorded {
  readonly at: Place;
  readonly id: string;
}

/** A session with text, calls that went well and badly, a denied one, and a key in an output. */
async function recorded(): Promise<Recorded> {
  const at = place({ 'src/a.ts': 'export const flamingo = 1;\n', 'key.txt': `token ${key}\n` });
  const model = script(at, [
    {
      text: 'I look for the flamingo.',
      calls: [
        { name: 'grep', arguments: { pattern: 'flamingo' } },
        { name: 'file_read', arguments: { path: 'key.txt' } },
      ],
    },
    {
      calls: [
        { name: 'file_write', arguments: { path: 'b.txt', content: 'one\ntwo\n' } },
        { name: 'bash', arguments: { command: 'exit 3' } },
        { name: 'nope', arguments: {} },
      ],
      usage: { input_tokens: 100, output_tokens: 20, cost_usd: 0.5 },
    },
    {
      calls: [
        { name: 'file_edit', arguments: { path: 'b.txt', old_string: 'two', new_string: 'three' } },
        { name: 'bash', arguments: { command: 'shutdown now' } },
      ],
    },
    { text: 'Done with the pelican.', usage: { input_tokens: 50, output_tokens: 10, cost_usd: 0.25 } },
  ]);
  await agent(at, ['-p', '--model', model, 'Where is the flamingo?']);
  const { stdout } = await agent(at, ['sessions', 'list', '--json']);
  return { at, id: (JSON.parse(stdout) as readonly { id: string }[])[0]!.id };
}

async function json(at: Place, args: readonly string[]): Promise<unknown> {
  const { stdout, stderr } = await agent(at, [...args, '--json']);
  try {
    return JSON.parse(stdout) as unknown;
  } catch {
    throw new Error(`${args.join(' ')}: ${stdout}${stderr}`);
  }
}

test('search, audit, statistics and SQL tell what was done', async () => {
  const { at, id } = await recorded();
  const hits = (await json(at, ['search', 'flamingo'])) as readonly Record<string, unknown>[];
  expect(hits.map((hit) => [hit['session_id'], hit['kind']])).toEqual([
    [id, 'tool_result'],
    [id, 'tool_call'],
    [id, 'assistant'],
    [id, 'user'],
  ]);
  expect(await json(at, ['sessions', 'search', '"the pelican"', '--limit', '1'])).toMatchObject([
    { seq: expect.any(Number), snippet: 'Done with the pelican.', cwd: at.work },
  ]);
  expect(await agent(at, ['search', 'flamingo', '--limit', '3'])).toMatchObject({
    code: 0,
    stderr: 'There are more than these 3: --limit 6 shows some of them.\n',
  });
  expect((await agent(at, ['search', 'flamingo', '--limit', '4'])).stderr).toBe('');
  const calls = (await json(at, ['audit'])) as readonly Record<string, unknown>[];
  expect(calls.map((call) => [call['tool'], call['status'], call['decision'], call['decided_by']])).toEqual([
    ['grep', 'ok', 'allow', 'policy'],
    ['file_read', 'ok', 'allow', 'policy'],
    ['file_write', 'ok', 'allow', 'policy'],
    ['bash', 'ok', 'allow', 'policy'],
    ['nope', 'unknown_tool', null, null],
    ['file_edit', 'ok', 'allow', 'policy'],
    ['bash', 'permission_denied', 'deny', 'headless'],
  ]);
  expect(calls[0]).toMatchObject({
    session_id: id,
    args_sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
    duration_ms: expect.any(Number),
  });
  expect(((await json(at, ['audit', '--errors'])) as unknown[]).length).toBe(2);
  expect(
    (
      (await json(at, [
        'audit',
        '--tool',
        'bash',
        '--status',
        'ok',
        '--since',
        '1h',
        '--session',
        id.slice(0, 30),
      ])) as unknown[]
    ).length,
  ).toBe(1);
  expect((await agent(at, ['audit', '--csv', '--limit', '2'])).stdout.split('\r\n')).toHaveLength(4);
  expect(await json(at, ['stats'])).toEqual(
    expect.arrayContaining([
      expect.objectContaining({
        table: 'tool',
        tool: 'bash',
        calls: 2,
        ok: 1,
        failed: 1,
        denied: 1,
        success_rate: 0.5,
      }),
      expect.objectContaining({ table: 'with_tools', turns: 1, cost_usd: 0.75 }),
      expect.objectContaining({ table: 'without_tools', turns: 0 }),
      { table: 'depth', p50: 3, p95: 3, most: 3 },
      expect.objectContaining({ table: 'project', cwd: at.work }),
    ]),
  );
  expect(
    await json(at, ['sql', "SELECT tool, count(*) AS n FROM v_tool_calls WHERE tool = 'bash' GROUP BY tool"]),
  ).toEqual([{ tool: 'bash', n: 2 }]);
  expect(await json(at, ['sql', 'SELECT tool_calls, failed_calls, requests, prompts FROM v_sessions'])).toEqual([
    { tool_calls: 7, failed_calls: 2, requests: 4, prompts: 1 },
  ]);
  expect(await json(at, ['sql', 'SELECT tool_calls FROM v_requests ORDER BY seq'])).toEqual(
    [2, 3, 2, 0].map((n) => ({ tool_calls: n })),
  );
  expect(await json(at, ['sql', "SELECT DISTINCT path FROM v_files WHERE tool LIKE 'file_%' ORDER BY path"])).toEqual([
    { path: join(at.work, 'b.txt') },
    { path: join(at.work, 'key.txt') },
  ]);
  for (const statement of [
    'DELETE FROM events',
    'WITH x AS (SELECT 1) DELETE FROM events',
    'PRAGMA user_version = 9',
    'SELECT 1; SELECT 2',
  ]) {
    expect([statement, (await agent(at, ['sql', statement])).code]).toEqual([statement, 2]);
  }
});

test('audit suggest-rules says what it proposes, on what ground, and changes nothing', async () => {
  const { at, id } = await recorded();
  expect(await json(at, ['audit', 'suggest-rules'])).toEqual([]);
  const file = join(at.home, '.agent/agent.db');
  const db = new Database(file);
  const add = db.prepare(
    'INSERT INTO events (session_id, seq, kind, content, data_json, created_at) VALUES (?, ?, ?, ?, ?, ?)',
  );
  for (let n = 0; n < 3; n++) {
    add.run(
      id,
      100 + n * 2,
      'tool_call',
      'bash(…)',
      JSON.stringify({
        id: `p${n}`,
        type: 'function',
        function: { name: 'bash', arguments: JSON.stringify({ command: `npm publish --tag t${n}` }) },
        response_id: 'r',
      }),
      1e12 + n,
    );
    add.run(
      id,
      101 + n * 2,
      'approval',
      'allowed',
      JSON.stringify({
        tool_call_id: `p${n}`,
        decision: 'allow',
        by: 'user',
        risk: 'dangerous',
        reasons: [],
        call_sha256: '',
      }),
      1e12 + n,
    );
  }
  db.close();
  const before = readFileSync(file);
  expect(await json(at, ['audit', 'suggest-rules'])).toMatchObject([
    {
      rule: { tool: 'bash', argv: ['npm', 'publish', '--tag'] },
      allowed: 3,
      sessions: 1,
      first_at: 1e12,
      last_at: 1e12 + 2,
      example: 'npm publish --tag t2',
    },
  ]);
  const told = await agent(at, ['audit', 'suggest-rules']);
  expect([told.code, told.stdout]).toEqual([
    0,
    expect.stringMatching(
      /Nothing was changed[^]*\{"tool":"bash","argv":\["npm","publish","--tag"\]\}\n +allowed 3 times in 1 session/,
    ),
  ]);
  expect(readFileSync(file).equals(before)).toBe(true);
  expect(
    await json(at, ['audit', 'suggest-rules', '--set', 'rules.allow=[{"tool":"bash","argv":["npm","publish"]}]']),
  ).toEqual([]);
});

test('audit verify names the first break and says what it cannot do', async () => {
  const { at, id } = await recorded();
  const whole = await agent(at, ['audit', 'verify']);
  expect([whole.code, whole.stdout]).toEqual([0, expect.stringContaining('every chain is whole')]);
  const db = new Database(join(at.home, '.agent/agent.db'));
  db.prepare("UPDATE events SET content = 'nothing happened' WHERE session_id = ? AND seq = 6").run(id);
  db.close();
  const broken = await agent(at, ['audit', 'verify']);
  expect([broken.code, broken.stdout]).toEqual([
    1,
    expect.stringMatching(
      new RegExp(`Session ${id}: event 6 .* was changed after it was written.[^]*does not prevent`),
    ),
  ]);
  expect(await json(at, ['audit', 'verify', id])).toMatchObject({
    ok: false,
    breaks: [{ session_id: id, seq: 6, kind: 'content' }],
  });
});

test('a session exported and imported into an empty store sends the next request byte for byte the same', async () => {
  const { at, id } = await recorded();
  const file = join(at.home, 's.jsonl');
  expect((await agent(at, ['sessions', 'export', id, '--no-redact', '-o', file])).code).toBe(0);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  const other = place();
  expect((await agent(other, ['sessions', 'import', file])).stdout).toBe(`${id}\n`);
  for (const wire of ['openai-chat', 'openai-responses', 'anthropic-messages']) {
    const [one, two] = await Promise.all(
      [at, other].map((where) => agent(where, ['sessions', 'show', id, '--as', wire, '--prompt', 'and now?'])),
    );
    expect([one?.code, two?.stdout]).toEqual([0, one?.stdout]);
  }
  expect((await agent(other, ['sessions', 'export', id, '--no-redact', '--format', 'jsonl'])).stdout).toBe(
    readFileSync(file, 'utf8'),
  );
  expect((await agent(other, ['sessions', 'import', file])).code).toBe(7);
  expect((await agent(other, ['sessions', 'import', file, '--as-new'])).code).toBe(0);
  writeFileSync(file, 'nonsense');
  expect(await agent(other, ['sessions', 'import', file])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('line 1 is not a JSON object'),
  });
});

test('a session whose id is none is not imported under it', async () => {
  const { at, id } = await recorded();
  const file = join(at.home, 's.jsonl');
  await agent(at, ['sessions', 'export', id, '-o', file]);
  const named = (other: string): void => {
    writeFileSync(file, readFileSync(file, 'utf8').replace(/"id":"[^"]*"/, `"id":"${other}"`));
  };
  for (const other of ['x', '..', 'list', '01m8', '--json', '0198c0de-0000-4000-8000-000000000000']) {
    named(other);
    expect(await agent(at, ['sessions', 'import', file])).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringMatching(/is not a session id.*\n--as-new|must be a word/) as string,
    });
  }
  expect(((await json(at, ['sessions', 'list'])) as unknown[]).length).toBe(1);
  expect((await agent(at, ['sessions', 'import', file, '--as-new'])).code).toBe(0);
  named('0198c0de-0000-7000-8000-000000000000');
  expect((await agent(at, ['sessions', 'import', file])).code).toBe(0);
});

test('sessions are listed by pages and all of them as JSON, and those that look the same are told apart', async () => {
  const { at } = await recorded();
  const db = new Database(join(at.home, '.agent/agent.db'));
  const add = db.prepare("INSERT INTO sessions (id, cwd, title, created_at, updated_at) VALUES (?, '/p', ?, ?, ?)");
  for (let n = 0; n < 70; n++)
    add.run(`01M8${String(n).padStart(22, '0')}`, n < 2 ? 'the same' : `title ${n}`, n * 1000, n);
  db.close();
  const count = (text: string): number => text.split('\n').length - 1;
  const first = await agent(at, ['sessions', 'list']);
  expect([count(first.stdout), first.stderr]).toEqual([
    50,
    '21 more of 71 sessions: --page 2 shows more, --limit 71 all.\n',
  ]);
  const second = await agent(at, ['sessions', 'list', '--page', '2']);
  expect([count(second.stdout), second.stderr]).toEqual([21, '']);
  expect(
    new Set(
      `${first.stdout}${second.stdout}`
        .trim()
        .split('\n')
        .map((line) => line.split(' ')[0]),
    ).size,
  ).toBe(71);
  expect(second.stdout.match(/the same · started \S+ \S+/g)?.length).toBe(2);
  expect(new Set(second.stdout.match(/the same · started \S+ \S+/g)).size).toBe(2);
  expect((await agent(at, ['sessions', 'list', '--page', '9'])).stderr).toContain('page 9 is past the last one');
  const all = await agent(at, ['sessions', 'list', '--json']);
  expect([(JSON.parse(all.stdout) as unknown[]).length, all.stderr]).toEqual([71, '']);
  const some = await agent(at, ['sessions', 'list', '--json', '--limit', '5']);
  expect([(JSON.parse(some.stdout) as unknown[]).length, some.stderr.slice(0, 7)]).toEqual([5, '66 more']);
  expect((await agent(at, ['sessions', 'show', '01M8'])).stderr).toContain('at least 20 sessions match');
});

test('exports mask keys unless told not to, in every format, wherever they stand; values of variables that are named like secrets too', async () => {
  const tokens = [
    `ghp_${'aB3'.repeat(12)}`,
    `AKIA${'A1B2'.repeat(4)}`,
    `sk-${'a1'.repeat(16)}`,
    `xoxb-${'123-abc'.repeat(3)}`,
    `glpat-${'x1-Y'.repeat(5)}`,
    `sk_live_${'a1B2'.repeat(5)}`,
    `npm_${'a'.repeat(36)}`,
  ];
  const value = 'eR7-value-of-a-variable';
  const at = place({
    'key.txt': `x\n${tokens.join('\n')}\n${JSON.stringify({ text: `a\n${tokens.join('"')}` })}\n${value}\n`,
  });
  const model = script(at, [
    { calls: [{ name: 'file_read', arguments: { path: 'key.txt' } }] },
    { calls: [{ name: 'bash', arguments: { command: `printf 'x\n%s' ${tokens[0]}` } }] },
    { text: 'Done.' },
  ]);
  await agent(at, ['-p', '--model', model, '--set', 'secrets.mask=false', '--approval', 'never', 'read it']);
  const [row] = (await json(at, ['sessions', 'list'])) as readonly { readonly id: string }[];
  const id = row?.id ?? '';
  Object.assign(at.env, { AGENT_SECRETS_MASK: 'false', DEPLOY_SECRET: value });
  for (const format of ['md', 'jsonl', 'html']) {
    const { stdout } = await agent(at, ['sessions', 'export', id, '--format', format]);
    expect([
      format,
      [...tokens, value].filter((token) => stdout.includes(token)),
      stdout.includes('[redacted]'),
    ]).toEqual([format, [], true]);
  }
  const { stdout: whole } = await agent(at, ['sessions', 'export', id, '--format', 'md', '--no-redact']);
  expect([...tokens, value].filter((token) => !whole.includes(token))).toEqual([]);
  Object.assign(at.env, { AGENT_SECRETS_MASK: 'true' });
  const { stdout: read } = await agent(at, ['sessions', 'show', id, '--as', 'openai-chat']);
  expect([...tokens, value].filter((token) => read.includes(token))).toEqual([]);
  expect(read).toContain('«secret:github_token#1»');
});

test('replay shows it again without a model, --verify finds drift in a copy, and the script plays it once more', async () => {
  const { at, id } = await recorded();
  const before = readFileSync(join(at.work, 'b.txt'), 'utf8');
  const shown = await agent(at, ['replay', id]);
  expect(shown.stdout).toMatch(
    /❯ Where is the flamingo\?[^]*I look for the flamingo\.[^]*✔ grep "[^]*✘ bash [^]*Done with the pelican\./,
  );
  const outcomes = async (): Promise<unknown> =>
    ((await json(at, ['replay', id, '--verify'])) as readonly Record<string, unknown>[]).map((call) => call['outcome']);
  expect(await outcomes()).toEqual(['same', 'same', 'same', 'skipped', 'skipped', 'same']);
  at.file('src/a.ts', 'export const flamingo = 2;\n');
  expect(await outcomes()).toEqual(['differs', 'same', 'same', 'skipped', 'skipped', 'same']);
  expect(readFileSync(join(at.work, 'b.txt'), 'utf8')).toBe(before);
  const other = place({ 'src/a.ts': 'export const flamingo = 1;\n', 'key.txt': 'token\n' });
  writeFileSync(
    join(other.home, 'script.json'),
    (await agent(at, ['sessions', 'export', id, '--format', 'script'])).stdout,
  );
  const again = await agent(other, [
    '-p',
    '--model',
    `offline/${join(other.home, 'script.json')}`,
    '--output-format',
    'stream-json',
    'again',
  ]);
  expect(
    lines(again.stdout)
      .filter((line) => line['type'] === 'tool_call')
      .map((line) => line['name']),
  ).toEqual(['grep', 'file_read', 'file_write', 'bash', 'nope', 'file_edit', 'bash']);
  expect(readFileSync(join(other.work, 'b.txt'), 'utf8')).toBe('one\nthree\n');
});

test('prune lists first, deletes with --yes, and gives the room back', async () => {
  const { at, id } = await recorded();
  const file = join(at.home, '.agent/agent.db');
  const db = new Database(file);
  db.prepare('UPDATE sessions SET updated_at = updated_at - 40 * 86400000').run();
  db.close();
  await agent(at, ['-p', '-m', 'offline', 'hello']);
  expect((await agent(at, ['sessions', 'prune'])).code).toBe(2);
  const listed = await agent(at, ['sessions', 'prune', '--older-than', '30d']);
  expect(listed.stdout).toMatch(new RegExp(`${id}[^]*1 session. Nothing was deleted`));
  expect(((await json(at, ['sessions', 'list'])) as unknown[]).length).toBe(2);
  expect((await agent(at, ['sessions', 'prune', '--older-than', '30d', '--yes'])).stdout).toContain(
    'Removed 1 session.',
  );
  expect(((await json(at, ['sessions', 'list'])) as readonly { id: string }[]).map((row) => row.id)).not.toContain(id);
  copyFileSync(file, `${file}.copy`);
  expect(readFileSync(`${file}.copy`).includes('flamingo')).toBe(false);
  expect(await json(at, ['search', 'flamingo'])).toEqual([]);
});

test('the sessions of a moved directory go on under its new name, and tools run there', async () => {
  const { at, id } = await recorded();
  const work = `${at.work}-renamed`;
  renameSync(at.work, work);
  const moved = { ...at, work };
  const model = script(
    at,
    [{ calls: [{ name: 'file_write', arguments: { path: 'new.txt', content: 'here' } }] }, { text: 'Moved.' }],
    { loop: true },
  );
  const again = await agent(moved, ['-c', '-p', '--model', model, 'go on']);
  expect([again.code, again.stdout, again.stderr]).toEqual([
    0,
    'Moved.\n',
    expect.stringContaining(`This directory was ${at.work} before it was moved. Session ${id} continues in ${work}.`),
  ]);
  expect(readFileSync(join(work, 'new.txt'), 'utf8')).toBe('here');
  expect(existsSync(at.work)).toBe(false);
  expect(await json(moved, ['sessions', 'list', '--here'])).toMatchObject([{ id, cwd: work }]);
  expect((await agent(moved, ['-c', '-p', '--model', model, 'and on'])).stderr).toBe('');
  mkdirSync(at.work);
  expect(await agent(at, ['-c', '-p', '--model', model, 'go on'])).toMatchObject({
    code: 7,
    stderr: expect.stringContaining('has no session to continue'),
  });
});

test('events and sessions that vanish with a cut log are reported once, those that were deleted on purpose are not', async () => {
  const { at, id } = await recorded();
  const file = join(at.home, '.agent/agent.db');
  const model = script(at, [{ text: 'Here I am.' }], { loop: true });
  const resume = async (...args: readonly string[]): Promise<readonly unknown[]> => {
    const { code, stderr } = await agent(at, [...args, '-p', '--model', model, 'go on']);
    return [code, stderr];
  };
  copyFileSync(file, `${file}.before`);
  expect(await resume('-c')).toEqual([0, '']);
  copyFileSync(file, `${file}.later`);
  expect(statSync(`${file}.marks`).mode & 0o777).toBe(0o600);
  copyFileSync(`${file}.before`, file);
  const db = new Database(file);
  const last = db.prepare<[string], number>('SELECT max(seq) FROM events WHERE session_id = ?').pluck().get(id) ?? 0;
  db.close();
  const [code, stderr] = await resume('-c');
  expect([code, stderr]).toEqual([
    0,
    expect.stringMatching(
      new RegExp(`The last [2-9] events of session ${id} are gone: .*The session continues after event ${last}\\.`),
    ),
  ]);
  expect(await resume('-c')).toEqual([0, '']);
  await agent(at, ['-p', '--model', model, 'another one']);
  const [other] = (await json(at, ['sessions', 'list'])) as readonly { id: string }[];
  copyFileSync(`${file}.later`, file);
  expect((await resume('-c'))[1]).toMatch(
    new RegExp(`Session ${other?.id ?? ''} of this directory, with \\d+ events, is gone`),
  );
  rmSync(file);
  expect(await resume('-r', id.slice(0, 20))).toEqual([
    7,
    expect.stringMatching(new RegExp(`there is no session[^]*Session ${id} was recorded with \\d+ events and is gone`)),
  ]);
  copyFileSync(`${file}.later`, file);
  expect(await agent(at, ['sessions', 'rm', id, id])).toMatchObject({ code: 0, stderr: '' });
  expect((await resume('-r', id))[1]).not.toContain('is gone');
});

test('a session that lost an event goes on behind the gap, and one that was changed says so', async () => {
  const { at, id } = await recorded();
  const db = new Database(join(at.home, '.agent/agent.db'));
  db.prepare('DELETE FROM events WHERE session_id = ? AND seq = 5').run(id);
  db.prepare("UPDATE events SET content = 'other' WHERE session_id = ? AND seq = 3").run(id);
  const missing = db.prepare<[string], number>('SELECT max(seq) - count(*) FROM events WHERE session_id = ?').pluck();
  const again = await agent(at, ['-c', '-p', '--model', script(at, [{ text: 'Here I am.' }], { loop: true }), 'go on']);
  expect([again.code, again.stdout, again.stderr]).toEqual([
    0,
    'Here I am.\n',
    expect.stringContaining(`Event 3 of session ${id} is not as written`),
  ]);
  expect([missing.get(id), await json(at, ['sessions', 'list'])]).toMatchObject([1, [{ id }]]);
  db.close();
});

test('a search filter with an unknown value or none ends with exit code 2 and names what there is', async () => {
  const { at, id } = await recorded();
  for (const [filter, says] of [
    ['from:nobody', /from:nobody: there are agent, claude-code, codex/],
    ['after:', /after: has no value\. For example after:2026-01-01/],
    ['kind:', /kind: has no value\. There are user, answer/],
    ['session:zzzz', /session:zzzz: no session has this id or title.*agent sessions list/],
    ['tool:bsh', /tool:bsh: no tool .* Did you mean bash\?.* Built in are .*file_read/],
    ['tool:zz*', /tool:zz\*: no tool .* Built in are /],
    ['project:there', /project:there: there are here and all/],
  ] as const) {
    for (const words of [[filter], ['flamingo', filter], [filter, '--json']]) {
      const { code, stdout, stderr } = await agent(at, ['search', ...words]);
      expect([words, code, stdout, stderr]).toEqual([words, 2, '', expect.stringMatching(says)]);
    }
  }
  for (const filter of [`session:${id.slice(0, 8)}`, 'tool:glob', 'tool:nope', 'from:agent', 'file:none.ts'])
    expect([filter, (await agent(at, ['search', 'flamingo', filter])).code]).toEqual([filter, 0]);
  await repl(
    at,
    ['-c'],
    [
      ['/search session:zzzz', 'no session has this id or title'],
      ['/search from:nobody', 'there are agent, claude-code'],
      ['/search x before:', 'before: has no value'],
    ],
  );
});
