import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import type { Task, Tasks } from '../../../src/features/scheduled-tasks/tasks.js';
import { openMemoryTasks } from '../../../src/features/scheduled-tasks/memory-tasks.js';
import { openSqliteStore } from '../../../src/kernel/store/sqlite-store.js';
import { storeProcesses } from '../../kernel/store/child.js';
import { remoteStores } from '../team-store/remote.js';
import { clock, noon, task, temporaryFolder } from '../../kernel/store/samples.js';
import { taskTableSet } from '../../../src/features/scheduled-tasks/task-tables.js';

const folder = temporaryFolder();
const start = storeProcesses();
let files = 0;
const stores: readonly (readonly [string, () => Promise<Tasks>])[] = [
  ['memory', async () => openMemoryTasks()],
  [
    'SQLite',
    async () => (await openSqliteStore({ file: join(folder, `${++files}.db`), now: clock })).tables(taskTableSet),
  ],
  ...remoteStores(9, ({ tables }) => tables(taskTableSet)),
];

const minute = 60_000;

async function withTasks(open: () => Promise<Tasks>, ...list: readonly Task[]): Promise<Tasks> {
  const tasks = await open();
  for (const item of list) await tasks.add(item);
  return tasks;
}

async function ids(list: Promise<readonly { readonly id: string }[]>): Promise<readonly string[]> {
  return (await list).map(({ id }) => id);
}

const running = { firedAt: noon + minute, nextRun: noon + 10 * minute, status: 'running' } as const;

