import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { noFilters } from '../../../src/kernel/core/files/search-filters.js';
import { openDatabase } from '../../../src/kernel/store/open-database.js';
import { loadDriver } from '../../../src/kernel/store/driver.js';
import { backgroundStep } from '../../../src/kernel/store/background-index.js';
import type { Connection } from '../../../src/kernel/store/connection.js';
import { indexPending } from '../../../src/kernel/store/search-index.js';
import { openSqliteStore } from '../../../src/kernel/store/sqlite-store.js';
import { storeProcesses } from './child.js';
import { clock, event, sessionRow, temporaryFolder } from './samples.js';

const folder = temporaryFolder();
const start = storeProcesses();
const inOldDatabase = 30_000;

/** A database with events that no index knows, as one of an earlier version; the word of each is `n` and its number. */
async function oldDatabase(name: string): Promise<{ readonly file: string; readonly ids: readonly string[] }> {
  const file = join(folder, name);
  const rows = [sessionRow(), sessionRow(), sessionRow()];
  const { store } = await openSqliteStore({ file, now: clock });
  for (const row of rows) await store.createSession(row);
  await store.close();
  const db = new Database(file);
  const insert = db.prepare(
    "INSERT INTO events (session_id, seq, kind, content, created_at) VALUES (?, ?, 'user', ?, ?)",
  );
  const ids = rows.map(({ id }) => id);
  db.transaction(() => {
    for (let number = 1; number <= inOldDatabase; number++)
      insert.run(ids[Math.floor((number - 1) / (inOldDatabase / 3))], number, `word n${number}`, number);
  })();
  db.close();
  return { file, ids };
}

/** The events that the index holds and those that it should hold. */
function held(file: string): readonly [held: number, events: number] {
  const db = new Database(file, { readonly: true });
  const count = (from: string): number => db.prepare<[], number>(`SELECT count(*) FROM ${from}`).pluck().get() ?? 0;
  try {
    return [count('events_fts_docsize'), count('events')];
  } finally {
    db.close();
  }
}

test('an old database is indexed from its newest event on; a search says how much it covers', async () => {
  const { file } = await oldDatabase('old.db');
  const { store, records } = await openSqliteStore({ file, now: clock });
  expect(await store.searchCoverage()).toBe(0);
  expect(await store.search(`n${inOldDatabase}`, 5)).toMatchObject([{ seq: inOldDatabase }]);
  const shares: number[] = [await store.searchCoverage()];
  await records.completeIndex?.((share) => shares.push(share));
  expect(shares).toEqual(shares.toSorted((a, b) => a - b));
  expect([shares[0] === 0, shares.at(-1), await store.searchCoverage()]).toEqual([false, 1, 1]);
  expect(await store.search('n1', 5)).toMatchObject([{ seq: 1 }]);
  expect((await store.search('word', inOldDatabase * 2)).length).toBe(inOldDatabase);
  await store.close();
  expect(held(file)).toEqual([inOldDatabase, inOldDatabase]);
});

test('events that come, change and go while old ones are indexed are in the index once', async () => {
  const { file, ids } = await oldDatabase('changing.db');
  const [first = '', middle = '', last = ''] = ids;
  const driver = await loadDriver();
  const connection = await openDatabase({ driver, file, now: clock, maxBusyMs: 0, notify: () => undefined });
  expect(indexPending(connection, 1000)).toBe('gap');
  const { store, records } = await openSqliteStore({ file, now: clock });
  await records.redact(first, 7, { content: 'hidden', data: null });
  await records.redact(last, inOldDatabase, { content: 'veiled', data: null });
  await store.append(last, event(inOldDatabase + 1, { content: 'new' }));
  await store.remove(last);
  // Its events get the numbers of those that are gone.
  await store.append(middle, event(inOldDatabase + 2, { content: 'newest' }));
  for (let step = indexPending(connection, 1000); step !== 'done';) step = indexPending(connection, 1000);
  expect(await store.search('hidden', 5)).toMatchObject([{ seq: 7 }]);
  const found = await Promise.all(['n7', 'new', 'veiled', `n${inOldDatabase}`].map((word) => store.search(word, 5)));
  expect(found).toEqual([[], [], [], []]);
  expect((await store.search('newest', 5)).length).toBe(1);
  connection.db.close();
  await store.close();
  const left = (inOldDatabase / 3) * 2 + 1;
  expect(held(file)).toEqual([left, left]);
});

test('one process indexes in the background; another takes over when it is gone', async () => {
  const { file } = await oldDatabase('claimed.db');
  const driver = await loadDriver();
  const options = { driver, file, now: clock, maxBusyMs: 0, notify: () => undefined };
  const [one, two] = [await openDatabase(options), await openDatabase(options)];
  const step = (connection: Connection, by: string, nowMs: number, maxEvents = 1000): string =>
    backgroundStep(connection, { by, nowMs, maxEvents });
  expect(step(one, 'one', 1_000_000)).toBe('left');
  expect(step(two, 'two', 1_002_000)).toBe('elsewhere');
  expect(step(one, 'one', 1_002_500)).toBe('left');
  expect(step(two, 'two', 1_006_000)).toBe('left');
  expect(step(one, 'one', 1_006_000)).toBe('elsewhere');
  const rest = [1, 2, 3, 4].map((more) => step(two, 'two', 1_006_000 + more, inOldDatabase));
  expect([rest[0], rest.at(-1)]).toEqual(['left', 'done']);
  expect(step(one, 'one', 1_006_200)).toBe('done');
  one.db.close();
  two.db.close();
  expect(held(file)).toEqual([inOldDatabase, inOldDatabase]);
});

test('several processes that are killed while they index leave an index that the next one completes', async () => {
  const { file } = await oldDatabase('killed.db');
  for (let round = 1; round <= 3; round++) {
    const processes = await Promise.all([start(file), start(file)]);
    for (const one of processes) one.tell('index');
    for (let line = 0; line < round; line++) if ((await processes[0].next()) === 'indexed') break;
    await Promise.all(processes.map((one) => one.end('SIGKILL')));
  }
  const { store, records } = await openSqliteStore({ file, now: clock });
  await records.completeIndex?.(() => undefined);
  expect((await store.search('word', inOldDatabase * 2)).length).toBe(inOldDatabase);
  await store.close();
  expect(held(file)).toEqual([inOldDatabase, inOldDatabase]);
});

test('waits for usage limits are found, those of an older database too', async () => {
  const file = join(folder, 'limits.db');
  const { store } = await openSqliteStore({ file, now: clock });
  const row = sessionRow();
  await store.createSession(row);
  const data = { state: 'set', provider: 'openai', model: 'm', retry_at: '2026-01-01', message: 'quota of the plan' };
  await store.append(row.id, event(1, { kind: 'limit', content: 'Waiting until 10:00', data }));
  await store.append(row.id, event(2, { content: 'what is my quota' }));
  const found = async (filters = noFilters): Promise<readonly string[]> =>
    (await store.search('quota', 5, undefined, filters)).map(({ kind }) => kind);
  expect(await found()).toEqual(['user', 'limit']);
  expect(await found({ ...noFilters, kinds: ['limit'] })).toEqual(['limit']);
  expect(await found({ ...noFilters, kinds: ['limit', 'user'], after: 0 })).toEqual(['user', 'limit']);
  expect((await store.search('', 5, undefined, { ...noFilters, kinds: ['limit'] })).length).toBe(1);
  expect((await store.search('', 5, undefined, { ...noFilters, after: 1 })).length).toBe(2);
  await store.close();
});
