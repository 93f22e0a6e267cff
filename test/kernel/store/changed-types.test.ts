import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { openSqliteStore } from '../../../src/kernel/store/sqlite-store.js';
import { clock, event, sessionRow, temporaryFolder } from './samples.js';

const folder = temporaryFolder();
let files = 0;

/** Whoever changes a database from outside may give a value another type than the program writes. */
test.each([
  ['hash', 'substr(hex(hash), 1, 16)', 'chain'],
  ['hash', '5', 'chain'],
  ['content', 'CAST(content AS BLOB)', 'content'],
  ['content', '7', 'content'],
  ['data_json', 'CAST(data_json AS BLOB)', 'content'],
  ['kind', 'CAST(kind AS BLOB)', 'content'],
  ['created_at', "'yesterday'", 'content'],
  ['created_at', '1.5', 'content'],
  ['redacted', '5', 'chain'],
])('a %s that became %s is a break; the session is read and goes on', async (column, value, kind) => {
  const file = join(folder, `${++files}.db`);
  const row = sessionRow();
  const written = await openSqliteStore({ file, now: clock });
  await written.store.createSession(row);
  for (let seq = 1; seq <= 5; seq++) await written.store.append(row.id, event(seq, { data: { seq } }));
  await written.store.close();
  const db = new Database(file);
  db.prepare(`UPDATE events SET ${column} = ${value} WHERE session_id = ? AND seq = 5`).run(row.id);
  db.close();
  const { store, records } = await openSqliteStore({ file, now: clock });
  expect((await records.verify(null)).breaks).toMatchObject([{ seq: 5, kind }]);
  const last = (await store.load(row.id)).at(-1);
  expect([typeof last?.kind, typeof last?.content, Number.isSafeInteger(last?.createdAt)]).toEqual([
    'string',
    'string',
    true,
  ]);
  await store.append(row.id, event(6));
  expect((await store.tail(row.id, 1)).map(({ seq }) => seq)).toEqual([6]);
  await store.close();
});

test('a long session with a content that became bytes is read', async () => {
  const file = join(folder, 'long.db');
  const row = sessionRow();
  const adoptedId = row.id.replace(/.$/, (last) => (last === 'Z' ? 'Y' : 'Z'));
  const { store } = await openSqliteStore({ file, now: clock });
  await store.createSession(row);
  await store.adopt(
    sessionRow({ id: adoptedId }),
    Array.from({ length: 4_200 }, (_, index) => event(index + 1)),
  );
  await store.close();
  const db = new Database(file);
  db.prepare('UPDATE events SET content = CAST(content AS BLOB) WHERE seq = 4100').run();
  db.close();
  const again = await openSqliteStore({ file, now: clock });
  const events = await again.store.load(adoptedId);
  expect([events.length, events[4_099]?.content]).toEqual([4_200, 'prompt 4100']);
  await again.store.close();
});
