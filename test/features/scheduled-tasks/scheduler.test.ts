import { expect, test } from 'vitest';
import type { Task, Tasks } from '../../../src/features/scheduled-tasks/tasks.js';
import { openMemoryTasks } from '../../../src/features/scheduled-tasks/memory-tasks.js';
import {
  createFiring,
  type TaskRunRequest,
  type Firing,
  type TaskOutcome,
} from '../../../src/features/scheduled-tasks/scheduler.js';

const noon = Date.UTC(2026, 0, 27, 12);
const hour = 3_600_000;
const done: TaskOutcome = { status: 'done', summary: 'All is well.', costUsd: 0.2 };

function task(id: string, change: Partial<Task> = {}): Task {
  return {
    id,
    type: 'agent_task',
    description: id,
    scheduleType: 'recurring',
    schedule: { cron: '0 * * * *', tz: 'UTC', source: 'every 1h' },
    execution: { prompt: 'look' },
    enabled: true,
    createdAt: noon,
    lastRun: null,
    nextRun: noon,
    tz: 'UTC',
    cwd: '/work',
    missed: 'run_once',
    maxCostUsd: null,
    grants: [],
    expiresAt: null,
    failures: 0,
    madeInSession: null,
    ...change,
  };
}

interface Scene {
  readonly tasks: Tasks;
  readonly firing: Firing;
  /** Turns the clock of the wall. */
  at(ms: number): void;
  readonly told: string[];
  readonly errands: TaskRunRequest[];
}

/** Fires tasks that come due at each full hour of UTC. */
async function scene(
  given: readonly Task[],
  work: (errand: TaskRunRequest) => Promise<TaskOutcome> = () => Promise.resolve(done),
  limits = { maxCostUsd: 0.5, maxCostUsdPerDay: 5 },
): Promise<Scene> {
  const tasks = openMemoryTasks();
  for (const one of given) await tasks.add(one);
  let now = noon;
  const told: string[] = [];
  const errands: TaskRunRequest[] = [];
  const firing = createFiring({
    tasks,
    now: () => now,
    nextAfter: (_task, after) => (Math.floor(after / hour) + 1) * hour,
    work: async (errand) => {
      errands.push(errand);
      return await work(errand);
    },
    tell: ({ title, text }) => {
      told.push(`${title}: ${text}`);
      return Promise.resolve(title === 'Reminder');
    },
    asks: true,
    limits,
    log: () => undefined,
  });
  return {
    tasks,
    firing,
    told,
    errands,
    at: (ms) => {
      now = ms;
    },
  };
}

async function fire({ firing }: Scene): Promise<void> {
  await firing.check();
  await firing.settled();
}

const statuses = async ({ tasks }: Scene): Promise<readonly string[]> =>
  (await tasks.runs({ limit: 100 })).map(({ taskId, status }) => `${taskId} ${status}`);

test('a reminder is said at its time, once, and no model is asked', async () => {
  const oven = task('oven', { type: 'reminder', scheduleType: 'once', execution: { message: 'Take it out' } });
  const at = await scene([{ ...oven, nextRun: noon + 1000 }]);
  await fire(at);
  expect(at.told).toEqual([]);
  expect(await at.firing.restMs()).toBe(1000);
  at.at(noon + 1000);
  await fire(at);
  await fire(at);
  expect([at.told, at.errands]).toEqual([['Reminder: Take it out'], []]);
  expect(await at.tasks.runs({ unseen: true, limit: 9 })).toEqual([]);
  expect(await at.tasks.list()).toMatchObject([{ id: 'oven', enabled: false }]);
  expect(await at.firing.restMs()).toBe(15_000);
});

test('five reminders are said at once, the next begins when one is said, and a run tells in its turn', async () => {
  const tasks = openMemoryTasks();
  const said: (() => void)[] = [];
  let most = 0;
  const open = new Set<number>();
  const names = Array.from({ length: 12 }, (_, at) => `r${String(at).padStart(2, '0')}`);
  for (const id of names) await tasks.add(task(id, { type: 'reminder', scheduleType: 'once' }));
  await tasks.add(task('run', { nextRun: noon }));
  let began = (): void => undefined;
  const firing = createFiring({
    ...{ tasks, now: () => noon, nextAfter: () => noon + hour, work: () => Promise.resolve(done) },
    tell: () => {
      const number = said.length;
      open.add(number);
      most = Math.max(most, open.size);
      return new Promise((resolve) => {
        said.push(() => {
          open.delete(number);
          resolve(true);
        });
        began();
      });
    },
    ...{ asks: true, limits: { maxCostUsd: 1, maxCostUsdPerDay: 1 }, log: () => undefined },
  });
  await firing.check();
  const running = (await tasks.runs({ limit: 100 })).filter(({ status }) => status === 'running').length;
  expect([said.length, running - 1]).toEqual([5, 5]);
  for (let next = 0; next <= names.length; next++) {
    while (said.length <= next)
      await new Promise<void>((resolve) => {
        began = resolve;
      });
    said[next]?.();
  }
  await firing.settled();
  expect([said.length, most]).toEqual([13, 5]);
  const counts = (await tasks.runs({ limit: 100 })).map(({ taskId, status }) => `${taskId} ${status}`);
  expect(counts.toSorted()).toEqual([...names, 'run'].map((id) => `${id} done`));
});

