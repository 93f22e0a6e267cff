import { spawn } from 'node:child_process';
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Task } from '../../../src/features/scheduled-tasks/tasks.js';
import { openSqliteStore } from '../../../src/kernel/store/sqlite-store.js';
import { measure, rounds } from './bench.js';
import { taskTableSet } from '../../../src/features/scheduled-tasks/task-tables.js';

/** `npm run t:tasks`: twenty processes fire 2,000 due tasks of one database, each claim followed by an effect (a line in
 * a file). Then the same with processes that are killed at random, and others that take over. This file is both the
 * parent and the twenty. */
const workers = 20;
const listed = 20;
const dueAt = 1_800_000_000_000;

function task(id: string): Task {
  return {
    id,
    type: 'agent_task',
    description: 'counted',
    scheduleType: 'once',
    schedule: { delay: '5m' },
    execution: { prompt: 'count' },
    enabled: true,
    createdAt: dueAt - 300_000,
    lastRun: null,
    nextRun: dueAt,
    tz: 'UTC',
    cwd: '/',
    missed: 'run_once',
    maxCostUsd: null,
    grants: [],
    expiresAt: null,
    failures: 0,
    madeInSession: null,
  };
}

/** Fires until nothing is due: claim, effect, end. */
async function work(file: string, effects: string): Promise<void> {
  const { store, ...opened } = await openSqliteStore({ file, now: Date.now, maxBusyMs: 120_000 });
  const tasks = await opened.tables(taskTableSet);
  for (let due = await tasks.due(dueAt); due.length > 0; due = await tasks.due(dueAt)) {
    const from = Math.floor(Math.random() * due.length);
    for (const one of due.slice(from, from + listed)) {
      const run = await tasks.claim(one, { firedAt: dueAt + 1000, nextRun: null, status: 'running' });
      if (run === null) continue;
      appendFileSync(effects, `${one.id}\n`);
      await tasks.finish(run.id, { status: 'done', finishedAt: dueAt + 2000, costUsd: 0 });
    }
  }
  await store.close();
}

function start(file: string, effects: string): { readonly kill: () => void; readonly ended: Promise<number | null> } {
  const child = spawn(process.execPath, [process.argv[1] ?? '', 'work', file, effects], { stdio: 'inherit' });
  return {
    kill: () => child.kill('SIGKILL'),
    ended: new Promise((resolve) => {
      child.on('close', resolve);
    }),
  };
}

async function open(file: string, count: number) {
  const opened = await openSqliteStore({ file, now: Date.now });
  const tasks = await opened.tables(taskTableSet);
  for (let i = 0; i < count; i++) await tasks.add(task(`t${i}`));
  return { tasks, close: () => opened.store.close() };
}

/** How often each effect happened: tasks with none, with one, with more. */
function tally(effects: string, count: number): { readonly none: number; readonly one: number; readonly more: number } {
  const times = new Map<string, number>();
  const lines = existsSync(effects) ? readFileSync(effects, 'utf8').trim().split('\n') : [];
  for (const id of lines) times.set(id, (times.get(id) ?? 0) + 1);
  const more = [...times.values()].filter((n) => n > 1).length;
  return { none: count - times.size, one: times.size - more, more };
}

async function crowd(folder: string, count: number) {
  const file = join(folder, 'crowd.db');
  const effects = join(folder, 'crowd.txt');
  const { tasks, close } = await open(file, count);
  const begun = performance.now();
  const codes = await Promise.all(Array.from({ length: workers }, () => start(file, effects).ended));
  const seconds = (performance.now() - begun) / 1000;
  const runs = await tasks.runs({ limit: count * 2 });
  await close();
  const { none, one, more } = tally(effects, count);
  const failed = codes.filter((code) => code !== 0).length;
  return {
    line:
      `tasks: ${workers} processes, ${count} due: ${one} fired once, ${more} more often, ${none} never, ` +
      `${runs.length} runs, ${failed} processes failed, ${seconds.toFixed(1)} s`,
    ok: one === count && runs.length === count && runs.every((run) => run.status === 'done') && failed === 0,
  };
}

async function killed(folder: string, count: number) {
  const file = join(folder, 'killed.db');
  const effects = join(folder, 'killed.txt');
  const { tasks, close } = await open(file, count);
  let kills = 0;
  let interrupted = 0;
  while ((await tasks.due(dueAt)).length > 0) {
    const some = [1, 2, 3, 4].map(() => start(file, effects));
    const timer = setTimeout(
      () => {
        for (const one of some) one.kill();
      },
      600 + Math.random() * 900,
    );
    const codes = await Promise.all(some.map(({ ended }) => ended));
    clearTimeout(timer);
    kills += codes.filter((code) => code === null).length;
    interrupted += (await tasks.interruptOld(dueAt + 3000)).length;
  }
  const runs = await tasks.runs({ limit: count * 2 });
  await close();
  const { none, one, more } = tally(effects, count);
  const done = runs.filter((run) => run.status === 'done').length;
  return {
    line:
      `tasks: ${kills} processes killed, ${count} due: ${one} had their effect once, ${more} more often, ` +
      `${none} none; ${done} done, ${interrupted} interrupted`,
    ok: more === 0 && runs.length === count && done + interrupted === count && none <= interrupted,
  };
}

const [, , mode, file = '', effects = ''] = process.argv;
if (mode === 'work') await work(file, effects);
else {
  await measure((folder) => crowd(folder, rounds(2000)));
  const crowdFailed = process.exitCode !== 0;
  await measure((folder) => killed(folder, rounds(2000) / 4));
  if (crowdFailed) process.exitCode = 1;
}
