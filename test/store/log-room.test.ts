import { copyFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { openSqliteStore } from '../../src/store/sqlite-store.js';
import { clock, event, sessionRow, temporaryFolder } from './samples.js';

const folder = temporaryFolder();

/** Bytes of the write-ahead log behind its last frame. */
function roomOf(file: string): number {
  const db = new Database(file);
  const [{ log }] = db.pragma('wal_checkpoint(NOOP)') as [{ readonly log: number }];
  db.close();
  return statSync(`${file}-wal`).size - 32 - log * 4120;
}

test('there is room in the log ahead of what is written, and what a kill leaves is all that was', async () => {
  const file = join(folder, 'agent.db');
  const { store } = await openSqliteStore({ file, now: clock });
  const row = sessionRow();
  await store.createSession(row);
  for (let seq = 1; seq <= 60; seq++) {
    await store.append(row.id, event(seq, { content: 'x'.repeat(2000) }));
    await turn();
    expect(roomOf(file) > 0, `event ${seq}`).toBe(seq >= 3);
  }
  const killed = join(folder, 'killed.db');
  for (const end of ['', '-wal']) copyFileSync(file + end, killed + end);
  const { store: after, notices } = await openSqliteStore({ file: killed, now: clock });
  expect(notices).toEqual([]);
  expect(await after.load(row.id)).toHaveLength(60);
  await Promise.all([store.close(), after.close()]);
});

test('the room one process makes takes nothing away that another writes', async () => {
  const file = join(folder, 'shared.db');
  const opened = await Promise.all([1, 2].map(() => openSqliteStore({ file, now: clock })));
  const rows = opened.map(() => sessionRow());
  await Promise.all(
    opened.map(async ({ store }, index) => {
      const row = rows[index] ?? sessionRow();
      await store.createSession(row);
      for (let seq = 1; seq <= 80; seq++) {
        await store.append(row.id, event(seq, { content: 'y'.repeat(3000) }));
        await turn();
      }
    }),
  );
  for (const [index, { store }] of opened.entries()) expect(await store.load(rows[index]?.id ?? '')).toHaveLength(80);
  await Promise.all(opened.map(({ store }) => store.close()));
});
