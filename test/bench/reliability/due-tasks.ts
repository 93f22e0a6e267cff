import { setTimeout as wait } from 'node:timers/promises';
import { taskTableSet } from '../../../src/features/scheduled-tasks/task-tables.js';
import type { Task } from '../../../src/features/scheduled-tasks/tasks.js';
import { openSqliteStore } from '../../../src/kernel/store/sqlite-store.js';
import { measure, rounds } from './bench.js';
import { askDatabase, type Home, isChainWhole, newHome, type Run, startRun } from './program-runs.js';

/** `npm run t:due -- [tasks]`: so many tasks that are all due at once, a tenth of them reminders, and `agent tasks daemon`.
 * In the middle the daemon gets SIGINT with runs under way, and another one follows. Each task runs once and in its order;
 * what SIGINT ended is recorded as interrupted. Prints what is lost or doubled, and how long the daemon took to end. */
const count = rounds(500);
/** A daemon with runs under way ends within this time. */
const longestEndMs = 3_000;

function task(index: number, cwd: string, now: number): Task {
  const isReminder = index % 10 === 9;
  return {
    id: `t${String(index).padStart(4, '0')}`,
    type: isReminder ? 'reminder' : 'agent_task',
    description: `task ${index}`,
    scheduleType: 'once',
    schedule: { delay: '1m' },
    execution: isReminder ? { message: `reminder ${index}` } : { prompt: `prompt ${index}` },
    enabled: true,
    createdAt: now - 60_000 + index,
    lastRun: null,
    nextRun: now - 10_000 + index,
    tz: 'UTC',
    cwd,
    missed: 'run_once',
    maxCostUsd: null,
    grants: [],
    expiresAt: null,
    failures: 0,
    madeInSession: null,
  };
}

async function addTasks(home: Home): Promise<void> {
  const { store, tables } = await openSqliteStore({ file: home.database, now: Date.now });
  const tasks = await tables(taskTableSet);
  const now = Date.now();
  for (let index = 0; index < count; index++) await tasks.add(task(index, home.work, now));
  await store.close();
}

interface RunRow {
  readonly taskId: string;
  readonly status: string;
}

const runsOf = (home: Home): readonly RunRow[] =>
  askDatabase(home, 'SELECT task_id, status FROM task_runs ORDER BY fired_at, id').map(([taskId, status]) => ({
    taskId: String(taskId),
    status: String(status),
  }));

const ended = (home: Home): number => runsOf(home).filter(({ status }) => status !== 'running').length;

async function until(isSo: () => boolean, daemon: Run): Promise<void> {
  let isAlive = true;
  void daemon.ended.then(() => {
    isAlive = false;
  });
  while (isAlive && !isSo()) await wait(200);
}

/** Ends a daemon with SIGINT. Resolves to how long that took. */
async function interrupt({ child, ended: end }: Run): Promise<{ readonly ms: number; readonly code: number | null }> {
  const begun = performance.now();
  child.kill('SIGINT');
  const { code } = await end;
  return { ms: performance.now() - begun, code };
}

/** Counts the runs that began before one that was due earlier. Two run at once, so neighbours may change places. */
function outOfOrder(runs: readonly RunRow[], kind: (index: number) => boolean): number {
  const order = runs.map(({ taskId }) => Number(taskId.slice(1))).filter(kind);
  return order.filter((index, at) => order.slice(at + 3).some((later) => later < index)).length;
}

await measure(async (folder) => {
  const home = newHome(
    folder,
    'home',
    [{ calls: [{ name: 'bash', arguments: { command: 'sleep 0.1; echo done' } }] }, { text: 'Done.' }],
    { tasks: { notify_command: ['true'] } },
  );
  await addTasks(home);
  const first = startRun(home, ['tasks', 'daemon']);
  await until(() => ended(home) >= count / 2, first);
  const stopped = await interrupt(first);
  const second = startRun(home, ['tasks', 'daemon']);
  await until(() => ended(home) >= count, second);
  await wait(1000);
  const stoppedIdle = await interrupt(second);
  const runs = runsOf(home);
  const times = new Map<string, number>();
  for (const { taskId } of runs) times.set(taskId, (times.get(taskId) ?? 0) + 1);
  const of = (wanted: string): number => runs.filter(({ status }) => status === wanted).length;
  const lost = count - times.size;
  const doubled = [...times.values()].filter((n) => n > 1).length;
  const interrupted = of('interrupted');
  const whole = await isChainWhole(home);
  const moved = outOfOrder(runs, (index) => index % 10 === 9) + outOfOrder(runs, (index) => index % 10 !== 9);
  const ms = Math.max(stopped.ms, stoppedIdle.ms);
  return {
    line:
      `due: ${count} tasks at once: ${of('done')} done, ${interrupted} interrupted, ${lost} lost, ${doubled} doubled, ` +
      `${moved} out of order, chains ${whole ? 'whole' : 'BROKEN'}; the daemon ended ${stopped.ms.toFixed(0)} ms after ` +
      `SIGINT at work (exit ${stopped.code}) and ${stoppedIdle.ms.toFixed(0)} ms at rest (exit ${stoppedIdle.code})`,
    ok:
      of('done') + interrupted === count &&
      interrupted <= 2 &&
      lost + doubled + moved === 0 &&
      whole &&
      ms < longestEndMs,
  };
});
