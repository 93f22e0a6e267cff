import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { Task } from '../../../src/features/scheduled-tasks/tasks.js';
import { openSqliteStore } from '../../../src/kernel/store/sqlite-store.js';
import { measure, rounds } from './bench.js';
import { taskTableSet } from '../../../src/features/scheduled-tasks/task-tables.js';

/** `npm run t:taskkill`: kills `agent tasks run-due` with SIGKILL at a random instant of a run that appends a line to a
 * file, fires again twice, and counts the lines. A reminder that is due at the same time has to be told at least once.
 * AGENT_PROGRAM names another build. */
const program = process.env['AGENT_PROGRAM'] ?? join(process.cwd(), 'dist/main.js');

function task(cwd: string, change: Pick<Task, 'id' | 'type' | 'execution'>): Task {
  const now = Date.now();
  return {
    description: change.id,
    scheduleType: 'once',
    schedule: { delay: '1m' },
    enabled: true,
    createdAt: now,
    lastRun: null,
    nextRun: now - 1000,
    tz: 'UTC',
    cwd,
    missed: 'run_once',
    maxCostUsd: null,
    grants: [],
    expiresAt: null,
    failures: 0,
    madeInSession: null,
    ...change,
  };
}

interface Place {
  readonly work: string;
  readonly home: string;
}

/** Runs `agent tasks run-due`, and kills it after `killMs`. Resolves to how long it took. */
async function fire({ work, home }: Place, killMs: number | null): Promise<number> {
  const startedAt = performance.now();
  const child = spawn(process.execPath, [program, 'tasks', 'run-due'], {
    cwd: work,
    env: { PATH: process.env['PATH'] ?? '', HOME: home, AGENT_HOME: join(home, '.agent') },
    stdio: 'ignore',
  });
  const timer = killMs === null ? undefined : setTimeout(() => child.kill('SIGKILL'), killMs);
  await new Promise((resolve) => child.on('close', resolve));
  clearTimeout(timer);
  return performance.now() - startedAt;
}

function linesOf(path: string): number {
  return existsSync(path) ? readFileSync(path, 'utf8').split('\n').length - 1 : 0;
}

/** How far a run had come when its process was killed. */
async function stepOf(file: string): Promise<string> {
  const { store, tables } = await openSqliteStore({ file, now: Date.now });
  try {
    const run = (await (await tables(taskTableSet)).runs({ limit: 9 })).find(({ taskId }) => taskId === 'effect');
    if (run === undefined) return 'before the claim';
    if (run.status !== 'running') return 'after its end';
    if (run.sessionId === null) return 'claimed';
    const kinds = new Set((await store.load(run.sessionId)).map(({ kind }) => kind));
    if (kinds.has('tool_result')) return 'call done';
    return kinds.has('tool_started') ? 'call begun' : 'session begun';
  } finally {
    await store.close();
  }
}

interface Tally {
  readonly steps: Map<string, number>;
  doubled: number;
  effects: number;
  silent: number;
  unsettled: number;
}

async function prepare({ work, home }: Place, file: string): Promise<void> {
  for (const path of [work, join(home, '.agent')]) {
    rmSync(path, { recursive: true, force: true });
    mkdirSync(path, { recursive: true });
  }
  const command = 'sleep 0.05; echo done >>effect; sleep 0.05';
  writeFileSync(
    join(home, 'script.json'),
    JSON.stringify({
      turns: [
        { delay_ms: 40, calls: [{ name: 'bash', arguments: { command } }] },
        { delay_ms: 40, text: 'Done.' },
      ],
    }),
  );
  const tell = ['sh', '-c', `cat >/dev/null; echo told >>'${join(home, 'told')}'`];
  const settings = { model: `offline/${join(home, 'script.json')}`, tasks: { notify_command: tell } };
  writeFileSync(join(home, '.agent/config.json'), JSON.stringify(settings));
  rmSync(join(home, 'told'), { force: true });
  const { store, tables } = await openSqliteStore({ file, now: Date.now });
  const found = await tables(taskTableSet);
  await found.add(task(work, { id: 'effect', type: 'agent_task', execution: { prompt: 'go' } }));
  await found.add(task(work, { id: 'remind', type: 'reminder', execution: { message: 'ring' } }));
  await store.close();
}

async function round(place: Place, killMs: number, tally: Tally): Promise<void> {
  const file = join(place.home, '.agent/agent.db');
  await prepare(place, file);
  await fire(place, killMs);
  const step = await stepOf(file);
  tally.steps.set(step, (tally.steps.get(step) ?? 0) + 1);
  // The command of a killed run ends with it, or a moment later.
  await wait(200);
  await fire(place, null);
  await fire(place, null);
  const effects = linesOf(join(place.work, 'effect'));
  tally.effects += effects;
  if (effects > 1) tally.doubled++;
  if (linesOf(join(place.home, 'told')) < 1) tally.silent++;
  const { store, tables } = await openSqliteStore({ file, now: Date.now });
  const found = await tables(taskTableSet);
  const runs = (await found.runs({ limit: 9 })).filter(({ taskId }) => taskId === 'effect');
  if (runs.length !== 1 || !['done', 'interrupted'].includes(runs[0]?.status ?? '')) tally.unsettled++;
  if ((await found.due(Date.now())).length > 0) tally.unsettled++;
  await store.close();
}

await measure(async (folder) => {
  const count = rounds(60);
  const place: Place = { work: join(realpathSync(folder), 'work'), home: join(realpathSync(folder), 'home') };
  await prepare(place, join(place.home, '.agent/agent.db'));
  const wholeMs = await fire(place, null);
  const tally: Tally = { steps: new Map(), doubled: 0, effects: 0, silent: 0, unsettled: 0 };
  // Runs are not equally fast: some are killed after their end, so that no step is left out.
  const spanMs = wholeMs * 1.5;
  for (let index = 0; index < count; index++) await round(place, ((index + Math.random()) / count) * spanMs, tally);
  const steps = [...tally.steps].map(([step, n]) => `${step} ${n}`).join(', ');
  return {
    line:
      `taskkill: ${count} kills (${steps}); ${tally.effects} effects, ${tally.doubled} doubled, ` +
      `${tally.silent} reminders never told, ${tally.unsettled} runs left open`,
    ok: tally.doubled === 0 && tally.silent === 0 && tally.unsettled === 0,
  };
});
