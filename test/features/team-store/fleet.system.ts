import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openTablesOnServer } from '../../../src/app/open-store.js';
import { ServerConnection } from '../../../src/features/team-store/server-connection.js';
import { addDueTasks, type Fleet, openFleet } from './fleet.js';
import { task } from '../../kernel/store/samples.js';
import { address, serverOfFile } from './server.js';
import { taskTableSet } from '../../../src/features/scheduled-tasks/task-tables.js';

const { installed, server } = serverOfFile(2);

async function tasksOnServer(url: string, machine: string | null) {
  const options = { env: {}, home: '/nonexistent', team: 'crew', machine };
  const { tables, close } = await openTablesOnServer(url, options, Date.now);
  return { tasks: await tables(taskTableSet), close };
}

describe.skipIf(!installed)('a fleet of workers', () => {
  let fleet: Fleet | null = null;
  beforeAll(async () => {
    fleet = await openFleet();
  });
  afterAll(() => fleet?.end());
  const opened = (): Fleet => {
    if (fleet === null) throw new Error('no fleet');
    return fleet;
  };

  test('runs each due task once; what a killed worker was at is reported once, and not run again', async () => {
    const database = await server().database();
    const url = server().url(database, 'alice');
    const { tasks, close } = await tasksOnServer(url, null);
    await addDueTasks(tasks, 60);
    // The one that dies works for an hour at what it begins.
    const doomed = opened().start(url, 3_600_000);
    for (let held = 0; held < 2;) held = (await tasks.runs({ limit: 100 })).length;
    doomed.process.kill('SIGKILL');
    expect((await doomed.ended).code).toBeNull();
    // It may have claimed one whose effect it had not started.
    const held = (await tasks.runs({ limit: 100 })).map(({ taskId }) => taskId).sort();
    const others = [1, 2, 3].map(() => opened().start(server().url(database, 'bob'), 5));
    // Nobody takes them for dead before their time.
    for (let done = 0; done < 60 - held.length;)
      done = (await tasks.runs({ limit: 100 })).filter(({ status }) => status === 'done').length;
    expect(opened().told()).toEqual([]);
    await server().sql(
      database,
      "UPDATE agent.task_runs SET beat = beat - interval '61 s' WHERE status = 'running' AND owner = 'alice'",
    );
    expect(await Promise.all(others.map(({ ended }) => ended))).toEqual(
      others.map(() => ({ code: 0, output: 'ready\nclosed\n' })),
    );
    const runs = await tasks.runs({ limit: 100 });
    expect(runs.map(({ taskId }) => taskId).sort()).toEqual(Array.from({ length: 60 }, (_, i) => `t${i}`).sort());
    const lost = runs.filter(({ status }) => status === 'interrupted').map(({ taskId }) => taskId);
    expect([lost.sort(), [...opened().told()].sort()]).toEqual([held, held]);
    const done = opened()
      .effects()
      .filter((id) => !held.includes(id));
    expect(done.sort()).toEqual(runs.flatMap(({ taskId }) => (held.includes(taskId) ? [] : [taskId])).sort());
    await close();
  }, 60_000);

  test('takes tasks of its own role, and those of others where it is for any machine; what they do nobody changes', async () => {
    const database = await server().database();
    const as = (role: string, machine: string | null) => tasksOnServer(server().url(database, role), machine);
    const [alice, bob, worker, carol] = await Promise.all([
      as('alice', 'laptop'),
      as('bob', 'laptop'),
      as('bob', 'any'),
      as('carol', 'any'),
    ]);
    await addDueTasks(alice.tasks, 1);
    await alice.tasks.add(task('own', { nextRun: 0 }));
    const due = async ({ tasks }: typeof alice) =>
      (await tasks.due(Date.now())).map(({ id, machine }) => [id, machine]);
    expect([await due(alice), await due(bob), await due(worker), await due(carol)]).toEqual([
      [['own', 'laptop']],
      [],
      [['t0', 'any']],
      [],
    ]);
    const noon = { firedAt: Date.now(), nextRun: null, status: 'running' } as const;
    expect([await bob.tasks.claim({ id: 'own', nextRun: 0 }, noon), await carol.tasks.list()]).toEqual([null, []]);
    const asBob = new ServerConnection(address(server().url(database, 'bob')));
    for (const change of [
      "UPDATE agent.tasks SET execution_data = '{}'",
      "UPDATE agent.tasks SET owner = 'bob'",
      "UPDATE agent.task_runs SET owner = 'bob'",
      `INSERT INTO agent.tasks (id, owner, team, machine, task_type, description, schedule_type, schedule_data, created_at,
         next_run, tz, cwd, missed) VALUES ('x', 'alice', 'crew', 'laptop', 'agent_task', '', 'once', '', 0, 0, '', '', '')`,
    ])
      await expect(asBob.rows(change)).rejects.toMatchObject({ code: 'forbidden' });
    expect(await asBob.rows("UPDATE agent.tasks SET enabled = false WHERE id = 'own' RETURNING id")).toEqual([]);
    await Promise.all([alice, bob, worker, carol, asBob].map((one) => one.close()));
  });
});
