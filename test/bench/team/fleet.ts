import { setTimeout as wait } from 'node:timers/promises';
import { openTablesOnServer } from '../../../src/app/open-store.js';
import { addDueTasks, openFleet, type Worker } from '../../features/team-store/fleet.js';
import { startPooler, startServer } from '../../features/team-store/start-server.js';
import { taskTableSet } from '../../../src/features/scheduled-tasks/task-tables.js';

/** `npm run t:fleet [tasks] [workers] [killed]`: real processes fire the due tasks of one PostgreSQL; some of them are
 * killed with SIGKILL in the middle. Once directly, once through pgbouncer in transaction mode. Each task may have its
 * effect once at most; what the killed were at must come back as interrupted, by the beat of the server's own clock. */
const [count = 2000, workers = 20, killed = 5] = process.argv.slice(2).map(Number);
const workMs = 20;

interface Outcome {
  readonly once: number;
  readonly more: number;
  readonly none: number;
  readonly done: number;
  readonly interrupted: number;
  readonly told: number;
  readonly failed: number;
  readonly seconds: number;
  readonly untilTold: number;
}

async function crowd(url: string): Promise<Outcome> {
  const server = { env: {}, home: '/', team: 'crew', machine: 'any' };
  const { tables, close } = await openTablesOnServer(url, server, Date.now);
  const tasks = await tables(taskTableSet);
  await addDueTasks(tasks, count);
  const fleet = await openFleet();
  try {
    const begun = performance.now();
    const all = Array.from({ length: workers }, () => fleet.start(url, workMs));
    const doomed = all.slice(0, killed);
    for (const [index, worker] of doomed.entries()) {
      // Spread over the work: each in the middle of something.
      for (; fleet.effects().length < ((index + 1) * count) / (killed + 1);) await wait(5);
      worker.process.kill('SIGKILL');
    }
    const diedAt = performance.now();
    for (; (await tasks.due(Date.now())).length > 0;) await wait(20);
    const seconds = (performance.now() - begun) / 1000;
    const codes = await Promise.all(all.slice(killed).map(({ ended }: Worker) => ended));
    const untilTold = (performance.now() - diedAt) / 1000;
    const runs = await tasks.runs({ limit: count * 2 });
    const times = new Map<string, number>();
    for (const id of fleet.effects()) times.set(id, (times.get(id) ?? 0) + 1);
    const more = [...times.values()].filter((n) => n > 1).length;
    const of = (status: string): number => runs.filter((run) => run.status === status).length;
    return {
      once: times.size - more,
      more,
      none: count - times.size,
      done: of('done'),
      interrupted: of('interrupted'),
      told: fleet.told().length,
      failed: codes.filter(({ code }) => code !== 0).length,
      seconds,
      untilTold,
    };
  } finally {
    fleet.end();
    await close();
  }
}

const server = await startServer({ durable: true });
const pooler = await startPooler(server);
try {
  console.log(
    `| ${workers} workers, ${killed} killed, ${count} due | once | more | no effect | done | interrupted | reported | ` +
      'workers failed | s | s to the last report |\n| --- | --: | --: | --: | --: | --: | --: | --: | --: | --: |',
  );
  for (const [name, by] of [
    ['direct', server],
    ['pgbouncer', pooler],
  ] as const) {
    const one = await crowd(by.url(await server.database(), 'alice'));
    const { seconds, untilTold, ...figures } = one;
    console.log(
      `| ${name} | ${Object.values(figures).join(' | ')} | ${seconds.toFixed(1)} | ${untilTold.toFixed(0)} |`,
    );
    const whole = one.more === 0 && one.failed === 0 && one.done + one.interrupted === count;
    if (!whole || one.none > one.interrupted || one.told !== one.interrupted) process.exitCode = 1;
  }
} finally {
  await pooler.stop();
  await server.stop();
}
