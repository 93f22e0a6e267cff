import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import type { Event } from '../../../src/kernel/core/event.js';
import { openSqliteStore } from '../../../src/kernel/store/sqlite-store.js';
import { storeProcesses } from './child.js';
import { clock, event, sessionRow, temporaryFolder } from './samples.js';

const folder = temporaryFolder();
const start = storeProcesses();
const text = 'osprey '.repeat(3000);
let files = 0;

async function opened() {
  const file = join(folder, `${++files}.db`);
  const open = async () => (await openSqliteStore({ file, now: clock })).store;
  const rows = (table: 'events' | 'leases'): unknown => {
    const db = new Database(file);
    const found = db.prepare(`SELECT count(*) FROM ${table}`).pluck().get();
    db.close();
    return found;
  };
  return { file, open, rows, store: await open() };
}

/** Some 6 MB. */
function* many(): Generator<Event> {
  for (let seq = 1; seq <= 300; seq++) yield event(seq, { content: text });
}

test('while a long session comes from elsewhere, another process writes, but not the same session', async () => {
  const { open, store, rows } = await opened();
  const other = await open();
  const [mine, theirs] = [sessionRow(), sessionRow()];
  await other.createSession(theirs);
  const done: string[] = [];
  const note = (what: string) => () => done.push(what);
  await Promise.all([
    store.adopt(mine, many()).then(note('adopted')),
    other.append(theirs.id, event(1)).then(note('appended')),
    other.adopt(mine, many()).catch((error: unknown) => done.push((error as { code: string }).code)),
  ]);
  expect(done).toEqual(['appended', 'in_use', 'adopted']);
  expect((await other.load(mine.id)).length).toBe(300);
  expect([rows('events'), rows('leases')]).toEqual([301, 0]);
  await Promise.all([store.close(), other.close()]);
});

test('of a session that was cut by a kill nobody sees anything, and it comes whole with the next try', async () => {
  const { file, store, rows } = await opened();
  const row = sessionRow();
  const child = await start(file);
  expect(await child.ask('adopt_until', row, 250, text)).toBe(undefined);
  expect(rows('events')).toBeGreaterThan(100);
  const seen = async () => [await store.session(row.id), await store.list(9), await store.search('osprey', 9)];
  expect(await seen()).toEqual([null, [], []]);
  await store.adopt(row, many());
  expect((await store.load(row.id)).length).toBe(300);
  expect((await store.search('osprey', 999)).length).toBe(300);
  expect([rows('events'), rows('leases')]).toEqual([300, 0]);
  await expect(store.adopt(row, many())).rejects.toMatchObject({ code: 'exists' });
  await store.close();
});

test('where an event cannot be made, nothing stays', async () => {
  const { store, rows } = await opened();
  const cut = function* (): Generator<Event> {
    yield* many();
    throw new Error('the file is cut');
  };
  await expect(store.adopt(sessionRow(), cut())).rejects.toThrow('the file is cut');
  expect([rows('events'), rows('leases'), await store.list(9)]).toEqual([0, 0, []]);
  await store.close();
});
