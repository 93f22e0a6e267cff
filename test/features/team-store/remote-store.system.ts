import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { answered, event, sessionRow } from '../../kernel/store/samples.js';
import { remoteStore } from './remote.js';
import { openAs, serverOfFile } from './server.js';

const { installed, server } = serverOfFile(12);

describe.skipIf(!installed)('a store on a server', () => {
  test('goes on after its connection was cut, and the chain stays whole', async () => {
    const database = await server().database();
    const { store, records } = remoteStore(server(), database, 'alice');
    const row = sessionRow();
    await store.createSession(row);
    const events = [1, 2, 3].map((seq) => event(seq));
    const [first, second, third] = events as [
      ReturnType<typeof event>,
      ReturnType<typeof event>,
      ReturnType<typeof event>,
    ];
    await store.append(row.id, first);
    const cut = (): Promise<unknown> =>
      server().sql('postgres', "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'alice'");
    await cut();
    // The session tries again what was not saved, with the next event.
    for (const item of [second, third]) await store.append(row.id, item).catch(() => store.append(row.id, item));
    await cut();
    const again = () => store.load(row.id);
    expect(await again().catch(again)).toEqual(events);
    expect(await records.verify(row.id)).toMatchObject({ events: 3, breaks: [] });
    await store.close();
  });

  test('holds a session for one process: a second one is refused, and a lost lease ends the writing', async () => {
    const database = await server().database();
    const [one, two] = [1, 2].map(() => remoteStore(server(), database, 'alice').store) as [
      ReturnType<typeof remoteStore>['store'],
      ReturnType<typeof remoteStore>['store'],
    ];
    const row = sessionRow();
    await one.createSession(row);
    const lease = await one.acquire(row.id);
    await one.append(row.id, event(1));
    expect(await two.acquire(row.id)).toMatchObject({ held: false, holder: { pid: process.pid } });
    await expect(two.append(row.id, event(2))).rejects.toMatchObject({ code: 'in_use' });
    await expect(two.remove(row.id)).rejects.toMatchObject({ code: 'in_use' });
    await server().sql(database, "UPDATE agent.leases SET beat = beat - interval '61 s'");
    expect((await two.acquire(row.id)).held).toBe(true);
    await two.append(row.id, event(2, { content: 'the other' }));
    await expect(one.append(row.id, event(2))).rejects.toMatchObject({ code: 'in_use' });
    if (lease.held) await lease.release();
    await two.append(row.id, event(3));
    expect((await one.load(row.id)).map(({ content }) => content)).toEqual(['prompt 1', 'the other', 'prompt 3']);
    await Promise.all([one.close(), two.close()]);
  });

  test('tells those who watch', async () => {
    const database = await server().database();
    const { store } = remoteStore(server(), database, 'alice');
    const row = sessionRow();
    await store.createSession(row);
    const team = openAs(server(), database, 'alice');
    const rung = new Promise<void>(
      (resolve) => void team.watch.listen(row.id, resolve).then(() => store.append(row.id, event(1))),
    );
    await rung;
    expect(await team.watch.load(row.id)).toHaveLength(1);
    await Promise.all([store.close(), team.close()]);
  });

  test('sends no contents that hold a secret', async () => {
    const database = await server().database();
    const [secret, plain] = ['a password', 'a file'].map((text) => ({
      bytes: Buffer.from(text),
      sha256: createHash('sha256').update(text).digest('hex'),
    })) as [{ bytes: Buffer; sha256: string }, { bytes: Buffer; sha256: string }];
    const { store } = remoteStore(server(), database, 'alice', {
      seal: { key: () => new Uint8Array(32), holdsSecret: (bytes) => Buffer.from(bytes).includes('password') },
    });
    const row = sessionRow();
    await store.createSession(row);
    const changes = [{ path: '/a', what: 'changed', before: secret.sha256, after: plain.sha256 }];
    await store.append(row.id, event(1, { kind: 'tool_result', data: { changes } }), [secret, plain]);
    expect([await store.blob(secret.sha256), await store.blob(plain.sha256)]).toEqual([null, plain.bytes]);
    await store.close();
  });

  test.each([
    'DELETE FROM events',
    'SELECT 1; SELECT 2',
    'SELECT 1; COMMIT; UPDATE agent.sessions SET title = NULL',
    'WITH gone AS (DELETE FROM agent.queue RETURNING 1) SELECT * FROM gone',
    'SELECT * FROM nothing',
    "SELECT * FROM agent.lease_take('s', 't', 1, 'h', 1000)",
    "SELECT set_config('transaction_read_only', 'off', true)",
    '',
  ])('refuses a question that is not one reading statement: %s', async (sql) => {
    const { store, records } = remoteStore(server(), await server().database(), 'alice');
    await expect(records.ask?.(sql)).rejects.toThrow(Error);
    await store.close();
  });

  test('answers over its tables and views, with what each role may see', async () => {
    const database = await server().database();
    const [alice, bob] = ['alice', 'bob'].map((role) => remoteStore(server(), database, role)) as [
      ReturnType<typeof remoteStore>,
      ReturnType<typeof remoteStore>,
    ];
    const row = sessionRow();
    await alice.store.createSession(row);
    await alice.store.append(row.id, event(1));
    const data = { response_id: 'r', provider: 'p', model: 'm/n', input_tokens: 5, output_tokens: 3, cost_usd: 0.5 };
    await alice.store.append(row.id, event(2, { kind: 'usage', content: null, data }));
    const count =
      "WITH own AS (SELECT * FROM v_requests WHERE model = ?) SELECT provider, '?' AS mark, count(*) FROM own GROUP BY 1";
    expect(await answered(alice.records, count, ['m/n'])).toEqual([{ provider: 'p', mark: '?', count: 1 }]);
    expect(await answered(alice.records, 'SELECT requests, cost_usd, events FROM v_sessions')).toEqual([
      { requests: 1, cost_usd: 0.5, events: 2 },
    ]);
    expect(await answered(bob.records, 'SELECT * FROM events UNION ALL SELECT * FROM events')).toEqual([]);
    expect((await bob.records.ask?.('SELECT id, title FROM sessions'))?.columns).toEqual(['id', 'title']);
    await Promise.all([alice.store.close(), bob.store.close()]);
  });
});
