import type { ReplNotices } from '../../../src/kernel/console/feature.js';
import { expect, test } from 'vitest';
import { ReplTasks } from '../../../src/features/scheduled-tasks/scheduled-tasks-start.js';
import { loadConfig } from '../../../src/kernel/config/load.js';
import type { Task, Tasks } from '../../../src/features/scheduled-tasks/tasks.js';
import { openMemoryTasks } from '../../../src/features/scheduled-tasks/memory-tasks.js';
import { createFakeSession, type FakeSession } from '../../ui/fake-session.js';
import type { Tables } from '../../../src/kernel/store/tables.js';

function reminder(id: string, nextRun: number): Task {
  return {
    id,
    type: 'reminder',
    description: `Think of ${id}`,
    scheduleType: 'once',
    schedule: { delay: '1m' },
    execution: null,
    enabled: true,
    createdAt: nextRun,
    lastRun: null,
    nextRun,
    tz: 'UTC',
    cwd: '/work',
    missed: 'run_once',
    maxCostUsd: null,
    grants: [],
    expiresAt: null,
    failures: 0,
    madeInSession: null,
  };
}

interface Scene {
  readonly tasks: Tasks;
  readonly session: FakeSession;
  readonly repl: ReplTasks;
  /** How often the tasks were listed: each look does. */
  readonly looks: () => number;
  readonly opened: () => number;
  readonly said: readonly string[];
  /** Runs the timer that is set, and resolves once the next one is; to its delay. */
  next(): Promise<number>;
}

async function scene(...given: readonly Task[]): Promise<Scene> {
  const tasks = openMemoryTasks();
  for (const one of given) await tasks.add(one);
  const { config } = await loadConfig({
    env: {},
    cwd: '/nowhere',
    home: '/nowhere',
    set: ['tasks.notify_command=["true"]'],
  });
  const session = createFakeSession();
  const said: string[] = [];
  const timers: { readonly callback: () => void; readonly delayMs: number }[] = [];
  let armed = (): void => undefined;
  let looks = 0;
  let opened = 0;
  const counted: Tasks = { ...tasks, list: () => (looks++, tasks.list()) };
  const source = {
    settings: { config, env: { PATH: process.env.PATH }, home: process.cwd(), log: () => undefined },
    policy: { mode: () => 'dangerous' as const, planning: () => false },
    tables: (async () => (opened++, Promise.resolve(counted))) as Tables,
    runUnattended: () => Promise.reject(new Error('no task is run')),
    current: () => session,
    schedule: (callback: () => void, delayMs: number) => {
      const timer = { callback, delayMs };
      timers.push(timer);
      armed();
      return () => {
        if (timers.includes(timer)) timers.splice(timers.indexOf(timer), 1);
      };
    },
  };
  const repl = new ReplTasks(source);
  const handle: ReplNotices = {
    notice: (_level, message) => said.push(message),
    remind: ({ title, text }) => said.push(`${title}: ${text}`),
    leave: () => undefined,
  };
  repl.start(handle);
  return {
    tasks,
    session,
    repl,
    looks: () => looks,
    opened: () => opened,
    said,
    next: async () => {
      const set = new Promise<void>((resolve) => {
        armed = resolve;
      });
      timers.shift()?.callback();
      await set;
      return timers.at(-1)?.delayMs ?? 0;
    },
  };
}

const soon = (): number => Date.now() - 1000;

test('nothing is opened before the screen stands, and little is looked at where there are no tasks', async () => {
  const at = await scene();
  expect(at.opened()).toBe(0);
  expect(await at.next()).toBe(60_000);
  expect([at.said, at.looks()]).toEqual([[], 1]);
  await at.repl.close();
});

test('a reminder that came due is said between turns, never during one', async () => {
  const at = await scene(reminder('tea', soon()));
  const turn = at.session.submit('work');
  expect(await at.next()).toBe(60_000);
  expect(at.said).toEqual([]);
  await at.session.end();
  await turn;
  const { firing } = await at.repl.open();
  await at.next();
  await firing.settled();
  expect(at.said).toEqual(['Reminder: Think of tea']);
  expect(await at.tasks.runs({ unseen: true, limit: 9 })).toEqual([]);
  await at.repl.close();
});

test('a task that a turn has made is fired at its time, not at the next look', async () => {
  const at = await scene();
  expect(await at.next()).toBe(60_000);
  await at.tasks.add(reminder('bread', Math.ceil(Date.now() / 1000) * 1000 + 10_000));
  const turn = at.session.submit('remind me');
  await at.session.end();
  await turn;
  const restMs = await at.next();
  expect(restMs).toBeGreaterThan(100);
  expect(restMs).toBeLessThan(12_000);
  await at.repl.close();
});

test('what came of tasks meanwhile is said once, at the start', async () => {
  const at = await scene(reminder('milk', soon()), reminder('ever', Date.now() + 3_600_000));
  const [milk] = await at.tasks.list();
  const run = milk && (await at.tasks.claim(milk, { firedAt: Date.now(), nextRun: null, status: 'running' }));
  await at.tasks.finish(run?.id ?? '', { status: 'done', finishedAt: Date.now(), summary: 'Think of milk' });
  await at.next();
  await at.next();
  expect(at.said).toEqual(['Since the last start:\ndone: Think of milk']);
  await at.repl.close();
});
