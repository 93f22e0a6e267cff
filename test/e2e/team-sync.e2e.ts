import { expect, test as anyTest } from 'vitest';
import { openLink } from '../features/team-store/link.js';
import { serverOfFile } from '../features/team-store/server.js';
import { agent, type Place, place, script } from './program.js';

const { installed, server } = serverOfFile(2);
const test = installed ? anyTest : anyTest.skip;
const kills = 5;

async function heads(at: Place): Promise<unknown> {
  return (JSON.parse((await agent(at, ['audit', 'verify', '--json'])).stdout) as { heads: unknown }).heads;
}

test('pushers that are killed at any moment lose nothing and double nothing', async () => {
  const database = await server().database();
  const env = { AGENT_STORE_URL: server().url(database, 'alice') };
  const at = place();
  const model = script(at, [
    { text: 'x'.repeat(10_000), calls: [{ name: 'bash', arguments: { command: 'seq 2000' } }] },
    { text: 'done' },
  ]);
  for (let kill = 0; kill < kills; kill++) {
    await agent(at, ['-p', 'go', '-m', model]);
    await agent(at, ['db', 'push'], {
      env,
      onStart: (child) => {
        setTimeout(() => child.kill('SIGKILL'), 200 + kill * 120);
      },
    });
  }
  expect(await agent(at, ['db', 'push'], { env })).toMatchObject({ code: 0, stderr: '' });
  const there = await server().sql(
    database,
    `SELECT s.id AS session_id, s.last_seq::int AS seq, encode(s.head, 'hex') AS hash FROM agent.sessions s
     WHERE last_seq = (SELECT count(*) FROM agent.events e WHERE e.session_id = s.id) ORDER BY s.id`,
  );
  expect(there).toHaveLength(kills);
  expect(there).toEqual(await heads(at));
});

test('a process in the background sends what runs did not send in their last two seconds', async () => {
  const database = await server().database();
  const link = await openLink(server(), 300);
  const at = place();
  const env = { AGENT_STORE_URL: link.url(database, 'alice') };
  const model = script(at, [{ calls: [{ name: 'bash', arguments: { command: 'echo 1' } }] }, { text: 'done' }]);
  const runs = await Promise.all([1, 2, 3].map(() => agent(at, ['-p', 'go', '-m', model], { env })));
  expect(runs.map(({ code }) => code)).toEqual([0, 0, 0]);
  const there = async (): Promise<unknown> =>
    await server().sql(
      database,
      `SELECT s.id AS session_id, s.last_seq::int AS seq, encode(s.head, 'hex') AS hash FROM agent.sessions s ORDER BY s.id`,
    );
  const here = await heads(at);
  expect(here).toHaveLength(3);
  await expect.poll(there, { timeout: 60_000, interval: 200 }).toEqual(here);
  const alone = ['db', 'push', '--unless-running'];
  await expect
    .poll(async () => (await agent(at, alone, { env })).stdout, { timeout: 60_000 })
    .toBe('Nothing to exchange.\n');
  await link.close();
}, 150_000);
