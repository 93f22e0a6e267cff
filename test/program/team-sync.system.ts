import { PassThrough } from 'node:stream';
import { Client } from 'pg';
import { expect, test as anyTest } from 'vitest';
import { openLink } from '../features/team-store/link.js';
import { serverOfFile } from '../features/team-store/server.js';
import { agent, lines, place, script } from './inside.js';

const { installed, server } = serverOfFile(3);
const test = installed ? anyTest : anyTest.skip;

type Place = ReturnType<typeof place>;
type Line = Readonly<Record<string, unknown>>;

async function json(at: Place, env: Readonly<Record<string, string>>, ...args: readonly string[]): Promise<Line[]> {
  const { stdout, stderr, code } = await agent(at, [...args, '--json'], { env });
  expect([code, stderr]).toEqual([0, '']);
  return JSON.parse(stdout) as Line[];
}

/** The last link of each session, here and at the server. */
async function heads(at: Place, database: string): Promise<readonly [here: unknown, there: unknown]> {
  const { stdout } = await agent(at, ['audit', 'verify', '--json']);
  const verified = JSON.parse(stdout) as { heads: { session_id: string; seq: number; hash: string }[] };
  const there = await server().sql(
    database,
    `SELECT s.id AS session_id, s.last_seq::int AS seq, encode(s.head, 'hex') AS hash FROM agent.sessions s
     WHERE last_seq = (SELECT count(*) FROM agent.events e WHERE e.session_id = s.id) ORDER BY s.id`,
  );
  return [verified.heads, there];
}

test('a session of two machines that were offline becomes two, with all events, at the end of an exchange', async () => {
  const database = await server().database();
  const online = { AGENT_STORE_URL: server().url(database, 'alice') };
  const [one, other] = [place(), place()];
  const first = await agent(one, ['-p', 'begin', '-m', script(one, [{ text: 'begun' }])], { env: online });
  expect(first).toMatchObject({ code: 0, stderr: '' });
  await json(other, online, 'db', 'pull');
  const [session] = await json(other, {}, 'sessions', 'list');
  const id = String(session?.['id']);
  for (const [at, said] of [
    [one, 'from one'],
    [other, 'from the other'],
  ] as const) {
    const model = script(at, [{ text: 'begun' }, { text: `heard ${said}` }]);
    expect((await agent(at, ['-p', said, '-r', id, '-m', model])).stdout).toBe(`heard ${said}\n`);
  }
  await json(one, online, 'db', 'sync');
  const exchanged = await json(other, online, 'db', 'sync');
  expect(exchanged.map(({ kind }) => kind)).toEqual(['branched', 'pushed']);
  await json(one, online, 'db', 'sync');
  for (const at of [one, other]) {
    const sessions = await json(at, {}, 'sessions', 'list');
    expect(sessions.map((row) => row['parent_id'])).toEqual(expect.arrayContaining([id, null]));
    const texts = await Promise.all(
      sessions.map(async (row) => (await json(at, {}, 'sessions', 'show', String(row['id']))).map((e) => e['content'])),
    );
    expect(texts.filter((all) => all.includes('heard from one'))).toHaveLength(1);
    expect(texts.filter((all) => all.includes('heard from the other'))).toHaveLength(1);
    expect(texts.every((all) => all.includes('begun'))).toBe(true);
    const [here, there] = await heads(at, database);
    expect(here).toEqual(there);
  }
});

test('a server that goes in mid-turn is told of once; the turn is as without it, and the rest goes along later', async () => {
  const database = await server().database();
  const link = await openLink(server());
  const env = { AGENT_STORE_URL: link.url(database, 'alice') };
  const at = place();
  const arrived = new Client({ connectionString: server().url(database) });
  await arrived.connect();
  await arrived.query('LISTEN agent_events');
  const pushed = new Promise((resolve) => arrived.once('notification', resolve));
  const turns = [
    { text: 'one' },
    { text: 'now two', calls: [{ name: 'bash', arguments: { command: 'echo two' } }] },
    { text: 'two' },
    { text: 'three' },
  ];
  const stdin = new PassThrough();
  const say = (text: string): void => {
    stdin.write(`${JSON.stringify({ type: 'user', message: { role: 'user', content: text } })}\n`);
  };
  let cutting: Promise<void> | null = null;
  let results = 0;
  const onStdout = (text: string): void => {
    const all = lines(text.slice(0, text.lastIndexOf('\n') + 1));
    if (all.some(({ type }) => type === 'tool_call')) cutting ??= link.cut();
    const ended = all.filter(({ type }) => type === 'result').length;
    if (ended === results) return;
    results = ended;
    if (ended === 1) void pushed.then(() => say('second'));
    if (ended === 2) say('third');
    if (ended === 3) stdin.end();
  };
  say('first');
  const args = ['-p', '--output-format', 'stream-json', '--input-format', 'stream-json', '-m', script(at, turns)];
  const { code, stdout, stderr } = await agent(at, args, { env, stdin, onStdout });
  expect([code, stderr]).toEqual([0, '']);
  const said = lines(stdout);
  expect(said.filter(({ type }) => type === 'result').map(({ text, status }) => [text, status])).toEqual([
    ['one', 'completed'],
    ['two', 'completed'],
    ['three', 'completed'],
  ]);
  expect(said.filter(({ code }) => code === 'sync').length).toBeLessThanOrEqual(1);
  const gone = await agent(at, ['db', 'push'], { env });
  expect([gone.code, gone.stderr]).toEqual([1, expect.stringContaining('agent: ')]);
  await link.mend();
  await json(at, env, 'db', 'push');
  const [here, there] = await heads(at, database);
  expect(here).toEqual(there);
  await arrived.end();
  await link.close();
});

test('nothing goes of what is ephemeral or excluded, and a command without a server says so', async () => {
  const database = await server().database();
  const at = place();
  const env = { AGENT_STORE_URL: server().url(database, 'alice') };
  const model = script(at, [{ text: 'hidden' }]);
  await agent(at, ['-p', 'a', '--ephemeral', '-m', model], { env });
  await agent(at, ['-p', 'b', '-m', model, '--set', `sync.exclude=["${at.work}"]`], { env });
  expect(await server().sql(database, 'SELECT id FROM agent.sessions')).toEqual([]);
  expect(await json(at, env, 'db', 'push')).toMatchObject([{ kind: 'pushed' }]);
  expect(await agent(at, ['db', 'push'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('store.url is not set') as string,
  });
  expect((await agent(at, ['db', 'push', '--session', 'nobody'], { env })).code).toBe(7);
  const id = String((await json(at, env, 'sessions', 'list'))[0]?.['id']);
  expect((await agent(at, ['sessions', 'rm', id, '--remote'], { env })).code).toBe(0);
  expect(await server().sql(database, 'SELECT id FROM agent.sessions')).toEqual([]);
});
