import { isRecord, type JsonObject } from '../../kernel/core/json.js';

export const taskTypes = ['reminder', 'agent_task', 'api_call', 'web_search'] as const;
export type TaskType = (typeof taskTypes)[number];
/** The rule for runs that are more than a minute late because no process was there. */
type MissedRule = 'run_once' | 'skip' | 'ask';

/** `source` is the schedule in the words it was given in;
 * `tz` the IANA zone that its hours are in. */
export type TaskSchedule =
  | { readonly delay: string }
  | { readonly cron: string; readonly tz: string; readonly source: string };

/** Something that is to happen at a time.
 * Times are Unix ms; a store keeps whole seconds of them. */
export interface Task {
  /** A few lower-case letters and digits. */
  readonly id: string;
  readonly type: TaskType;
  readonly description: string;
  readonly scheduleType: 'once' | 'recurring';
  readonly schedule: TaskSchedule;
  /** The parameters of its type: `{prompt}`, `{url, method}`, `{query, limit, summarize}`; unknown keys are kept. */
  readonly execution: JsonObject | null;
  /** False: paused, or a single one that has fired. */
  readonly enabled: boolean;
  readonly createdAt: number;
  /** When its last run began. */
  readonly lastRun: number | null;
  readonly nextRun: number;
  /** The IANA zone at its creation. */
  readonly tz: string;
  /** The working directory of its runs; absolute. */
  readonly cwd: string;
  readonly missed: MissedRule;
  /** The most that one run may cost; null: the limit of the settings. */
  readonly maxCostUsd: number | null;
  /** SHA-256 (hex) of the calls that the user has allowed this task. */
  readonly grants: readonly string[];
  readonly expiresAt: number | null;
  /** Runs that failed one after the other. */
  readonly failures: number;
  /** The session whose model made it; null: the user did. */
  readonly madeInSession: string | null;
  /** The machine that runs it if the store is shared, or `anyMachine`. */
  readonly machine?: string;
}

/** Machines of this name run any task that is for it. */
export const anyMachine = 'any';

/** Tasks that one look at a shared store gives.
 * Others fire meanwhile, so that a longer list would be old. */
export const mostDue = 100;

/** `interrupted`: its process ended in the middle.
 * `limit`: it would have cost more than it may. */
export type RunStatus = 'running' | 'done' | 'failed' | 'needs_approval' | 'limit' | 'interrupted' | 'skipped';

/** One firing of a task. Times are Unix ms. */
export interface TaskRun {
  /** A ULID. */
  readonly id: string;
  readonly taskId: string;
  readonly scheduledFor: number;
  readonly firedAt: number;
  readonly finishedAt: number | null;
  readonly status: RunStatus;
  readonly sessionId: string | null;
  readonly costUsd: number | null;
  readonly summary: string | null;
  /** The user has been notified. */
  readonly seen: boolean;
  /** The host it runs on, where the store is shared. */
  readonly host?: string;
}

/** Returns the summary of a run without the description of its task. The summary of a reminder is only the
 * description. */
export function summaryBeside(description: string, summary: string): string {
  return summary.startsWith(description) ? summary.slice(description.length).trim() : summary;
}

export type TaskMatch =
  | { readonly found: 'one'; readonly task: Task }
  | { readonly found: 'none'; /** The nearest ids. */ readonly nearest: readonly string[] }
  | { readonly found: 'many'; readonly tasks: readonly Task[] };

export type TaskChange = Partial<
  Pick<Task, 'enabled' | 'nextRun' | 'missed' | 'maxCostUsd' | 'grants' | 'expiresAt' | 'failures'>
>;

export interface TaskClaim {
  readonly firedAt: number;
  /** Null: there is none; the task is switched off. */
  readonly nextRun: number | null;
  /** A run that is skipped is over at once and does not count as the task's last. */
  readonly status: 'running' | 'skipped';
  /** Most runs at once in all processes, reminders left aside;
   * without it there is no such limit. In a store that
   * machines share each process counts its own. */
  readonly atOnce?: number;
}

export type RunChange = Partial<Pick<TaskRun, 'finishedAt' | 'status' | 'sessionId' | 'costUsd' | 'summary'>>;

