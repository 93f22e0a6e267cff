import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { createRecorder } from '../../../src/kernel/agent/recorder.js';
import type { AgentEvent } from '../../../src/kernel/core/session-port.js';
import { project } from '../../../src/kernel/core/projection.js';
import { openSqliteStore } from '../../../src/kernel/store/sqlite-store.js';
import { clock, sessionRow, temporaryFolder } from './samples.js';

const folder = temporaryFolder();
const yearMs = 365 * 86_400_000;

test('a clock that jumps changes neither the order of events nor which session is the newest', async () => {
  const file = join(folder, 'clock.db');
  const { store, records } = await openSqliteStore({ file, now: clock });
  const times = [0, -yearMs, yearMs, -1, -2, 5 * yearMs, -5 * yearMs].map((shift) => clock() + shift);
  const [early, late] = [sessionRow(), sessionRow()];
  for (const [row, shifts] of [
    [early, [5 * yearMs]],
    [late, times],
  ] as const) {
    const left = [...shifts].map((time, index) => (row === early ? clock() + time + index : time));
    const recorder = createRecorder({
      store,
      sessionId: row.id,
      now: () => left.shift() ?? 0,
      emit: () => undefined,
      restored: [],
      begin: () => store.createSession(row),
    });
    for (const [index] of shifts.entries())
      await recorder.append({ kind: 'user', content: `said ${index + 1}`, data: null });
    expect(project(await store.load(row.id))).toEqual(recorder.conversation());
  }
  const loaded = await store.load(late.id);
  expect([loaded.map(({ seq, content }) => `${seq} ${content ?? ''}`), loaded.map((event) => event.createdAt)]).toEqual(
    [times.map((_, index) => `${index + 1} said ${index + 1}`), times],
  );
  expect([(await store.newest(late.cwd))?.id, (await store.list(9)).map((row) => row.id)]).toEqual([
    late.id,
    [late.id, early.id],
  ]);
  expect(await records.verify(null)).toMatchObject({ events: 8, breaks: [] });
  await store.close();
});

test('a lock held longer than every wait causes one warning, and the session loses nothing', async () => {
  const file = join(folder, 'held.db');
  const { store } = await openSqliteStore({ file, now: clock, maxBusyMs: 10 });
  const row = sessionRow();
  const said: AgentEvent[] = [];
  const recorder = createRecorder({
    store,
    sessionId: row.id,
    now: clock,
    emit: (event) => {
      said.push(event);
    },
    restored: [],
    begin: () => store.createSession(row),
  });
  const say = (count: number): Promise<unknown> =>
    Promise.all(
      Array.from({ length: count }, (_, index) =>
        recorder.append({ kind: 'user', content: `part ${index}`, data: null }),
      ),
    );
  await say(2);
  const holder = new Database(file);
  holder.exec('BEGIN IMMEDIATE');
  await say(12);
  expect([recorder.unsaved().length, recorder.events().length, (await store.load(row.id)).length]).toEqual([12, 14, 2]);
  holder.exec('COMMIT');
  holder.close();
  await say(1);
  expect([recorder.unsaved().length, await store.load(row.id)]).toEqual([0, recorder.events()]);
  expect(said.filter((event) => event.type === 'notice')).toMatchObject([
    { level: 'warn', code: 'store_failed', message: expect.stringContaining('locked by another process') },
    { level: 'warn', code: 'store_saved' },
  ]);
  await store.close();
});