describe.each(stores)('the tasks of the %s store', (_name, open) => {
  test('come back as they were added, the next first, those switched off last', async () => {
    const full = task('b2', {
      type: 'agent_task',
      description: 'über «x»',
      scheduleType: 'once',
      schedule: { delay: '5m' },
      execution: { prompt: 'read', other: [1, null] },
      lastRun: noon - minute,
      nextRun: noon + minute,
      missed: 'ask',
      maxCostUsd: 0.25,
      grants: ['ab', 'cd'],
      expiresAt: noon + 30 * 24 * 60 * minute,
      failures: 2,
      madeInSession: '01K6XYZABCDEFGHJKMNPQRSTVW',
    });
    const off = task('a1', { enabled: false, nextRun: noon - minute });
    const tasks = await withTasks(open, full, off, task('c3'));
    expect(await tasks.list()).toMatchObject([task('c3'), full, off]);
    await expect(tasks.add(task('c3'))).rejects.toMatchObject({ code: 'exists' });
  });

  test('are found by id and by a prefix of one alone', async () => {
    const tasks = await withTasks(open, task('abc123'), task('abd456'), task('abc'));
    expect(await tasks.find('abc')).toMatchObject({ found: 'one', task: task('abc') });
    expect(await tasks.find(' ABD ')).toMatchObject({ found: 'one', task: task('abd456') });
    expect(await tasks.find('ab')).toMatchObject({
      found: 'many',
      tasks: [{ id: 'abc' }, { id: 'abc123' }, { id: 'abd456' }],
    });
    expect(await tasks.find('abc132')).toEqual({ found: 'none', nearest: ['abc123'] });
    expect(await tasks.find('')).toMatchObject({ found: 'none' });
  });

  test('change and go, and say whether they were there; what runs did and cost stays', async () => {
    const tasks = await withTasks(open, task('a'));
    expect(await tasks.change('a', { enabled: false, grants: ['ff'], nextRun: noon + 5, maxCostUsd: 1 })).toBe(true);
    expect(await tasks.list()).toMatchObject([task('a', { enabled: false, grants: ['ff'], maxCostUsd: 1 })]);
    expect(await tasks.change('b', { enabled: true })).toBe(false);
    await tasks.change('a', { enabled: true });
    const run = await tasks.claim(task('a'), running);
    await tasks.finish(run?.id ?? '', { status: 'done', costUsd: 0.5, finishedAt: noon + 2 * minute });
    expect([await tasks.remove('a'), await tasks.remove('a'), await tasks.list()]).toEqual([true, false, []]);
    expect([await tasks.spentSince(noon + minute), await tasks.spentSince(noon + 2 * minute)]).toEqual([0.5, 0]);
    expect(await tasks.runs({ limit: 9 })).toHaveLength(1);
  });

  test('are due from their second on, unless they are switched off', async () => {
    const tasks = await withTasks(
      open,
      task('later', { nextRun: noon + 1000 }),
      task('off', { enabled: false }),
      task('now'),
      task('long', { nextRun: noon - 30 * 24 * 60 * minute }),
    );
    expect(await ids(tasks.due(noon + 999))).toEqual(['long', 'now']);
    expect(await ids(tasks.due(noon + 1000))).toEqual(['long', 'now', 'later']);
    expect(await ids(tasks.due(noon - 60 * minute))).toEqual(['long']);
  });

  test('fire once: a claim moves the next run, and a second one for the same time gets nothing', async () => {
    const tasks = await withTasks(open, task('a'));
    const run = await tasks.claim(task('a'), running);
    expect(run).toMatchObject({
      id: expect.stringMatching(/^[0-9A-Z]{26}$/) as string,
      taskId: 'a',
      scheduledFor: noon,
      firedAt: noon + minute,
      finishedAt: null,
      status: 'running',
      sessionId: null,
      costUsd: null,
      summary: null,
      seen: false,
    });
    expect(await tasks.claim(task('a'), running)).toBeNull();
    expect(await tasks.list()).toMatchObject([task('a', { lastRun: noon + minute, nextRun: noon + 10 * minute })]);
    expect(await ids(tasks.due(noon + 9 * minute))).toEqual([]);
  });

  test('that are gone, switched off or changed meanwhile are not claimed', async () => {
    const tasks = await withTasks(open, task('off', { enabled: false }), task('moved', { nextRun: noon + minute }));
    const claims = ['gone', 'off', 'moved'].map((id) => tasks.claim(task(id), running));
    expect(await Promise.all(claims)).toEqual([null, null, null]);
    expect(await tasks.runs({ limit: 9 })).toEqual([]);
  });

  test('a single one is switched off by its claim, and a skipped one did not run', async () => {
    const tasks = await withTasks(
      open,
      task('once', { scheduleType: 'once', schedule: { delay: '5m' } }),
      task('skip'),
    );
    await tasks.claim(task('once'), { ...running, nextRun: null });
    expect(await tasks.claim(task('skip'), { ...running, status: 'skipped' })).toMatchObject({
      status: 'skipped',
      finishedAt: noon + minute,
    });
    expect(await tasks.list()).toMatchObject([
      { id: 'skip', enabled: true, lastRun: null },
      { id: 'once', enabled: false, lastRun: noon + minute, nextRun: noon },
    ]);
  });

  test('a task has one run at a time, and no more than a number of them work at once', async () => {
    const work = (id: string): Task => task(id, { type: 'agent_task' });
    const tasks = await withTasks(open, work('a'), work('b'), work('c'), task('bell'));
    const claim = (id: string, nextRun = noon): ReturnType<Tasks['claim']> =>
      tasks.claim({ id, nextRun }, { ...running, atOnce: 2 });
    const first = await claim('a');
    expect(await claim('a', running.nextRun)).toBeNull();
    expect([await claim('b'), await claim('c')]).toMatchObject([{ taskId: 'b' }, null]);
    expect(await tasks.claim(task('bell'), running)).not.toBeNull();
    expect(await tasks.claim({ id: 'a', nextRun: running.nextRun }, { ...running, status: 'skipped' })).not.toBeNull();
    await tasks.finish(first?.id ?? '', { status: 'done', finishedAt: noon + 2 * minute });
    expect(await claim('c')).toMatchObject({ taskId: 'c' });
  });

  test('runs are listed newest first, and unseen ones are those over that no one was notified of', async () => {
    const tasks = await withTasks(open, task('a'), task('b'), task('c'));
    const runs = await Promise.all(['a', 'b', 'c'].map((id) => tasks.claim(task(id), running)));
    const [one, two] = runs.map((run) => run?.id ?? '');
    const end = { finishedAt: noon + 2 * minute, sessionId: 's1', costUsd: 0.01, summary: 'fine' };
    await tasks.finish(one ?? '', { ...end, status: 'done' });
    await tasks.finish(two ?? '', { ...end, status: 'needs_approval' });
    expect((await tasks.runs({ limit: 9 })).map((run) => [run.taskId, run.status])).toEqual([
      ['c', 'running'],
      ['b', 'needs_approval'],
      ['a', 'done'],
    ]);
    expect(await tasks.runs({ taskId: 'a', limit: 9 })).toMatchObject([{ ...end, status: 'done', seen: false }]);
    expect((await tasks.runs({ unseen: true, limit: 1 })).map((run) => run.taskId)).toEqual(['b']);
    await tasks.markSeen([two ?? '']);
    expect((await tasks.runs({ unseen: true, limit: 9 })).map((run) => run.taskId)).toEqual(['a']);
    expect(await tasks.interruptOld(noon)).toEqual([]);
  });
});

async function opened(): Promise<{ readonly file: string; readonly tasks: Tasks; readonly db: Database.Database }> {
  const file = join(folder, `${++files}.db`);
  const store = await openSqliteStore({ file, now: clock });
  return { file, tasks: await store.tables(taskTableSet), db: new Database(file) };
}

test('a database without tasks gets no tables from being asked', async () => {
  const { tasks, db } = await opened();
  await Promise.all([tasks.list(), tasks.due(noon), tasks.find('a'), tasks.runs({ limit: 1 }), tasks.spentSince(0)]);
  expect(await tasks.interruptOld(noon)).toEqual([]);
  expect(db.prepare("SELECT name FROM sqlite_schema WHERE name LIKE '%task%'").all()).toEqual([]);
});

