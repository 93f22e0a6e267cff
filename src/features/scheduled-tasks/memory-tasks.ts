import { randomBytes } from 'node:crypto';
import { ulid } from '../../kernel/core/store.js';
import type { Task, TaskClaim, TaskRun, Tasks } from './tasks.js';
import { matchTask, taskExists } from './task-rows.js';

/** Opens tasks that end with the process and behave like those of a database. */
export function openMemoryTasks(): Tasks {
  const tasks = new Map<string, Task>();
  let runs: readonly TaskRun[] = [];
  const spend = (sinceMs: number): number =>
    runs.filter((run) => run.firedAt >= seconds(sinceMs)).reduce((sum, run) => sum + (run.costUsd ?? 0), 0);
  return {
    add: async (task) => {
      if (tasks.has(task.id)) throw taskExists(task.id);
      tasks.set(task.id, inSeconds(task));
    },
    list: async () => [...tasks.values()].sort((a, b) => Number(b.enabled) - Number(a.enabled) || byTime(a, b)),
    find: async (text) => matchTask([...tasks.values()].sort(byId), text),
    change: async (id, change) => {
      const task = tasks.get(id);
      if (task) tasks.set(id, inSeconds({ ...task, ...change }));
      return task !== undefined;
    },
    remove: async (id) => tasks.delete(id),
    due: async (nowMs) => [...tasks.values()].filter((task) => task.enabled && task.nextRun <= nowMs).sort(byTime),
    claim: async (wanted, claim) => {
      const task = tasks.get(wanted.id);
      if (!task?.enabled || task.nextRun !== seconds(wanted.nextRun) || isHeldBack(task, claim, runs, tasks))
        return null;
      const run = runOf(task, claim);
      tasks.set(task.id, claimed(task, claim));
      runs = [...runs, run];
      return run;
    },
    finish: async (runId, change) => {
      runs = runs.map((run) => (run.id === runId ? finished({ ...run, ...change }) : run));
    },
    runs: async ({ taskId, unseen, limit }) =>
      runs
        .filter((run) => taskId === undefined || run.taskId === taskId)
        .filter((run) => unseen !== true || (!run.seen && run.status !== 'running'))
        .toReversed()
        .slice(0, limit),
    markSeen: async (runIds) => {
      runs = runs.map((run) => (runIds.includes(run.id) ? { ...run, seen: true } : run));
    },
    spentSince: async (sinceMs) => spend(sinceMs),
    interruptOld: () => Promise.resolve([]),
  };
}

function seconds(ms: number): number {
  return Math.floor(ms / 1000) * 1000;
}

function secondsOrNull(ms: number | null): number | null {
  return ms === null ? null : seconds(ms);
}

function inSeconds(task: Task): Task {
  return {
    ...task,
    createdAt: seconds(task.createdAt),
    lastRun: secondsOrNull(task.lastRun),
    nextRun: seconds(task.nextRun),
    expiresAt: secondsOrNull(task.expiresAt),
  };
}

function byId(a: Task, b: Task): number {
  return a.id < b.id ? -1 : 1;
}

function byTime(a: Task, b: Task): number {
  return a.nextRun - b.nextRun || byId(a, b);
}

/** Returns true if a run of the same task is not over, or if enough others are not. */
function isHeldBack(
  task: Task,
  { status, atOnce }: TaskClaim,
  runs: readonly TaskRun[],
  tasks: ReadonlyMap<string, Task>,
): boolean {
  if (status !== 'running') return false;
  const running = runs.filter((run) => run.status === 'running');
  const working = running.filter((run) => (tasks.get(run.taskId)?.type ?? 'reminder') !== 'reminder');
  return running.some((run) => run.taskId === task.id) || (atOnce !== undefined && working.length >= atOnce);
}

function claimed(task: Task, { firedAt, nextRun, status }: TaskClaim): Task {
  return inSeconds({
    ...task,
    nextRun: nextRun ?? task.nextRun,
    enabled: nextRun !== null,
    lastRun: status === 'running' ? firedAt : task.lastRun,
  });
}

function runOf(task: Task, { firedAt, status }: TaskClaim): TaskRun {
  return {
    id: ulid(firedAt, randomBytes(16)),
    taskId: task.id,
    scheduledFor: task.nextRun,
    firedAt: seconds(firedAt),
    finishedAt: status === 'running' ? null : seconds(firedAt),
    status,
    sessionId: null,
    costUsd: null,
    summary: null,
    seen: false,
  };
}

function finished(run: TaskRun): TaskRun {
  return { ...run, finishedAt: secondsOrNull(run.finishedAt) };
}
