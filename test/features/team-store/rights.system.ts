import { createHash } from 'node:crypto';
import { beforeAll, describe, expect, test as anyTest } from 'vitest';
import { noFilters } from '../../../src/kernel/core/files/search-filters.js';
import type { SessionRow } from '../../../src/kernel/core/store.js';
import type { StoredEvent, Team } from '../../../src/features/team-store/team.js';
import { event, sessionRow } from '../../kernel/store/samples.js';
import { chained, endOf, push, share } from './samples-team.js';
import { openAs, poolerOfFile, serverOfFile, type TestServer } from './server.js';

const { installed, server } = serverOfFile(16);
const pooler = poolerOfFile(server, installed, 8);
const ways = [
  ['directly', () => server(), installed],
  ['through pgbouncer', () => pooler.pooler(), pooler.installed],
] as const;
const bytes = Buffer.from('the contents of a file');
const sha256 = createHash('sha256').update(bytes).digest('hex');

interface Shared {
  readonly database: string;
  readonly alice: Team;
  readonly bob: Team;
  readonly carol: Team;
  /** alice's own, and the one that her crew may read. */
  readonly own: SessionRow;
  readonly ours: SessionRow;
  readonly events: readonly StoredEvent[];
}

async function shared(near: () => Pick<TestServer, 'url'>): Promise<Shared> {
  const database = await server().database();
  const [alice, bob, carol] = ['alice', 'bob', 'carol'].map((name) => openAs(near(), database, name)) as [
    Team,
    Team,
    Team,
  ];
  const [own, ours] = [sessionRow({ title: 'own' }), sessionRow({ title: 'ours' })];
  const events = await share(alice, own, [event(1, { content: 'the launch code' }), event(2)]);
  await share(alice, ours, [event(1, { content: 'the launch date' })], { team: 'crew' });
  await alice.blobs.put(own.id, [{ sha256, bytes }]);
  return { database, alice, bob, carol, own, ours, events };
}

