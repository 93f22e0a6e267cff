import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';
import type { Task, Tasks } from '../../../src/features/scheduled-tasks/tasks.js';

/** One worker of a fleet, as `agent tasks daemon` is one: it fires what is due until nothing is and nothing of others
 * goes on. Each run leaves a line in the file of effects; what a person would be told goes into another. */
const program = `
import { appendFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { openTablesOnServer } from './src/app/open-store.js';
import { taskTableSet } from './src/features/scheduled-tasks/task-tables.js';
import { createFiring } from './src/features/scheduled-tasks/scheduler.js';
const [, , url = '', effects = '', told = '', workMs = '0'] = process.argv;
const server = { env: {}, home: '/nonexistent', team: 'crew', machine: 'any' };
const { tables, close } = await openTablesOnServer(url, server, Date.now);
const tasks = await tables(taskTableSet);
const firing = createFiring({
  tasks,
  now: Date.now,
  nextAfter: () => null,
  work: async ({ task }) => {
    appendFileSync(effects, task.id + '\\n');
    await wait(Math.random() * Number(workMs));
    return { status: 'done', summary: 'counted', costUsd: 0 };
  },
  tell: async ({ title }, { task }) => {
    if (title === 'A task was interrupted') appendFileSync(told, task.id + '\\n');
    return false;
  },
  asks: false,
  limits: { maxCostUsd: 1, maxCostUsdPerDay: Infinity },
  log: (entry) => process.stderr.write(JSON.stringify(entry) + '\\n'),
});
process.stdout.write('ready\\n');
const goesOn = async () =>
  (await tasks.due(Date.now())).length > 0 ||
  (await tasks.runs({ limit: 100_000 })).some(({ status }) => status === 'running');
do {
  await firing.check();
  await firing.settled();
  await wait(50);
} while (await goesOn());
await close();
process.stdout.write('closed\\n');
`;

/** Tests and benches run in the folder of the project. */
const root = process.cwd();

export interface Worker {
  readonly process: ChildProcess;
  /** Its exit code, null for a signal, and what it printed. */
  readonly ended: Promise<{ readonly code: number | null; readonly output: string }>;
}

/** The effects of a fleet. */
export interface Fleet {
  start(url: string, workMs: number): Worker;
  /** The tasks in the order of their runs. */
  effects(): readonly string[];
  /** The tasks that somebody was told of as interrupted. */
  told(): readonly string[];
  /** Kills what still runs. */
  end(): void;
}

export async function openFleet(): Promise<Fleet> {
  const cache = join(root, 'node_modules/.cache');
  mkdirSync(cache, { recursive: true });
  const folder = mkdtempSync(join(cache, 'fleet-'));
  const [script, effects, told] = ['worker.mjs', 'effects', 'told'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  await build({
    stdin: { contents: program, resolveDir: root, loader: 'ts', sourcefile: 'worker.ts' },
    absWorkingDir: root,
    outfile: script,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    mainFields: ['module', 'main'],
    external: ['better-sqlite3', 'pg-native', 'pg-cloudflare'],
    banner: {
      js: "import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url);",
    },
    logLevel: 'error',
  });
  const started: ChildProcess[] = [];
  const lines = (file: string): readonly string[] =>
    existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [];
  return {
    start: (url, workMs) => {
      const child = spawn(process.execPath, [script, url, effects, told, String(workMs)], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      started.push(child);
      let output = '';
      child.stdout.on('data', (chunk: Buffer) => {
        output += String(chunk);
      });
      const ended = new Promise<{ readonly code: number | null; readonly output: string }>((resolve) => {
        child.once('close', (code) => {
          resolve({ code, output });
        });
      });
      return { process: child, ended };
    },
    effects: () => lines(effects),
    told: () => lines(told),
    end: () => {
      for (const child of started) child.kill('SIGKILL');
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Adds tasks that are due for any machine. */
export async function addDueTasks(tasks: Tasks, count: number): Promise<void> {
  const at = Date.now() - 10_000;
  for (let i = 0; i < count; i++) await tasks.add(dueTask(`t${i}`, at));
}

function dueTask(id: string, at: number): Task {
  return {
    id,
    type: 'agent_task',
    description: 'counted',
    scheduleType: 'once',
    schedule: { delay: '5m' },
    execution: { prompt: 'count' },
    enabled: true,
    createdAt: at,
    lastRun: null,
    nextRun: at,
    tz: 'UTC',
    cwd: '/',
    missed: 'run_once',
    maxCostUsd: null,
    grants: [],
    expiresAt: null,
    failures: 0,
    madeInSession: null,
    machine: 'any',
  };
}
