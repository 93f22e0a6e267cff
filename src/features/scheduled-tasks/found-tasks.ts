import { counted } from '../../kernel/tools/define-tool.js';
import { maxUnseen, type RunStatus, summaryBeside, type Task, type TaskRun, type Tasks, unseenRuns } from './tasks.js';
import { localTime as zonedTime, runTimes } from './schedule-parser.js';
import { CliError, exit } from '../../kernel/console/command.js';
import { age, columns, localTime, oneLine } from '../../kernel/console/line-output.js';

/** Finds a task by id or unique prefix. Throws a `CliError` otherwise. */
export async function findTask(found: Tasks, text: string): Promise<Task> {
  const match = await found.find(text);
  switch (match.found) {
    case 'one':
      return match.task;
    case 'many':
      throw new CliError(
        exit.usage,
        `${match.tasks.length} tasks begin with \`${text}\``,
        `Give more of the id: ${match.tasks.map(({ id }) => id).join(', ')}`,
      );
    case 'none':
      throw new CliError(
        exit.usage,
        `there is no task \`${text}\``,
        match.nearest.length > 0 ? `Nearest: ${match.nearest.join(', ')}` : 'agent tasks list shows them.',
      );
    default:
      return match satisfies never;
  }
}

function titled({ id, description }: Task): string {
  return `Task ${id} (${oneLine(description, 60)})`;
}

/** The next one first. Reminders that were given are only counted, unless `all` are wanted. */
export async function formatTaskList(found: Tasks, all: boolean): Promise<string> {
  const tasks = await found.list();
  if (tasks.length === 0) return 'There are no tasks.';
  const wanted = all ? tasks : tasks.filter((task) => !isOver(task));
  const over = tasks.length - wanted.length;
  const places = await placesOf(found, wanted);
  const rows = wanted.map((task) => [
    task.id,
    task.type,
    task.enabled ? zonedTime(task.nextRun, task.tz) : offText(task),
    scheduleText(task),
    ...places(task),
    oneLine(task.description),
  ]);
  return [
    ...columns(rows),
    ...(over === 0
      ? []
      : [`${over} reminder${over === 1 ? '' : 's'} given; \`tasks list --all\` shows ${over === 1 ? 'it' : 'them'}.`]),
  ].join('\n');
}

/** The number of newest runs that are searched for those still running. */
const recentRuns = 200;

/** Returns, if machines share the tasks, the machine that a task is for and the host that it runs on. */
async function placesOf(found: Tasks, tasks: readonly Task[]): Promise<(task: Task) => readonly string[]> {
  if (tasks.every(({ machine }) => machine === undefined)) return () => [];
  const running = (await found.runs({ limit: recentRuns })).filter(({ status }) => status === 'running');
  const hosts = new Map(running.map(({ taskId, host = '' }) => [taskId, host]));
  return ({ id, machine = '' }) => [machine, hosts.has(id) ? `on ${hosts.get(id) ?? ''}` : ''];
}

function isOver({ type, enabled, scheduleType, lastRun }: Task): boolean {
  return type === 'reminder' && scheduleType === 'once' && !enabled && lastRun !== null;
}

function offText(task: Task): string {
  return isOver(task) ? 'given' : 'off';
}

function scheduleText({ schedule }: Task): string {
  return 'cron' in schedule ? schedule.source : `in ${schedule.delay}`;
}

export async function formatTask(found: Tasks, id: string): Promise<readonly string[]> {
  const task = await findTask(found, id);
  const { schedule, tz } = task;
  const facts: readonly (readonly [string, string | null])[] = [
    ['task', `${task.id}, ${task.type}${task.enabled ? '' : `, ${offText(task)}`}`],
    ['what', oneLine(task.description, 500)],
    ['does', task.execution === null ? null : JSON.stringify(task.execution)],
    ['when', 'cron' in schedule ? `${schedule.source} (${schedule.cron}), ${tz}` : `${scheduleText(task)}, ${tz}`],
    ['next', nextTimes(task).join(', ') || null],
    ['where', task.cwd],
    ['machine', task.machine ?? null],
    ['missed', task.missed],
    ['may cost', task.maxCostUsd === null ? null : `$${task.maxCostUsd.toFixed(2)} a run`],
    ['allowed', task.grants.length === 0 ? null : `${counted(task.grants.length, 'call')} that you allowed`],
    ['ends', task.expiresAt === null ? null : zonedTime(task.expiresAt, tz)],
    ['failures', task.failures === 0 ? null : `${task.failures} in a row`],
    ['made', `${localTime(task.createdAt)}${task.madeInSession === null ? '' : ` in session ${task.madeInSession}`}`],
  ];
  const runs = await found.runs({ taskId: task.id, limit: 5 });
  return [
    ...columns(facts.flatMap(([name, value]) => (value === null ? [] : [[name, value]]))),
    ...(runs.length === 0 ? [] : ['', await ranLines(found, runs, '')]),
  ];
}