test('a stop ends the notices under way at once, and their reminders count as given', async () => {
  const tasks = openMemoryTasks();
  for (const id of ['a', 'b']) await tasks.add(task(id, { type: 'reminder', scheduleType: 'once' }));
  const firing = createFiring({
    ...{ tasks, now: () => noon, nextAfter: () => null, work: () => Promise.resolve(done) },
    tell: (_said, _fired, signal) =>
      new Promise((resolve) => {
        signal.addEventListener('abort', () => {
          resolve(false);
        });
      }),
    ...{ asks: true, limits: { maxCostUsd: 1, maxCostUsdPerDay: 1 }, log: () => undefined },
  });
  await firing.check();
  await firing.stop();
  expect((await tasks.runs({ limit: 9 })).map(({ status }) => status)).toEqual(['done', 'done']);
});

test('a run is told with its summary, keeps its cost, and the task goes on at the next time', async () => {
  const at = await scene([task('news')]);
  await fire(at);
  expect(at.told).toEqual(['A task is done: news: All is well.']);
  expect(at.errands).toMatchObject([{ missed: 0, maxCostUsd: 0.5 }]);
  expect(await at.tasks.list()).toMatchObject([{ nextRun: noon + hour, lastRun: noon }]);
  expect(await at.tasks.runs({ unseen: true, limit: 9 })).toMatchObject([
    { status: 'done', costUsd: 0.2, summary: 'All is well.', finishedAt: noon },
  ]);
});

test('missed runs are made good by one, left out, or asked about once, as the task says', async () => {
  const at = await scene([
    task('good'),
    task('left', { missed: 'skip' }),
    task('asks', { missed: 'ask' }),
    task('rings', { type: 'reminder', execution: { message: 'Ring' } }),
  ]);
  at.at(noon + 2.5 * hour);
  await fire(at);
  await fire(at);
  expect(at.errands.map(({ task: { id }, missed }) => [id, missed])).toEqual([['good', 3]]);
  expect(await statuses(at)).toEqual(expect.arrayContaining(['good done', 'left skipped', 'rings done']) as unknown);
  expect(at.told.filter((text) => text.includes('asks'))).toEqual([
    'A task asks: asks: 3 runs were missed since 27 Jan 2026, 12:00. `agent tasks run asks` runs it now, ' +
      '`agent tasks resume asks` waits for the next time.',
  ]);
  expect(at.told).toContain('Reminder: Ring (3 runs were missed since 27 Jan 2026, 12:00.)');
  const next = (await at.tasks.list()).map(({ id, nextRun }) => [id, nextRun]);
  expect(next).toEqual(
    expect.arrayContaining([
      ['asks', noon],
      ['good', noon + 3 * hour],
      ['left', noon + 3 * hour],
    ]) as unknown,
  );
  expect((await at.tasks.list()).find(({ id }) => id === 'left')?.lastRun).toBe(null);
});

test('a clock that goes back an hour fires nothing twice, one that leaps a month fires each task once', async () => {
  const at = await scene([task('news')]);
  await fire(at);
  at.at(noon - hour);
  await fire(at);
  expect(at.errands).toHaveLength(1);
  expect(await at.firing.restMs()).toBe(15_000);
  at.at(noon + 30 * 24 * hour);
  await fire(at);
  await fire(at);
  expect(at.errands.map(({ missed }) => missed)).toEqual([0, 720]);
});

