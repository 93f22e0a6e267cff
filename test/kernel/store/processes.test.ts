import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openSqliteStore } from '../../../src/kernel/store/sqlite-store.js';
import { storeProcesses } from './child.js';
import { event, sessionRow, temporaryFolder } from './samples.js';

const folder = temporaryFolder();
const start = storeProcesses();

test('after kill -9 every acknowledged event is there and the session can be written again', async () => {
  for (let round = 0; round < 6; round++) {
    const file = join(folder, `kill-${round}.db`);
    const row = sessionRow();
    const writer = await start(file);
    await writer.ask('createSession', row);
    expect(await writer.ask('acquire', row.id)).toMatchObject({ held: true });
    writer.tell('flood', row.id, 'x'.repeat(round * 2000));
    let acknowledged = 0;
    while (acknowledged < 20 + round * 7) acknowledged = Number(await writer.next());
    const gone = writer.end('SIGKILL');
    for (let line = await writer.next(); line !== undefined; line = await writer.next()) acknowledged = Number(line);
    await gone;
    const { store, notices } = await openSqliteStore({ file, now: Date.now });
    const events = await store.load(row.id);
    expect(notices).toEqual([]);
    expect(events.length).toBeGreaterThanOrEqual(acknowledged);
    expect(events.map((item) => item.data)).toEqual(events.map((_, index) => ({ seq: index + 1 })));
    expect((await store.acquire(row.id)).held).toBe(true);
    await store.append(row.id, event(events.length + 1));
    await store.close();
  }
});

test('what waits for a later sync is seen by other processes at once, and a kill does not take it', async () => {
  const file = join(folder, 'later.db');
  const row = sessionRow();
  const writer = await start(file);
  await writer.ask('createSession', row);
  await writer.ask('append', row.id, event(1), [], 'later');
  const { store } = await openSqliteStore({ file, now: Date.now });
  expect(await store.load(row.id)).toHaveLength(1);
  await writer.ask('append', row.id, event(2), [], 'later');
  await writer.end('SIGKILL');
  expect((await store.load(row.id)).map((item) => item.seq)).toEqual([1, 2]);
  await store.close();
});

test('a session has one writer among processes; a dead one gives way', async () => {
  const file = join(folder, 'lease.db');
  const [one, two] = await Promise.all([start(file), start(file)]);
  const answers = await Promise.all([one.ask('acquire', 's'), two.ask('acquire', 's')]);
  const [winner, loser] = (answers[0] as { held: boolean }).held ? [one, two] : [two, one];
  expect(answers.filter((answer) => (answer as { held: boolean }).held)).toHaveLength(1);
  expect(await loser.ask('acquire', 's')).toMatchObject({ held: false, holder: { pid: winner.process.pid } });
  await winner.end('SIGKILL');
  expect(await loser.ask('acquire', 's')).toMatchObject({ held: true });
  await loser.ask('close');
  const { store } = await openSqliteStore({ file, now: Date.now });
  expect((await store.acquire('s')).held).toBe(true);
  await store.close();
});

test('a session another process writes is not removed', async () => {
  const file = join(folder, 'remove.db');
  const other = await start(file);
  const row = sessionRow();
  await other.ask('createSession', row);
  await other.ask('acquire', row.id);
  const { store } = await openSqliteStore({ file, now: Date.now });
  await expect(store.remove(row.id)).rejects.toMatchObject({
    code: 'in_use',
    message: expect.stringContaining(`process ${other.process.pid} `),
  });
  await other.end('SIGKILL');
  await store.remove(row.id);
  expect(await store.session(row.id)).toBeNull();
  await store.close();
});

test('four processes write sessions of their own at once without an error', async () => {
  const file = join(folder, 'crowd.db');
  const writers = await Promise.all([1, 2, 3, 4].map(() => start(file)));
  const rows = writers.map(() => sessionRow());
  const answers = await Promise.all(
    writers.map(async (writer, index) => {
      const id = rows[index]!.id;
      const all = [await writer.ask('createSession', rows[index])];
      for (let seq = 1; seq <= 60; seq++) all.push(await writer.ask('append', id, event(seq)));
      return all.filter((answer) => answer !== null);
    }),
  );
  expect(answers).toEqual([[], [], [], []]);
  const { store } = await openSqliteStore({ file, now: Date.now });
  expect((await store.list(9)).map((session) => session.events)).toEqual([60, 60, 60, 60]);
  await store.close();
});

test('a lock held by another process is waited for in order, then reported, and nothing is lost', async () => {
  const file = join(folder, 'locked.db');
  const { store } = await openSqliteStore({ file, now: Date.now, maxBusyMs: 300 });
  const row = sessionRow();
  await store.createSession(row);
  const holder = await start(file);
  await holder.ask('lock');
  await expect(store.append(row.id, event(1))).rejects.toMatchObject({
    code: 'busy',
    message: expect.stringContaining('locked by another process'),
  });
  expect(await store.load(row.id)).toEqual([]);
  await holder.ask('unlock');
  const { store: patient } = await openSqliteStore({ file, now: Date.now });
  await holder.ask('lock');
  const waiting = [patient.append(row.id, event(1)), patient.append(row.id, event(2))];
  await holder.ask('unlock');
  await Promise.all(waiting);
  expect((await store.load(row.id)).map((item) => item.seq)).toEqual([1, 2]);
  await Promise.all([store.close(), patient.close()]);
});
