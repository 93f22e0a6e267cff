import { expect, test } from 'vitest';
import { plainGuard } from '../../../src/kernel/secrets/known-secrets.js';
import type { SessionView } from '../../../src/kernel/core/tool.js';
import type { Task, Tasks } from '../../../src/features/scheduled-tasks/tasks.js';
import { openMemoryTasks } from '../../../src/features/scheduled-tasks/memory-tasks.js';
import { scheduleTools } from '../../../src/features/scheduled-tasks/schedule-tools.js';
import { context, envelopeOf } from '../../kernel/tools/workbench.js';
import { registryOf } from '../registered.js';

/** A Tuesday, 14:30:00 in Berlin. */
const start = Date.UTC(2026, 0, 27, 13, 30);
const session: SessionView = { id: '01K6XYZABCDEFGHJKMNPQRSTVW', events: () => [], recent: () => [] };
const secret = `ghp_${'a1B2c3D4e5'.repeat(4).slice(0, 36)}`;

interface Rig {
  readonly tasks: Tasks;
  readonly registry: ReturnType<typeof registryOf>;
  /** Unix ms; moved by hand. */
  now: number;
  unpriced: string | null;
  call(name: string, args: object, by?: SessionView): ReturnType<typeof envelopeOf>;
  only(): Promise<Task | undefined>;
}

function rig(): Rig {
  const tasks = openMemoryTasks();
  const guard = plainGuard({}, []);
  const registry = registryOf(
    scheduleTools({
      tasks: () => Promise.resolve(tasks),
      now: () => made.now,
      unpriced: () => made.unpriced,
      zone: () => 'Europe/Berlin',
      hide: (value) => guard.deep(value),
    }),
  );
  const made: Rig = {
    tasks,
    registry,
    now: start,
    unpriced: null,
    call: (name, args, by = session) => envelopeOf(name, args, context('/work/project', { session: by }), registry),
    only: async () => (await tasks.list())[0],
  };
  return made;
}

const id = expect.stringMatching(/^[a-z2-9]{6}$/) as string;

test("a reminder answers with seed 002's keys and is stored in its form", async () => {
  const { call, only } = rig();
  expect(await call('add_reminder', { delay: '5m', message: 'call mom' })).toEqual({
    output: 'Reminder set for 14:35.',
    success: true,
    reminder_id: id,
    trigger_at: '2026-01-27T14:35:00',
    timezone: 'Europe/Berlin',
  });
  expect(await only()).toEqual({
    id,
    type: 'reminder',
    description: 'call mom',
    scheduleType: 'once',
    schedule: { delay: '5m' },
    execution: null,
    enabled: true,
    createdAt: start,
    lastRun: null,
    nextRun: start + 5 * 60_000,
    tz: 'Europe/Berlin',
    cwd: '/work/project',
    missed: 'run_once',
    maxCostUsd: null,
    grants: [],
    expiresAt: null,
    failures: 0,
    madeInSession: session.id,
  });
});

test.each([
  ['30s', 'Reminder set for 14:30:30.'],
  ['1d', 'Reminder set for 2026-01-28 14:30.'],
  ['at 5pm', 'Reminder set for 17:00.'],
])('the answer to %s says the day where it is another, and seconds where it is soon', async (delay, output) => {
  expect(await rig().call('add_reminder', { delay, message: 'x' })).toMatchObject({ output });
});

const news = {
  schedule: 'weekdays 9am',
  task_type: 'web_search',
  description: 'Search top US news and summarize top 3',
  execution_data: { query: 'US top news', limit: 3, summarize: true },
};
const lights = {
  schedule: 'daily 1am',
  task_type: 'api_call',
  description: 'Turn off home lights',
  execution_data: { url: 'http://home.lan/lights/off', method: 'POST' },
};
const digest = {
  schedule: '@daily',
  task_type: 'agent_task',
  description: 'digest',
  execution_data: { prompt: 'Sum up CHANGELOG.md' },
};

test("seed 002's weekday news and lights are scheduled with their cron and the next three times", async () => {
  const { call, only, tasks } = rig();
  expect(await call('add_recurring_task', news)).toEqual({
    output: expect.stringMatching(
      /^Task \w{6} runs weekdays 9am \(Europe\/Berlin\), next 2026-01-28 09:00:00\.$/,
    ) as string,
    success: true,
    task_id: id,
    cron: '0 9 * * 1-5',
    next_runs: ['2026-01-28T09:00:00', '2026-01-29T09:00:00', '2026-01-30T09:00:00'],
    timezone: 'Europe/Berlin',
  });
  expect(await only()).toMatchObject({
    type: 'web_search',
    scheduleType: 'recurring',
    schedule: { cron: '0 9 * * 1-5', tz: 'Europe/Berlin', source: 'weekdays 9am' },
    execution: news.execution_data,
    nextRun: Date.UTC(2026, 0, 28, 8),
    expiresAt: null,
  });
  expect(await call('add_recurring_task', lights)).toMatchObject({ cron: '0 1 * * *' });
  expect((await tasks.list()).find((task) => task.type === 'api_call')?.execution).toEqual(lights.execution_data);
});

