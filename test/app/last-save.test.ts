import Database from 'better-sqlite3';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createRecorder } from '../../src/kernel/agent/recorder.js';
import { createLastSave } from '../../src/app/last-save.js';
import type { Schedule } from '../../src/kernel/core/runtime.js';
import type { AgentEvent } from '../../src/kernel/core/session-port.js';
import { openSqliteStore } from '../../src/kernel/store/sqlite-store.js';
import { tree } from '../kernel/tools/workbench.js';

/** Two sessions in one database, and another connection that can lock it. Time passes by `wait` alone. */
async function scene(schedule?: Schedule) {
  const file = join(tree(), 'agent.db');
  const { store } = await openSqliteStore({ file, now: Date.now, maxBusyMs: 0 });
  const told: AgentEvent[] = [];
  const recorders = ['01A', '01B'].map((id) => {
    const row = { id, parentId: null, cwd: '/', title: null, provider: null, model: null, createdAt: 1, updatedAt: 1 };
    return createRecorder({
      store,
      sessionId: id,
      now: Date.now,
      emit: (event) => told.push(event),
      restored: [],
      begin: () => store.createSession(row),
      ...(schedule ? { schedule } : {}),
    });
  });
  const say = async (): Promise<void> => {
    for (const recorder of recorders) await recorder.append({ kind: 'user', content: 'x', data: null });
  };
  const holder = new Database(file);
  let nowMs = 0;
  const reports: string[] = [];
  const waits: number[] = [];
  const saveWith = (onWait: () => void) =>
    createLastSave(recorders, {
      clock: () => nowMs,
      wait: (ms) => {
        nowMs += 40 * ms; // each try takes its time
        waits.push(ms);
        onWait();
        return Promise.resolve();
      },
      report: (text) => reports.push(text),
    });
  const notices = (): readonly string[] => told.flatMap((event) => (event.type === 'notice' ? [event.code] : []));
  const saved = async (): Promise<number> => (await store.load('01A')).length + (await store.load('01B')).length;
  const flush = async (): Promise<void> => {
    for (const recorder of recorders) await recorder.flush();
  };
  return { holder, say, flush, saveWith, reports, waits, notices, saved };
}

test('events behind a lock are saved as soon as it goes, whenever that is', async () => {
  for (const after of [1, 2, 3]) {
    const at = await scene();
    await at.say();
    at.holder.exec('BEGIN IMMEDIATE');
    await at.say();
    const save = at.saveWith(() => {
      if (at.waits.length === after) at.holder.exec('COMMIT');
    });
    expect([await save(), at.reports, at.waits.length, await at.saved()]).toEqual([0, [], after, 4]);
  }
});

test('what stays locked is counted and named once, after ten seconds; it is said when it is saved after all', async () => {
  const at = await scene();
  await at.say();
  at.holder.exec('BEGIN IMMEDIATE');
  await at.say();
  const save = at.saveWith(() => undefined);
  expect([await save(), at.waits.length]).toEqual([2, 3]);
  const which = (id: string): string =>
    `agent: 1 event of session ${id} could not be saved \\(user\\): .* is locked by another process\n`;
  expect(at.reports).toEqual([expect.stringMatching(new RegExp(`^${which('01A')}${which('01B')}Wait for .*\n$`))]);
  expect([await save(), at.waits.length, at.reports.length]).toEqual([2, 3, 1]);
  at.holder.exec('COMMIT');
  expect([await save(), at.reports.at(-1), await at.saved()]).toEqual([
    0,
    'agent: all events of the session are saved now\n',
    4,
  ]);
});

test('a session warns of a lock only where it stays, saves without another event once it is gone, and says so', async () => {
  const due: (() => void)[] = [];
  const schedule: Schedule = (callback) => {
    due.push(callback);
    return () => {
      due.splice(due.indexOf(callback), 1);
    };
  };
  /** Turns the clock to the next try of each session. */
  const tick = async (at: Awaited<ReturnType<typeof scene>>): Promise<void> => {
    due.splice(0).forEach((callback) => {
      callback();
    });
    await at.flush();
  };
  const short = await scene(schedule);
  await short.say();
  short.holder.exec('BEGIN IMMEDIATE');
  await short.say();
  short.holder.exec('COMMIT');
  await tick(short);
  expect([short.notices(), await short.saved(), due.length]).toEqual([[], 4, 0]);

  const long = await scene(schedule);
  await long.say();
  long.holder.exec('BEGIN IMMEDIATE');
  await long.say();
  for (let count = 0; count < 10; count++) await tick(long);
  expect(long.notices()).toEqual(['store_failed', 'store_failed']);
  long.holder.exec('COMMIT');
  await tick(long);
  expect([long.notices().slice(2), await long.saved()]).toEqual([['store_saved', 'store_saved'], 4]);
});