describe.each(ways)('rights, %s', (_way, near, isThere) => {
  const test = isThere ? anyTest : anyTest.skip;
  let all: Shared | null = null;
  const given = (): Shared => {
    if (all === null) throw new Error('nothing was shared');
    return all;
  };
  beforeAll(async () => {
    if (isThere) all = await shared(near);
  });

  test('what belongs to alice alone is not there for bob', async () => {
    const { bob, own, ours } = given();
    expect(await bob.log.session(own.id)).toBeNull();
    expect(await bob.log.events(own.id, 0, 9)).toEqual([]);
    expect(await bob.record.search('launch code', 9)).toEqual([]);
    const everything = await bob.record.search('', 99, {}, { ...noFilters, after: 0 });
    expect(new Set(everything.map(({ sessionId }) => sessionId))).toEqual(new Set([ours.id]));
    expect(await bob.record.search('', 9, {}, { ...noFilters, session: own.id })).toEqual([]);
    expect((await bob.record.sessions(9)).map(({ id }) => id)).not.toContain(own.id);
    expect(await bob.blobs.get(sha256)).toBeNull();
    expect(await bob.blobs.of(own.id)).toEqual([]);
  });

  test('what alice shares with her crew is read by bob, and by nobody outside', async () => {
    const { bob, carol, ours } = given();
    expect(await bob.log.session(ours.id)).toMatchObject({ owner: 'alice', team: 'crew', title: 'ours' });
    expect(await bob.record.search('launch', 9)).toMatchObject([{ sessionId: ours.id, owner: 'alice' }]);
    expect(await carol.log.session(ours.id)).toBeNull();
    expect(await carol.record.search('launch', 9)).toEqual([]);
    expect(await carol.log.events(ours.id, 0, 9)).toEqual([]);
  });

  test('bob appends to nothing of hers', async () => {
    const { bob, own, ours, events } = given();
    const next = chained([event(3)], endOf(events));
    const first = chained([event(1)]);
    await expect(bob.leases.acquire(own.id)).rejects.toMatchObject({ code: 'exists' });
    await expect(bob.leases.acquire(ours.id)).rejects.toMatchObject({ code: 'exists' });
    await expect(bob.log.push(push(ours, first))).rejects.toMatchObject({ code: 'exists' });
    await expect(bob.log.push(push(own, first))).rejects.toMatchObject({ code: 'exists' });
    expect(await bob.log.push(push(own, next, { after: endOf(events) }))).toMatchObject({ kind: 'behind' });
  });

  test('bob redacts and deletes nothing of hers', async () => {
    const { bob, alice, own, events } = given();
    const [first] = events;
    if (!first) throw new Error('there is no event');
    expect(await bob.log.redact(own.id, { ...first, content: 'gone', redacted: '{}' })).toBe(0);
    expect(await bob.log.remove(own.id)).toBe(false);
    expect(await alice.log.events(own.id, 0, 9)).toEqual(events);
  });

  test('the hash of contents alone does not get them', async () => {
    const { alice, bob } = given();
    const row = sessionRow();
    await share(bob, row, [event(1)]);
    expect(await bob.blobs.missing(row.id, [sha256])).toEqual([sha256]);
    expect(await bob.blobs.get(sha256)).toBeNull();
    await expect(bob.blobs.put(row.id, [{ sha256, bytes: Buffer.from('others') }])).rejects.toMatchObject({
      code: 'rejected',
    });
    await bob.blobs.put(row.id, [{ sha256, bytes }]);
    expect(await bob.blobs.get(sha256)).toEqual(bytes);
    expect(await alice.blobs.missing(given().own.id, [sha256])).toEqual([]);
  });

  test('whoever may log in cannot go past the rights with statements of their own', async () => {
    const { database, own, ours } = given();
    const tries = [
      `UPDATE agent.events SET content = 'x' WHERE session_id = '${ours.id}'`,
      `DELETE FROM agent.events WHERE session_id = '${ours.id}'`,
      `DELETE FROM agent.sessions WHERE id = '${ours.id}'`,
      `UPDATE agent.sessions SET owner = 'bob' WHERE id = '${ours.id}'`,
      'SELECT * FROM agent.blobs',
      'SELECT * FROM agent.blob_refs',
      'SELECT * FROM agent.events_other',
      `INSERT INTO agent.events (session_id, seq, kind, created_at) VALUES ('${ours.id}', 9, 'user', 0)`,
      `INSERT INTO agent.sessions (id, owner, cwd, created_at, updated_at) VALUES ('x', 'alice', '/', 0, 0)`,
      `INSERT INTO agent.sessions (id, team, cwd, created_at, updated_at) VALUES ('x', 'pg_monitor', '/', 0, 0)`,
      `INSERT INTO agent.leases (session_id, token, pid, host) VALUES ('${own.id}', 't', 1, 'h')`,
      'SELECT agent.make_partition(9)',
      `SELECT agent.drop_unreferred('${own.id}')`,
    ];
    for (const text of tries)
      await expect(server().as('bob', database, text), text).rejects.toMatchObject({ code: '42501' });
    const silent = [
      `UPDATE agent.sessions SET title = 'x' WHERE id = '${ours.id}' RETURNING id`,
      `SELECT * FROM agent.events WHERE session_id = '${own.id}'`,
      `SELECT * FROM agent.leases`,
    ];
    for (const text of silent) expect(await server().as('bob', database, text), text).toEqual([]);
    await expect(server().as('stranger', database, 'SELECT * FROM agent.sessions')).rejects.toMatchObject({
      code: '42501',
    });
  });

  test('no value that a search is given becomes a part of its statement', async () => {
    const { database, own } = given();
    const names = [
      'since',
      'since_id',
      'owner',
      'cwd',
      'session',
      'from',
      'after',
      'before',
      'kinds',
      'tools',
      'files',
    ];
    const values = ['0) OR (true', "x') OR (true) OR ('' = '", '$1', '%1$s', String.raw`\') OR (true) --`];
    for (const name of names)
      for (const value of values) {
        const asked = JSON.stringify({ [name]: [value] }).replaceAll("'", "''");
        const found = server()
          .as<{ readonly session_id: string }>(
            'bob',
            database,
            `SELECT session_id FROM agent.search(NULL, '${asked}', 99, 0)`,
          )
          .then((rows) => rows.map(({ session_id: id }) => id))
          .catch((error: unknown) => Reflect.get(error as object, 'code') as unknown);
        const answer = await found;
        expect(Array.isArray(answer) || answer === '22P02', `${name} ${value} ${String(answer)}`).toBe(true);
        expect(answer, `${name} ${value}`).not.toContain(own.id);
      }
    const query = `SELECT session_id FROM agent.search('''x'') OR (true', '{}', 99, 0)`;
    await expect(server().as('bob', database, query)).rejects.toMatchObject({ code: '42601' });
  });

  test('alice redacts an event everywhere it was copied to, and deletes a session with its contents', async () => {
    const { alice, bob, ours } = given();
    const [first] = await alice.log.events(ours.id, 0, 1);
    if (!first) throw new Error('there is no event');
    const fork = sessionRow({ parentId: ours.id });
    const copy = await bob.leases.acquire(fork.id);
    if (copy.held) await bob.log.push(push(fork, [first], { token: copy.token }));
    const redacted = { ...first, content: 'a text of her own', redacted: '{"content":"x"}' };
    expect(await alice.log.redact(ours.id, redacted)).toBe(2);
    expect(await alice.log.events(ours.id, 0, 1)).toEqual([redacted]);
    const marked = { content: '[redacted]', crc32: null };
    expect(await bob.log.events(fork.id, 0, 9)).toMatchObject([marked]);
    expect((await alice.log.session(ours.id))?.redacted).toEqual([redacted.seq]);
    expect((await bob.record.sessions(99)).find(({ id }) => id === fork.id)?.prompt).toBe('[redacted]');
    expect(await bob.record.search('launch', 9)).toEqual([]);
    expect(await alice.log.remove(given().own.id)).toBe(true);
    expect(await alice.log.session(given().own.id)).toBeNull();
    expect(await alice.blobs.get(sha256)).toBeNull();
    expect(await bob.blobs.get(sha256)).toEqual(bytes);
  });

  test('nobody reaches a session by claiming to be its parent', async () => {
    const { alice, bob, ours } = given();
    const [first] = await alice.log.events(ours.id, 0, 1);
    if (!first) throw new Error('there is no event');
    const parent = sessionRow({});
    const fork = sessionRow({ parentId: parent.id });
    const held = await bob.leases.acquire(fork.id);
    if (held.held) await bob.log.push(push(fork, [first], { token: held.token }));
    const claimed = await alice.leases.acquire(parent.id);
    if (claimed.held) await alice.log.push(push(parent, [first], { token: claimed.token }));
    expect(await alice.log.redact(parent.id, { ...first, content: 'hers', redacted: '{}' })).toBeGreaterThan(0);
    expect(await bob.log.events(fork.id, 0, 9)).toEqual([first]);
  });
});