test('zone, missed runs and cost are as the call says; unknown keys of the data are kept', async () => {
  const { call, only } = rig();
  const data = { query: 'news', other: [1] };
  const more = { timezone: 'Asia/Kolkata', missed: 'skip', max_cost_usd: 0.1, execution_data: data };
  expect(await call('add_recurring_task', { ...news, ...more })).toMatchObject({
    timezone: 'Asia/Kolkata',
    next_runs: ['2026-01-28T09:00:00', '2026-01-29T09:00:00', '2026-01-30T09:00:00'],
  });
  expect(await only()).toMatchObject({
    tz: 'Asia/Kolkata',
    missed: 'skip',
    maxCostUsd: 0.1,
    execution: { ...data, limit: 3 },
    nextRun: Date.UTC(2026, 0, 28, 3, 30),
  });
});

test("a model's own agent task ends after 30 days, a person's does not", async () => {
  const { call, tasks } = rig();
  expect(await call('add_recurring_task', digest)).toMatchObject({ expires_at: '2026-02-26T14:30:00' });
  expect(await call('add_recurring_task', digest, { ...session, id: 'call' })).not.toHaveProperty('expires_at');
  const found = (await tasks.list()).map(({ expiresAt, madeInSession }) => [expiresAt, madeInSession] as const);
  expect(found.toSorted(([one], [other]) => Number(one) - Number(other))).toEqual([
    [null, null],
    [start + 30 * 24 * 60 * 60_000, session.id],
  ]);
});

test.each<readonly [string, object, string]>([
  ['add_reminder', { delay: 'soon', message: 'x' }, '"soon" is not a delay'],
  ['add_reminder', { delay: '5m', message: '' }, 'message'],
  ['add_reminder', { delay: '5m', message: 'x'.repeat(2001) }, 'message'],
  ['add_reminder', { delay: '5m'.repeat(99), message: 'x' }, 'delay'],
  ['add_recurring_task', { ...news, schedule: '0 0 30 2 *' }, 'never happens'],
  ['add_recurring_task', { ...news, schedule: 'every 10m' }, '15 minutes apart'],
  ['add_recurring_task', { ...news, timezone: 'Mars/Olympus' }, 'not a time zone'],
  ['add_recurring_task', { ...news, task_type: 'dance' }, 'task_type'],
  ['add_recurring_task', { ...news, max_cost_usd: 0 }, 'max_cost_usd'],
  ['add_recurring_task', { ...news, execution_data: {} }, 'query'],
  ['add_recurring_task', { ...news, execution_data: { query: 'x'.repeat(401) } }, 'query'],
  ['add_recurring_task', { ...news, execution_data: { query: 'x', limit: 11 } }, 'limit'],
  ['add_recurring_task', { ...news, execution_data: { query: 'x', summarize: 'yes' } }, 'summarize'],
  ['add_recurring_task', { ...digest, execution_data: undefined }, 'prompt'],
  ['add_recurring_task', { ...digest, execution_data: { prompt: ' ' } }, 'prompt'],
  ['add_recurring_task', { ...digest, execution_data: { prompt: 'x', more: 'y'.repeat(40_000) } }, 'too long'],
  ['add_recurring_task', { ...lights, execution_data: { method: 'POST' } }, 'url'],
  ['add_recurring_task', { ...lights, execution_data: { url: 'file:///etc/passwd' } }, 'url'],
  ['add_recurring_task', { ...lights, execution_data: { url: 'http://a.b', method: 'BREW' } }, 'method'],
  ['add_recurring_task', { ...lights, execution_data: { url: 'http://a.b', headers: { n: 1 } } }, 'headers'],
  ['add_recurring_task', { ...lights, execution_data: { url: 'http://a.b', headers: { cookie: 'a' } } }, 'cookie'],
])('%s with %j is refused and stores nothing', async (name, args, wanted) => {
  const { call, tasks } = rig();
  const envelope = await call(name, args);
  expect(envelope).toMatchObject({ code: 'invalid_args' });
  expect(JSON.stringify(envelope)).toContain(JSON.stringify(wanted).slice(1, -1));
  expect(await tasks.list()).toEqual([]);
});

test('secrets are hidden before anything is stored', async () => {
  const { call, tasks } = rig();
  await call('add_reminder', { delay: '5m', message: `use ${secret}` });
  await call('add_recurring_task', {
    ...digest,
    description: secret,
    execution_data: { prompt: `push with ${secret}` },
  });
  const stored = await tasks.list();
  expect(stored).toHaveLength(2);
  expect(JSON.stringify(stored)).not.toContain(secret);
});