test('the table is the one of seed 002, with UTC text', async () => {
  const { tasks, db } = await opened();
  await tasks.add(task('abc123', { scheduleType: 'once', schedule: { delay: '5m' }, nextRun: noon + 999 }));
  expect(db.prepare('SELECT * FROM scheduled_tasks').all()).toEqual([
    {
      id: 'abc123',
      task_type: 'reminder',
      description: 'check the oven',
      schedule_type: 'once',
      schedule_data: '{"delay":"5m"}',
      execution_data: null,
      enabled: 1,
      created_at: '2026-01-27 12:00:00',
      last_run: null,
      next_run: '2026-01-27 12:00:00',
    },
  ]);
});

test('rows that another program wrote into it run; those that mean nothing are left out', async () => {
  const { tasks, db } = await opened();
  await tasks.add(task('ours'));
  const insert = db.prepare(
    'INSERT INTO scheduled_tasks (id, task_type, description, schedule_type, schedule_data, execution_data, next_run) VALUES (?, ?, ?, ?, ?, ?, ?)',
  );
  const row = (id: string, type: string, schedule: string, next = '2026-01-27 13:00:00'): void => {
    insert.run(id, type, 'theirs', 'recurring', schedule, '{"query":"news"}', next);
  };
  row('pattern', 'web_search', '{"pattern":"weekdays","time":"09:05"}');
  row('cron', 'web_search', '{"cron":"*/15 * * * *"}');
  row('type', 'dance', '{"cron":"*/15 * * * *"}');
  row('schedule', 'reminder', '{"pattern":"sometimes","time":"09:05"}');
  row('text', 'reminder', 'nothing');
  row('time', 'reminder', '{"delay":"5m"}', 'soon');
  const tz = Intl.DateTimeFormat().resolvedOptions().timeZone;
  expect(await tasks.list()).toMatchObject([
    { id: 'ours' },
    { id: 'cron', schedule: { cron: '*/15 * * * *', tz, source: '*/15 * * * *' }, execution: { query: 'news' } },
    { id: 'pattern', schedule: { cron: '5 9 * * 1-5', tz, source: 'weekdays 09:05' }, missed: 'run_once', failures: 0 },
  ]);
});

test('of the runs of one task the newest thousand are kept', async () => {
  const { tasks, db } = await opened();
  await tasks.add(task('a'));
  db.exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1200)
    INSERT INTO task_runs (id, task_id, scheduled_for, fired_at, status) SELECT 'r' || i, 'a', '', '', 'done' FROM n`);
  await tasks.claim(task('a'), running);
  expect(await tasks.runs({ limit: 2000 })).toHaveLength(1000);
});

test('a run whose process is killed is interrupted; a reminder is due again, the rest had its one chance', async () => {
  const { file, tasks } = await opened();
  const once = { scheduleType: 'once', schedule: { delay: '5m' } } as const;
  await tasks.add(task('bell', once));
  await tasks.add(task('daily'));
  await tasks.add(task('paused'));
  await tasks.add(task('work', { ...once, type: 'agent_task' }));
  const other = await start(file);
  const claims: unknown[] = [];
  for (const id of ['bell', 'daily', 'paused', 'work'])
    claims.push(
      await other.ask('tasks.claim', task(id), { ...running, nextRun: id === 'daily' ? running.nextRun : null }),
    );
  expect(claims).toMatchObject([{ taskId: 'bell' }, { taskId: 'daily' }, { taskId: 'paused' }, { taskId: 'work' }]);
  expect([await tasks.interruptOld(noon), await tasks.due(noon)]).toEqual([[], []]);
  await other.end('SIGKILL');
  const gone = await tasks.interruptOld(noon + 5 * minute);
  expect(gone.map(({ taskId, status, finishedAt }) => [taskId, status, finishedAt])).toEqual(
    ['bell', 'daily', 'paused', 'work'].map((id) => [id, 'interrupted', noon + 5 * minute]),
  );
  expect(await ids(tasks.due(noon))).toEqual(['bell', 'daily']);
  expect(await tasks.interruptOld(noon + 6 * minute)).toEqual([]);
  expect((await tasks.runs({ unseen: true, limit: 9 })).length).toBe(4);
});

test('of processes that claim one due time one gets it, whatever the clock of the others says', async () => {
  const { file, tasks } = await opened();
  await tasks.add(task('a'));
  const others = await Promise.all([start(file), start(file), start(file)]);
  const hour = 60 * minute;
  const clocks = [noon - hour, noon + minute, noon + 30 * 24 * hour];
  const answers = await Promise.all(
    others.map((other, index) =>
      other.ask('tasks.claim', task('a'), { ...running, firedAt: clocks[index], nextRun: noon + 40 * 24 * hour }),
    ),
  );
  expect(answers.filter((answer) => answer !== null)).toHaveLength(1);
  expect(await tasks.runs({ limit: 9 })).toHaveLength(1);
});