test('two runs go on at once, the next begins when one has ended, and a stop ends them', async () => {
  const ends: ((outcome: TaskOutcome) => void)[] = [];
  const at = await scene(
    ['a', 'b', 'c'].map((id) => task(id)),
    ({ signal }) =>
      new Promise((resolve) => {
        ends.push(resolve);
        signal.addEventListener('abort', () => {
          resolve({ status: 'interrupted', summary: 'Stopped.', costUsd: null });
        });
      }),
  );
  await at.firing.check();
  await at.firing.check();
  expect(ends).toHaveLength(2);
  const began = new Promise<void>((resolve) => {
    const push = ends.push.bind(ends);
    ends.push = (...items) => {
      resolve();
      return push(...items);
    };
  });
  ends[0]?.(done);
  await began;
  await at.firing.stop();
  expect((await statuses(at)).toSorted()).toEqual(['a done', 'b interrupted', 'c interrupted']);
  expect(at.told).toEqual(['A task is done: a: All is well.']);
});

test('three failures in a row pause a task; a run that works forgets them', async () => {
  const outcomes = ['failed', 'failed', 'done', 'failed', 'failed', 'failed'] as const;
  let run = 0;
  const at = await scene([task('frail')], () =>
    Promise.resolve({ status: outcomes[run++] ?? 'done', summary: 'No.', costUsd: 0 }),
  );
  for (let at_ = 0; at_ < 10; at_++) {
    at.at(noon + at_ * hour);
    await fire(at);
  }
  expect(at.errands).toHaveLength(6);
  expect(at.told.at(-1)).toMatch(/^A task is paused: frail has failed 3 times in a row/);
  expect(await at.tasks.list()).toMatchObject([{ enabled: false, failures: 3 }]);
});

test('a run may cost what its task says, all of a day no more than the day', async () => {
  const cost: TaskOutcome = { ...done, costUsd: 0.4 };
  const at = await scene([task('dear', { maxCostUsd: 0.7 })], () => Promise.resolve(cost), {
    maxCostUsd: 0.5,
    maxCostUsdPerDay: 1,
  });
  for (const hours of [0, 1, 2, 3]) {
    at.at(noon + hours * hour);
    await fire(at);
  }
  expect(at.errands.map(({ maxCostUsd }) => Number(maxCostUsd.toFixed(2)))).toEqual([0.7, 0.6, 0.2]);
  expect(at.told.at(-1)).toBe(
    'A task has reached its limit: dear: Not run: the tasks of today have cost $1.20 of $1.00.',
  );
  at.at(noon + 24 * hour);
  await fire(at);
  expect(at.errands).toHaveLength(4);
});

test('what a run has cost so far counts for the day, also where its process is killed', async () => {
  const at = await scene([task('first'), task('second')], async ({ task: { id }, note }) => {
    if (id === 'second') return done;
    await note({ sessionId: 's1' });
    await note({ costUsd: 4.8 });
    return await new Promise<TaskOutcome>(() => undefined);
  });
  await at.firing.check();
  expect(await at.tasks.spentSince(noon)).toBe(4.8);
  expect(await at.tasks.runs({ taskId: 'first', limit: 1 })).toMatchObject([{ status: 'running', sessionId: 's1' }]);
});

test('a task of a model ends after its time, and a need for a yes names the run', async () => {
  const at = await scene([task('old', { expiresAt: noon }), task('rm')], () =>
    Promise.resolve({ status: 'needs_approval', summary: 'One call was not run.', costUsd: 0 }),
  );
  await fire(at);
  const [run] = await at.tasks.runs({ limit: 1 });
  expect(at.told).toEqual([
    'A task has ended: old was created by a model and has expired. `agent tasks resume old` makes it permanent.',
    `A task needs your approval: rm: One call was not run. \`agent tasks approve ${run?.id}\` shows the call.`,
  ]);
  expect((await at.tasks.list()).map(({ id, enabled, failures }) => [id, enabled, failures])).toEqual([
    ['rm', true, 0],
    ['old', false, 0],
  ]);
});

test('a task can be done now, whatever its state, and keeps that state', async () => {
  const later = noon + 5 * hour;
  const at = await scene([
    task('paused', { enabled: false, nextRun: noon - hour }),
    task('once', { scheduleType: 'once', enabled: false, schedule: { delay: '5m' }, nextRun: noon - hour }),
    task('later', { nextRun: later }),
  ]);
  for (const one of await at.tasks.list()) expect(await at.firing.runNow(one)).not.toBe(null);
  await at.firing.settled();
  expect(at.errands.map(({ missed }) => missed)).toEqual([0, 0, 0]);
  const left = (await at.tasks.list()).map(({ id, enabled, nextRun }) => [id, enabled, nextRun]);
  expect(left).toEqual(
    expect.arrayContaining([
      ['later', true, later],
      ['paused', false, noon + hour],
      ['once', false, noon],
    ]) as unknown,
  );
});
