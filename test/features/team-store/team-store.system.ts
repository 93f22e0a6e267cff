import { describe, expect, test as anyTest } from 'vitest';
import { event, sessionRow } from '../../kernel/store/samples.js';
import { chained, endOf, push, share, start } from './samples-team.js';
import { address, openAs, poolerOfFile, serverOfFile } from './server.js';
import { teamSchema } from '../../../src/features/team-store/team-schema.js';
import { initTeam } from '../../../src/features/team-store/team-store.js';

const { installed, server } = serverOfFile(9);
const pooler = poolerOfFile(server, installed, 4);
/** The same through a pooler in transaction mode. */
const ways = [
  ['directly', () => server(), installed],
  ['through pgbouncer', () => pooler.pooler(), pooler.installed],
] as const;

describe.each(ways)('the store of a team, %s', (way, near, isThere) => {
  const test = isThere ? anyTest : anyTest.skip;
  test('gives a session back as it was pushed', async () => {
    const team = openAs(near(), await server().database(), 'alice');
    const row = sessionRow({ title: 'About docks' });
    const events = await share(team, row, [
      event(1, { content: 'über 🎉\nline \0 two' }),
      event(2, { kind: 'never_heard_of', content: null, data: { a: [1, 'é\0', null, { b: true }] } }),
    ]);
    expect(await team.log.events(row.id, 0, 100)).toEqual(events);
    expect(await team.log.events(row.id, 1, 100)).toEqual(events.slice(1));
    expect(await team.log.session(row.id)).toEqual({
      ...row,
      updatedAt: events[1]?.createdAt,
      owner: 'alice',
      isOwn: true,
      team: null,
      machine: 'laptop',
      end: endOf(events),
      redacted: [],
    });
    await team.close();
  });

  test('appends where the session ends and under its lease alone', async () => {
    const database = await server().database();
    const team = openAs(near(), database, 'alice');
    const row = sessionRow();
    const [one, two, three, other] = [event(1), event(2), event(3), event(2)];
    const stored = chained([one, two, three]);
    const [first, second, third] = [stored.slice(0, 1), stored.slice(1, 2), stored.slice(2)];
    const lease = await team.leases.acquire(row.id);
    const token = lease.held ? lease.token : '';
    expect(await team.log.push(push(row, first, { token }))).toEqual({ kind: 'stored' });
    expect(await team.log.push(push(row, third, { token, after: endOf(second) }))).toEqual({
      kind: 'behind',
      end: endOf(first),
    });
    expect(await team.log.push(push(row, second, { token, after: endOf(first) }))).toEqual({ kind: 'stored' });
    expect(await team.log.push(push(row, second, { token, after: endOf(first) }))).toEqual({ kind: 'repeat' });
    expect(await team.log.push(push(row, stored, { token, after: start }))).toEqual({
      kind: 'behind',
      end: endOf(second),
    });
    const forked = chained([other], endOf(first));
    expect(await team.log.push(push(row, forked, { token, after: endOf(first) }))).toEqual({
      kind: 'diverged',
      end: endOf(second),
    });
    expect(await team.log.push(push(row, third, { after: endOf(second) }))).toEqual({ kind: 'lease_lost' });
    await server().sql(database, "UPDATE agent.leases SET beat = beat - interval '61 s'");
    const stolen = await team.leases.acquire(row.id);
    expect(stolen.held).toBe(true);
    expect(await team.leases.beat(row.id, token)).toBe(false);
    expect(await team.log.push(push(row, third, { token, after: endOf(second) }))).toEqual({ kind: 'lease_lost' });
    expect(await team.log.events(row.id, 0, 9)).toEqual(stored.slice(0, 2));
    await team.close();
  });

  test('tells who watches a session of another machine what was pushed to it', async () => {
    const database = await server().database();
    const [alice, bob] = [openAs(near(), database, 'alice'), openAs(near(), database, 'bob')] as const;
    const row = sessionRow();
    const first = event(1);
    const stored = await share(alice, row, [first], { team: 'crew' });
    let rang: () => void = () => undefined;
    const ring = new Promise<void>((resolve) => (rang = resolve));
    const silence = await bob.watch.listen(row.id, rang);
    expect(silence === null).toBe(way !== 'directly');
    const next = event(2);
    const lease = await alice.leases.acquire(row.id);
    const token = lease.held ? lease.token : '';
    await alice.log.push(push(row, chained([next], endOf(stored)), { token, after: endOf(stored), team: 'crew' }));
    if (silence !== null) await ring;
    expect(await bob.watch.tail(row.id, 1)).toEqual([next]);
    expect(await bob.watch.load(row.id)).toEqual([first, next]);
    await Promise.all([alice.close(), bob.close(), silence?.()]);
  });

  test('finds events by their words', async () => {
    const team = openAs(near(), await server().database(), 'alice');
    const row = sessionRow();
    await share(team, row, [event(1, { content: 'Docker compose in src/kernel/store/lease.ts' })]);
    const found = await team.record.search('lease dock*', 5);
    expect(found).toMatchObject([
      { sessionId: row.id, seq: 1, owner: 'alice', snippet: 'Docker compose in src/kernel/store/lease.ts' },
    ]);
    expect(await team.record.search('"store lease"', 5)).toHaveLength(1);
    expect(await team.record.search('"lease store"', 5)).toEqual([]);
    expect(await team.record.sessions(5)).toMatchObject([
      { id: row.id, prompt: 'Docker compose in src/kernel/store/lease.ts', events: 1 },
    ]);
    expect(await team.facts()).toMatchObject({ role: 'alice', teams: ['crew'], sessions: 1 });
    await team.close();
  });
});

describe.skipIf(!installed)('the tables', () => {
  anyTest('are made once by two at once, and asked for where they are missing', async () => {
    const database = await server().emptyDatabase();
    const team = openAs(server(), database, 'alice');
    await expect(team.facts()).rejects.toMatchObject({ code: 'uninitialised', hint: 'Its owner runs: agent db init' });
    const owner = address(server().url(database));
    const made = await Promise.all([initTeam(owner), initTeam(owner)]);
    expect(new Set(made.map(({ from }) => from))).toEqual(new Set([0, teamSchema]));
    expect(await team.facts()).toMatchObject({ schema: teamSchema, role: 'alice', sessions: 0 });
    await server().sql(database, 'INSERT INTO agent.schema_version(version) VALUES ($1)', [teamSchema + 1]);
    const later = openAs(server(), database, 'bob');
    await expect(later.facts()).rejects.toMatchObject({ code: 'newer' });
    await expect(initTeam(owner)).rejects.toMatchObject({ code: 'newer' });
    await Promise.all([team.close(), later.close()]);
  });
});