export interface RunFilter {
  readonly taskId?: string;
  /** Only runs that are over and that no user was notified of. */
  readonly unseen?: true;
  readonly limit: number;
}

/** The tasks of one store and what became of them.
 * All processes that open the store share them. Where it is shared
 * between machines, `due` gives `mostDue` of those that are for this one and that it has room for. */
export interface Tasks {
  /** Rejects with `exists` where the id is taken. */
  add(task: Task): Promise<void>;
  /** Lists tasks of every state, the next first. */
  list(): Promise<readonly Task[]>;
  /** By id or by a prefix that one id alone has. */
  find(text: string): Promise<TaskMatch>;
  /** False where there is no such task. */
  change(id: string, change: TaskChange): Promise<boolean>;
  /** Removes a task. What its runs did and cost stays.
   * False where there was none. */
  remove(id: string): Promise<boolean>;
  /** Enabled tasks whose time has come, the one that waits longest first.
   * Opens nothing and writes nothing where there
   * never was a task. */
  due(nowMs: number): Promise<readonly Task[]>;
  /** Fires `task` once among all processes: moves its next run and writes the run in one transaction, before the work.
   * Resolves to null if another process was faster, if it was changed or switched off meanwhile, if its last run is not
   * over, or if `atOnce` runs are active. */
  claim(task: Pick<Task, 'id' | 'nextRun'>, claim: TaskClaim): Promise<TaskRun | null>;
  /** Records what became of a run. A run whose `finishedAt` is set is over. */
  finish(runId: string, change: RunChange): Promise<void>;
  /** Newest first. */
  runs(filter: RunFilter): Promise<readonly TaskRun[]>;
  markSeen(runIds: readonly string[]): Promise<void>;
  /** Returns the cost, in USD, of runs that fired since `sinceMs`. */
  spentSince(sinceMs: number): Promise<number>;
  /** Ends runs whose process is gone as `interrupted` and returns them.
   * A reminder among them is due again. */
  interruptOld(nowMs: number): Promise<readonly TaskRun[]>;
}

/** The days of a schedule in words, as cron writes them. */
export const cronDays: Readonly<Record<string, string>> = {
  daily: '*',
  weekdays: '1-5',
  weekends: '0,6',
  sunday: '0',
  monday: '1',
  tuesday: '2',
  wednesday: '3',
  thursday: '4',
  friday: '5',
  saturday: '6',
};

/** Reads a stored schedule, also seed 002's `{"pattern":
 * "daily", "time": "09:00"}`. Null: it says nothing we know. */
export function readSchedule(value: unknown, tz: string): TaskSchedule | null {
  if (!isRecord(value)) return null;
  if (typeof value.delay === 'string') return { delay: value.delay };
  const zone = typeof value.tz === 'string' ? value.tz : tz;
  if (typeof value.cron === 'string')
    return { cron: value.cron, tz: zone, source: typeof value.source === 'string' ? value.source : value.cron };
  const { pattern, time } = value;
  if (typeof pattern !== 'string' || typeof time !== 'string' || !Object.hasOwn(cronDays, pattern)) return null;
  const [, hour, minute] = /^(\d{1,2}):(\d{2})$/.exec(time) ?? [];
  if (hour === undefined) return null;
  const cron = `${Number(minute)} ${Number(hour)} * * ${cronDays[pattern] ?? '*'}`;
  return { cron, tz: zone, source: `${pattern} ${time}` };
}

/** More than this is nothing to read; `runs` has all. */
export const maxUnseen = 100;

/** Returns the runs that ended and that the user has not seen, without the question of a task that was removed. */
export async function unseenRuns(found: Tasks): Promise<readonly TaskRun[]> {
  const runs = await found.runs({ unseen: true, limit: maxUnseen });
  const asks = runs.some(({ status }) => status === 'needs_approval');
  const known = new Set(asks ? (await found.list()).map(({ id }) => id) : []);
  return runs.filter(({ status, taskId }) => (status === 'needs_approval' ? known.has(taskId) : status !== 'skipped'));
}