function nextTimes(task: Task): readonly string[] {
  if (!task.enabled) return [];
  const later = runTimes(task.schedule, task.nextRun, 2);
  return [task.nextRun, ...later].map((ms) => zonedTime(ms, task.tz));
}

export async function runsOf(found: Tasks, id: string, limit: number): Promise<readonly TaskRun[]> {
  return await found.runs({ ...(id === '' ? {} : { taskId: (await findTask(found, id)).id }), limit });
}

const signs: Readonly<Record<RunStatus, string>> = {
  running: '…',
  done: '✔',
  failed: '✘',
  needs_approval: '?',
  limit: '$',
  interrupted: '!',
  skipped: '-',
};

export async function ranLines(found: Tasks, runs: readonly TaskRun[], none: string): Promise<string> {
  if (runs.length === 0) return none;
  const names = new Map((await found.list()).map(({ id, description }) => [id, description]));
  return columns(
    runs.map((run) => [
      `${signs[run.status]} ${run.id}`,
      run.host === undefined ? run.status : `${run.status} on ${run.host}`,
      `${age(Date.now() - run.firedAt)} ago`,
      run.costUsd === null || run.costUsd === 0 ? '' : `$${run.costUsd.toFixed(4)}`,
      oneLine(names.get(run.taskId) ?? run.taskId, 40),
      oneLine(summaryBeside(names.get(run.taskId) ?? '', run.summary ?? '')),
    ]),
  ).join('\n');
}

/** Marks the runs of a task that need an approval as seen: its calls are allowed now. */
export async function closeQuestions(found: Tasks, taskId: string): Promise<void> {
  const runs = await found.runs({ taskId, unseen: true, limit: maxUnseen });
  await found.markSeen(runs.flatMap(({ id, status }) => (status === 'needs_approval' ? [id] : [])));
}

export async function readInbox(found: Tasks): Promise<string> {
  const runs = await unseenRuns(found);
  const text = await ranLines(found, runs, 'Nothing new.');
  await found.markSeen(runs.map(({ id }) => id));
  return text;
}

export function taskAsJson(task: Task): object {
  return {
    id: task.id,
    task_type: task.type,
    description: task.description,
    schedule_type: task.scheduleType,
    schedule_data: task.schedule,
    execution_data: task.execution,
    enabled: task.enabled,
    created_at: task.createdAt,
    last_run: task.lastRun,
    next_run: task.nextRun,
    tz: task.tz,
    cwd: task.cwd,
    missed: task.missed,
    max_cost_usd: task.maxCostUsd,
    grants: task.grants,
    expires_at: task.expiresAt,
    failures: task.failures,
    made_in_session: task.madeInSession,
    ...(task.machine === undefined ? {} : { machine: task.machine }),
  };
}

export function runAsJson(run: TaskRun): object {
  return {
    id: run.id,
    task_id: run.taskId,
    scheduled_for: run.scheduledFor,
    fired_at: run.firedAt,
    finished_at: run.finishedAt,
    status: run.status,
    session_id: run.sessionId,
    cost_usd: run.costUsd,
    summary: run.summary,
    seen: run.seen,
    ...(run.host === undefined ? {} : { host: run.host }),
  };
}

export type TaskAction = 'pause' | 'resume' | 'rm';

/** Each returns what it did, as a sentence. */
export const changes: Readonly<Record<TaskAction, (found: Tasks, id: string) => Promise<string>>> = {
  pause: async (found, id) => {
    const task = await findTask(found, id);
    await found.change(task.id, { enabled: false });
    return `${titled(task)} is paused.`;
  },
  resume: async (found, id) => {
    const task = await findTask(found, id);
    const [next] = runTimes(task.schedule, Date.now(), 1);
    const nextRun = next ?? task.nextRun;
    if (next === undefined && nextRun <= Date.now())
      throw new CliError(
        exit.failed,
        `${titled(task)} was for one time, which has passed`,
        `Run it now with agent tasks run ${task.id}.`,
      );
    await found.change(task.id, { enabled: true, nextRun, failures: 0, expiresAt: null });
    return `${titled(task)} resumes at ${zonedTime(nextRun, task.tz)} (${task.tz}).`;
  },
  rm: async (found, id) => {
    const task = await findTask(found, id);
    await found.remove(task.id);
    return `${titled(task)} is removed; its runs remain in the log.`;
  },
};