test('the list shows those that are active, the next first, and a cancelled one is gone', async () => {
  const { call, tasks } = rig();
  expect(await call('list_tasks', {})).toEqual({ output: 'There are no scheduled tasks.', count: 0 });
  await call('add_recurring_task', news);
  await call('add_reminder', { delay: '10m', message: 'check\nthe oven' });
  const [oven, weekly] = await tasks.list();
  expect(await call('list_tasks', {})).toEqual({
    output:
      `${oven?.id} reminder, once at 2026-01-27 14:40 (Europe/Berlin): check the oven\n` +
      `${weekly?.id} web_search, weekdays 9am, next 2026-01-28 09:00 (Europe/Berlin): Search top US news and summarize top 3`,
    count: 2,
  });
  await tasks.change(weekly?.id ?? '', { enabled: false });
  expect(await call('list_tasks', {})).toMatchObject({ count: 1 });
  expect(await call('cancel_task', { task_id: oven?.id.slice(0, 5) })).toEqual({
    output: 'Cancelled: check\nthe oven',
    success: true,
    task_id: oven?.id,
  });
  expect(await call('list_tasks', {})).toMatchObject({ count: 0 });
});

test('a task that is not there is not_found with the nearest, and so is the start of several', async () => {
  const { call, tasks } = rig();
  expect(await call('cancel_task', { task_id: 'abc123' })).toMatchObject({
    code: 'not_found',
    error: 'No task "abc123"; list_tasks shows those there are.',
  });
  await call('add_reminder', { delay: '5m', message: 'x' });
  const made = await tasks.list();
  const task = made[0] as Task;
  await tasks.add({ ...task, id: `${task.id}x` });
  expect(await call('cancel_task', { task_id: task.id.slice(0, 4) })).toMatchObject({
    code: 'not_found',
    details: { nearest: [task.id, `${task.id}x`] },
  });
  const slip = `${task.id.slice(0, 5)}0`;
  expect(await call('cancel_task', { task_id: slip })).toMatchObject({
    error: `No task "${slip}"; did you mean "${task.id}".`,
  });
  expect(await tasks.list()).toHaveLength(2);
});

test('with 500 tasks there is no room for another', async () => {
  const { call, tasks, only } = rig();
  await call('add_reminder', { delay: '5m', message: 'x' });
  const task = (await only()) as Task;
  for (let i = 1; i < 500; i++) await tasks.add({ ...task, id: `n${i}` });
  expect(await call('add_reminder', { delay: '5m', message: 'x' })).toMatchObject({ code: 'limit_reached' });
  await tasks.change('n1', { enabled: false });
  expect(await call('add_reminder', { delay: '5m', message: 'x' })).toMatchObject({ success: true });
});

test('a reminder changes something, anything else is dangerous, looking is neither', async () => {
  const { registry } = rig();
  const risk = async (name: string, args: object): Promise<string> => {
    const binding = await registry.bind({ name, arguments: JSON.stringify(args) });
    if (!binding.ok) throw new Error(binding.error.error);
    const judged = await binding.bound.tool.judge?.(binding.bound.args, { cwd: '/work', session });
    return judged?.risk ?? 'not judged';
  };
  expect([
    await risk('add_reminder', { delay: '5m', message: 'x' }),
    await risk('add_recurring_task', { schedule: 'daily 9am', task_type: 'reminder', description: 'x' }),
    ...(await Promise.all([news, lights, digest].map((args) => risk('add_recurring_task', args)))),
    await risk('cancel_task', { task_id: 'x' }),
    await risk('list_tasks', {}),
  ]).toEqual(['mutating', 'mutating', 'dangerous', 'dangerous', 'dangerous', 'mutating', 'read-only']);
});

test('a task that asks a model without a known price is refused; others are not', async () => {
  const at = rig();
  at.unpriced = 'openai/unheard-of';
  const add = (task_type: string, execution_data?: object): Promise<unknown> =>
    at.call('add_recurring_task', {
      schedule: 'daily 9am',
      task_type,
      description: 'x',
      ...(execution_data ? { execution_data } : {}),
    });
  const refused = {
    code: 'execution_failed',
    error: expect.stringContaining('openai/unheard-of is not known') as string,
  };
  expect(await add('agent_task', { prompt: 'x' })).toMatchObject(refused);
  expect(await add('web_search', { query: 'x' })).toMatchObject(refused);
  expect(await at.tasks.list()).toEqual([]);
  expect(await add('web_search', { query: 'x', summarize: false })).toMatchObject({ success: true });
  expect(await add('reminder')).toMatchObject({ success: true });
});

test('the four tools take a model at most 1,500 bytes', () => {
  const catalogue = rig()
    .registry.list()
    .map(({ name, description, input_schema }) => ({ name, description, input_schema }));
  expect(Buffer.byteLength(JSON.stringify(catalogue))).toBeLessThanOrEqual(1500);
});
