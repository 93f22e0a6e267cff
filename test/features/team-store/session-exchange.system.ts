import { createHash, randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { describe, expect, test as anyTest } from 'vitest';
import { type Blob, type SessionRow, type Store, ulid } from '../../../src/kernel/core/store.js';
import { type Exchange, redactedLine, type Team } from '../../../src/features/team-store/team.js';
import { type ExchangeParts, openExchange } from '../../../src/features/team-store/session-exchange.js';
import { openSqliteStore } from '../../../src/kernel/store/sqlite-store.js';
import { clock, event, sessionRow, temporaryFolder } from '../../kernel/store/samples.js';
import { openAs, poolerOfFile, serverOfFile } from './server.js';
import { syncRows } from '../../../src/features/team-store/open-team.js';

const folder = temporaryFolder();
let files = 0;
const { installed, server } = serverOfFile(20);
const pooler = poolerOfFile(server, installed, 10);
const ways = [
  ['directly', () => server(), installed],
  ['through pgbouncer', () => pooler.pooler(), pooler.installed],
] as const;

interface Machine {
  readonly store: Store;
  readonly records: Awaited<ReturnType<typeof openSqliteStore>>['records'];
  readonly rows: ExchangeParts['rows'];
  readonly team: Team;
  readonly exchange: Exchange;
}

async function machine(team: Team, change: Partial<ExchangeParts> = {}): Promise<Machine> {
  const { store, records, tables } = await openSqliteStore({ file: join(folder, `${++files}.db`), now: clock });
  const rows = await syncRows(tables);
  const exchange = openExchange({
    rows,
    team,
    machine: `machine ${files}`,
    sharedWith: null,
    isExcluded: () => false,
    newId: () => ulid(clock(), randomBytes(16)),
    pause: () => Promise.resolve(true),
    batch: 3,
    ...change,
  });
  return { store, records, rows, team, exchange };
}

async function written(store: Store, prompts: readonly string[], change: Partial<SessionRow> = {}) {
  const row = sessionRow(change);
  await store.createSession(row);
  for (const [index, content] of prompts.entries()) await store.append(row.id, event(index + 1, { content }));
  return row;
}

const contents = async ({ store }: Machine, id: string) => (await store.load(id)).map(({ content }) => content);
const letters = ['a', 'b', 'c', 'd', 'e', 'f', 'g'];

function fileChange(seq: number, ...blobs: readonly Blob[]) {
  const changes = blobs.map(({ sha256 }) => ({ path: '/x', what: 'changed', before: null, after: sha256 }));
  return event(seq, { kind: 'tool_result', data: { tool_call_id: 'c', name: 'x', output: '{}', changes } });
}

function blob(text: string): Blob {
  return { sha256: createHash('sha256').update(text).digest('hex'), bytes: Buffer.from(text) };
}

describe.each(ways)('two machines and the server of a team, %s', (_way, near, isThere) => {
  const test = isThere ? anyTest : anyTest.skip;
  const people = async (...roles: readonly string[]): Promise<readonly Team[]> => {
    const database = await server().database();
    return roles.map((role) => openAs(near(), database, role));
  };
  const end = async (...teams: readonly Team[]): Promise<void> => {
    for (const team of teams) await team.close();
  };

  test('a session of any text goes to the other machine whole, batch by batch, and once', async () => {
    const [team] = await people('alice');
    if (!team) return;
    const [one, other] = [await machine(team), await machine(team)];
    const texts = ['plain', 'a\u0000b', 'half \ud83d', '\u{1f600}', 'x'.repeat(8 * 1024 * 1024), '', 'g'];
    const { id } = await written(one.store, texts, { title: 'Texts' });
    expect(await one.exchange.push()).toEqual([{ kind: 'pushed', sessionId: id, events: texts.length }]);
    expect(await one.exchange.push()).toEqual([]);
    expect(await other.exchange.pull()).toEqual([{ kind: 'pulled', sessionId: id, events: texts.length }]);
    expect(await other.exchange.pull()).toEqual([]);
    expect(await other.exchange.push()).toEqual([]);
    expect(await other.store.load(id)).toEqual(await one.store.load(id));
    expect(await other.records.verify(null)).toEqual(await one.records.verify(null));
    await other.store.append(id, event(8, { content: 'h' }));
    expect(await other.exchange.push()).toEqual([{ kind: 'pushed', sessionId: id, events: 1 }]);
    expect(await one.exchange.pull()).toEqual([{ kind: 'pulled', sessionId: id, events: 1 }]);
    expect(await one.records.verify(null)).toEqual(await other.records.verify(null));
    await end(team);
  });

  test('a session that went on on two machines becomes two, with all events, on both', async () => {
    const [team] = await people('alice');
    if (!team) return;
    const [one, other] = [await machine(team), await machine(team)];
    const { id } = await written(one.store, letters, { title: 'Letters' });
    await one.exchange.push();
    await other.exchange.pull();
    await one.store.append(id, event(8, { content: 'one' }));
    for (const seq of [8, 9, 10, 11]) await other.store.append(id, event(seq, { content: `other ${seq}` }));
    await one.exchange.push();
    const outcomes = await other.exchange.push();
    const [branched] = outcomes;
    const branch = branched?.kind === 'branched' ? branched.branch : '';
    expect(outcomes).toEqual([
      { kind: 'branched', sessionId: id, branch },
      { kind: 'pushed', sessionId: branch, events: 11 },
    ]);
    await one.exchange.pull();
    for (const each of [one, other]) {
      expect(await contents(each, id)).toEqual([...letters, 'one']);
      expect(await contents(each, branch)).toEqual([...letters, 'other 8', 'other 9', 'other 10', 'other 11']);
      expect(await each.store.session(branch)).toMatchObject({ parentId: id, title: 'Letters' });
    }
    expect(await one.records.verify(null)).toEqual(await other.records.verify(null));
    expect(await one.records.verify(null)).toMatchObject({ sessions: 2, events: 19, breaks: [] });
    await end(team);
  });

  test('a session in use is not branched under its writer, but once it is closed', async () => {
    const [team] = await people('alice');
    if (!team) return;
    const [one, other] = [await machine(team), await machine(team)];
    const { id } = await written(one.store, letters);
    await one.exchange.push();
    await other.exchange.pull();
    await one.store.append(id, event(8));
    await one.exchange.push();
    const lease = await other.store.acquire(id);
    await other.store.append(id, event(8, { content: 'mine' }));
    expect(await other.exchange.push()).toMatchObject([
      { kind: 'left', reason: /it also continued on another machine/ },
    ]);
    expect(await other.exchange.pull()).toMatchObject([{ kind: 'left' }]);
    expect((await contents(other, id)).at(-1)).toBe('mine');
    if (lease.held) await lease.release();
    expect(await other.exchange.pull()).toMatchObject([{ kind: 'branched' }, { kind: 'pushed', events: 8 }]);
    await end(team);
  });

  test('contents of files go along, each once, but those that hold a secret', async () => {
    const [team] = await people('alice');
    if (!team) return;
    const [one, other] = [await machine(team), await machine(team)];
    const [first, second] = [blob('first'), blob('second '.repeat(1000))];
    const row = await written(one.store, ['a', 'b']);
    await one.store.append(row.id, fileChange(3, first, second), [first, second]);
    await one.store.append(row.id, event(4));
    await one.store.append(row.id, fileChange(5, second), [second]);
    expect(await one.exchange.push()).toMatchObject([{ kind: 'pushed', events: 5 }]);
    await other.exchange.pull();
    for (const { sha256, bytes } of [first, second])
      expect(Buffer.from((await other.store.blob(sha256)) ?? []).equals(Buffer.from(bytes))).toBe(true);
    const sealed = await openSqliteStore({
      file: join(folder, `${++files}.db`),
      now: clock,
      seal: { key: () => Buffer.alloc(32, 7), holdsSecret: () => true },
    });
    const secret = blob('secret');
    const { id } = await written(sealed.store, []);
    await sealed.store.append(id, fileChange(1, secret), [secret]);
    const third = await machine(team, { rows: await syncRows(sealed.tables) });
    expect(await third.exchange.push({ sessionId: id })).toMatchObject([{ kind: 'pushed', events: 1 }]);
    expect(await team.blobs.get(secret.sha256)).toBeNull();
    await end(team);
  });

  test('a redaction goes along both ways, and a title', async () => {
    const [team] = await people('alice');
    if (!team) return;
    const [one, other] = [await machine(team), await machine(team)];
    const { id } = await written(one.store, letters);
    await one.exchange.push();
    await other.exchange.pull();
    await one.records.redact(id, 2, { content: '[redacted]', data: null });
    await one.store.update(id, { title: 'Named' });
    await one.exchange.push();
    await other.exchange.pull();
    await other.records.redact(id, 3, { content: '[gone]', data: null });
    await other.exchange.push();
    await one.exchange.pull();
    for (const each of [one, other]) {
      expect(await contents(each, id)).toEqual(['a', '[redacted]', '[gone]', 'd', 'e', 'f', 'g']);
      expect(await each.store.session(id)).toMatchObject({ title: 'Named' });
    }
    expect(await one.records.verify(null)).toEqual(await other.records.verify(null));
    expect(await team.record.search('b', 9)).toEqual([]);
    await end(team);
  });

  test('what a colleague redacted is reported', async () => {
    const [alices, bobs] = await people('alice', 'bob');
    if (!alices || !bobs) return;
    const alice = await machine(alices, { sharedWith: 'crew' });
    const bob = await machine(bobs);
    const { id } = await written(alice.store, letters);
    await alice.exchange.push();
    await bob.exchange.pull();
    await alice.records.redact(id, 2, { content: '[redacted]', data: null });
    await alice.exchange.push();
    const outcome = { kind: 'redacted', sessionId: id, events: 1 } as const;
    expect(await bob.exchange.pull()).toEqual([outcome]);
    expect(redactedLine(outcome)).toMatch(/: 1 event of session \w+\.$/);
    expect(await bob.exchange.pull()).toEqual([]);
    await end(alices, bobs);
  });

  test('what was removed here stays away until it is asked for, and removed there it stays here', async () => {
    const [team] = await people('alice');
    if (!team) return;
    const [one, other] = [await machine(team), await machine(team)];
    const { id } = await written(one.store, letters);
    await one.exchange.push();
    await one.store.remove(id);
    expect(await one.exchange.pull()).toEqual([]);
    expect(await one.exchange.pull({ sessionId: id })).toEqual([{ kind: 'pulled', sessionId: id, events: 7 }]);
    await other.exchange.pull();
    await team.log.remove(id);
    expect(await one.exchange.pull()).toEqual([]);
    expect(await contents(one, id)).toEqual(letters);
    await one.store.append(id, event(8));
    expect(await one.exchange.push()).toEqual([{ kind: 'pushed', sessionId: id, events: 8 }]);
    await end(team);
  });

  test("a colleague's session comes where it is shared, and what is added here is a session of one's own", async () => {
    const [alices, bobs, carols] = await people('alice', 'bob', 'carol');
    if (!alices || !bobs || !carols) return;
    const alice = await machine(alices, { sharedWith: 'crew', isExcluded: (cwd) => cwd === '/work/private' });
    const [bob, carol] = [await machine(bobs), await machine(carols)];
    const { id } = await written(alice.store, letters);
    await written(alice.store, ['mine alone'], { cwd: '/work/private' });
    expect(await alice.exchange.push()).toEqual([{ kind: 'pushed', sessionId: id, events: 7 }]);
    expect(await carol.exchange.pull()).toEqual([]);
    expect(await bob.exchange.pull()).toEqual([{ kind: 'pulled', sessionId: id, events: 7 }]);
    expect((await bob.rows.session(id)) as object).toMatchObject({ state: { owner: 'alice' } });
    await bob.store.append(id, event(8, { content: 'from bob' }));
    const [branched, pushed] = await bob.exchange.push();
    expect([branched, pushed]).toMatchObject([
      { kind: 'branched', sessionId: id },
      { kind: 'pushed', events: 8 },
    ]);
    expect(await contents(bob, id)).toEqual(letters);
    const branch = branched?.kind === 'branched' ? branched.branch : '';
    expect((await contents(bob, branch)).at(-1)).toBe('from bob');
    expect(await alice.exchange.pull()).toEqual([]);
    await end(alices, bobs, carols);
  });

  test('an event that was changed from outside does not go, nor what follows it', async () => {
    const [team] = await people('alice');
    if (!team) return;
    const one = await machine(team);
    const { id } = await written(one.store, letters);
    const forged: ExchangeParts['rows'] = {
      ...one.rows,
      events: async (...wanted) =>
        (await one.rows.events(...wanted)).map((stored) =>
          stored.seq === 5 ? { ...stored, content: 'forged' } : stored,
        ),
    };
    const tampered = await machine(team, { rows: forged });
    expect(await tampered.exchange.push()).toEqual([
      { kind: 'left', sessionId: id, reason: 'event 5 is not as written (agent audit verify)', unsent: 4 },
    ]);
    expect((await team.log.session(id))?.end.seq).toBe(3);
    expect(await one.exchange.push()).toEqual([{ kind: 'pushed', sessionId: id, events: 4 }]);
    await end(team);
  });

  test('pushers of one machine at once send everything once, with one lease; a killed one blocks nothing', async () => {
    const [team, ...others] = await people('alice', 'alice', 'alice', 'alice');
    if (!team) return;
    const one = await machine(team);
    const rows = await Promise.all(letters.map(async () => await written(one.store, letters)));
    // Each has listed the sessions before any of them has a token.
    const listed = await one.rows.pending('', 100);
    const pushers = [team, ...others].map((of) =>
      openExchange({
        rows: { ...one.rows, pending: (after) => Promise.resolve(after === '' ? listed : []) },
        team: of,
        ...{ machine: 'one', sharedWith: null, isExcluded: () => false, newId: () => ulid(clock(), randomBytes(16)) },
        ...{ pause: () => Promise.resolve(true), batch: 1 },
      }),
    );
    // This one is killed while it has a lease.
    const [first] = rows;
    const token = await one.rows.token(first?.id ?? '', 'of the killed one');
    expect((await team.leases.acquire(first?.id ?? '', token)).held).toBe(true);
    const outcomes = (await Promise.all(pushers.map(async (pusher) => await pusher.push()))).flat();
    expect(outcomes.filter(({ kind }) => kind !== 'pushed')).toEqual([]);
    for (const { id } of rows) {
      expect((await team.log.session(id))?.end.seq).toBe(letters.length);
      expect((await team.leases.acquire(id)).held).toBe(true);
    }
    expect(await one.rows.pending('', 100)).toEqual([]);
    await end(team, ...others);
  });

  test('what is not sent is counted', async () => {
    const [team] = await people('alice');
    if (!team) return;
    const one = await machine(team);
    const { id } = await written(one.store, letters);
    const lease = await team.leases.acquire(id);
    expect(await one.exchange.push()).toMatchObject([{ kind: 'left', sessionId: id, unsent: letters.length }]);
    if (lease.held) await team.leases.release(id, lease.token);
    expect(await one.exchange.push()).toEqual([{ kind: 'pushed', sessionId: id, events: letters.length }]);
    await end(team);
  });

  test('a pusher that lost its answer, its lease or what it knew goes on without doubling anything', async () => {
    const [team] = await people('alice');
    if (!team) return;
    const one = await machine(team);
    const { id } = await written(one.store, letters);
    let calls = 0;
    const lossy: Team = {
      ...team,
      log: {
        ...team.log,
        push: async (push) => {
          const pushed = await team.log.push(push);
          if (++calls % 2 === 1) throw new Error('the answer was lost');
          return pushed;
        },
      },
      leases: { ...team.leases, release: () => Promise.reject(new Error('killed')) },
    };
    const lost = openExchange({ ...parts(one), team: lossy });
    for (let tries = 0; tries < 4; tries++) await lost.push().catch(() => []);
    expect((await team.log.session(id))?.end.seq).toBe(7);
    await one.rows.note(id, { pushed: { seq: 0, link: null }, owner: null, token: null });
    const other = await machine(team);
    await other.exchange.pull();
    expect(await other.store.load(id)).toEqual(await one.store.load(id));
    await end(team);
  });

  test('a server that was put back to an older state gets what it lacks again', async () => {
    const [team] = await people('alice');
    if (!team) return;
    const one = await machine(team);
    const { id } = await written(one.store, letters);
    await one.exchange.push();
    await team.log.remove(id);
    const { id: other } = await written(one.store, letters);
    await one.store.update(id, { title: 'x' });
    expect(await one.exchange.push()).toEqual([
      { kind: 'pushed', sessionId: id, events: 7 },
      { kind: 'pushed', sessionId: other, events: 7 },
    ]);
    await end(team);
  });
});

function parts({ rows, team }: Machine): ExchangeParts {
  return {
    rows,
    team,
    machine: 'machine',
    sharedWith: null,
    isExcluded: () => false,
    newId: () => ulid(clock(), randomBytes(16)),
    pause: () => Promise.resolve(true),
    batch: 3,
  };
}
