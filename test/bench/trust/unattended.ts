import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Task } from '../../../src/features/scheduled-tasks/tasks.js';
import { openSqliteStore } from '../../../src/kernel/store/sqlite-store.js';
import { measure } from '../reliability/bench.js';
import { taskTableSet } from '../../../src/features/scheduled-tasks/task-tables.js';

/** `npm run t:unattended`: a task that nobody watches wants to remove a folder. Prints how fast it was denied, and
 * whether it runs once it is approved; then what the two limits on money do. AGENT_PROGRAM names another build. */
const program = process.env['AGENT_PROGRAM'] ?? join(process.cwd(), 'dist/main.js');
const script = join(process.cwd(), 'test/bench/trust/unattended.json');

interface Place {
  readonly work: string;
  readonly home: string;
}

function agent({ work, home }: Place, ...args: readonly string[]): { readonly code: number; readonly out: unknown } {
  const { status, stdout } = spawnSync(process.execPath, [program, ...args, '--json'], {
    cwd: work,
    env: { PATH: process.env['PATH'] ?? '', HOME: home, AGENT_HOME: join(home, '.agent') },
    stdio: ['ignore', 'pipe', 'ignore'],
    encoding: 'utf8',
  });
  return { code: status ?? -1, out: stdout.trim() === '' ? null : (JSON.parse(stdout) as unknown) };
}

/** A fresh home with a task that is due, and what it may cost. */
async function scene(folder: string, limits: object): Promise<Place> {
  const place = { work: join(realpathSync(folder), 'work'), home: join(realpathSync(folder), 'home') };
  for (const path of Object.values(place)) rmSync(path, { recursive: true, force: true });
  mkdirSync(join(place.work, 'build'), { recursive: true });
  mkdirSync(join(place.home, '.agent'), { recursive: true });
  const settings = { model: `offline/${script}`, tasks: { ...limits, notify_command: ['true'] } };
  writeFileSync(join(place.home, '.agent/config.json'), JSON.stringify(settings));
  const opened = await openSqliteStore({ file: join(place.home, '.agent/agent.db'), now: Date.now });
  await (await opened.tables(taskTableSet)).add(tidy(place.work));
  await opened.store.close();
  return place;
}

function tidy(cwd: string): Task {
  return {
    id: 'tidy',
    type: 'agent_task',
    description: 'tidy',
    scheduleType: 'recurring',
    schedule: { cron: '0 * * * *', tz: 'UTC', source: '@hourly' },
    execution: { prompt: 'Remove what was built.' },
    enabled: true,
    createdAt: Date.now(),
    lastRun: null,
    nextRun: Date.now() - 1000,
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

interface Run {
  readonly id: string;
  readonly status: string;
  readonly session_id: string;
}

function runOf(out: unknown): Run | undefined {
  return (out as readonly Run[] | null)?.[0];
}

/** Milliseconds from the call to the answer that it may not run. */
function denialMs(place: Place, sessionId: string): number {
  const events = agent(place, 'sessions', 'show', sessionId).out as { kind: string; created_at: number }[];
  const at = (kind: string): number => events.find((event) => event.kind === kind)?.created_at ?? Number.NaN;
  return at('tool_result') - at('tool_call');
}

await measure(async (folder) => {
  const place = await scene(folder, {});
  const build = join(place.work, 'build');
  const denied = runOf(agent(place, 'tasks', 'run-due').out);
  const ms = denialMs(place, denied?.session_id ?? '');
  const kept = existsSync(build);
  const unasked = agent(place, 'tasks', 'approve', denied?.id ?? '').code;
  const stillKept = existsSync(build);
  const approved = runOf(agent(place, 'tasks', 'approve', denied?.id ?? '', '--yes').out);
  const gone = !existsSync(build);
  const perRun = runOf(agent(await scene(folder, { max_cost_usd: 0.3 }), 'tasks', 'run-due').out);
  const poor = await scene(folder, { max_cost_usd_per_day: 0.4 });
  agent(poor, 'tasks', 'run-due');
  const perDay = runOf(agent(poor, 'tasks', 'run', 'tidy').out);
  return {
    line:
      `unattended: rm -rf denied after ${ms} ms, run ${denied?.status}, ` +
      `approve with nobody to ask exit ${unasked}, approved and ${approved?.status}, folder ${gone ? 'gone' : 'there'}; ` +
      `over the limit of a run: ${perRun?.status}, of a day: ${perDay?.status}`,
    ok:
      ms <= 1000 &&
      kept &&
      stillKept &&
      gone &&
      unasked === 6 &&
      JSON.stringify([denied?.status, approved?.status, perRun?.status, perDay?.status]) ===
        JSON.stringify(['needs_approval', 'done', 'limit', 'limit']),
  };
});
