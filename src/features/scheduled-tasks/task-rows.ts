import { parseJson } from '../../kernel/core/json.js';
import { randomBytes } from 'node:crypto';
import { isRecord, type JsonObject } from '../../kernel/core/json.js';
import { ulid } from '../../kernel/core/store.js';
import {
  readSchedule,
  type RunChange,
  type RunFilter,
  type RunStatus,
  type Task,
  type TaskChange,
  type TaskClaim,
  type TaskMatch,
  type TaskRun,
  type Tasks,
  taskTypes,
} from './tasks.js';
import { nearest } from '../../kernel/core/text.js';
import type { Connection } from '../../kernel/store/connection.js';
import { StoreError } from '../../kernel/store/errors.js';
import { taskTables } from '../../kernel/store/migrations.js';
import { leaseHolder, type ProcessIdentity, takeLease } from '../../kernel/store/lease.js';

/** Runs of one task that are kept. */
const maxRuns = 1000;

interface TaskRow {
  readonly id: string;
  readonly task_type: string;
  readonly description: string;
  readonly schedule_type: string;
  readonly schedule_data: string;
  readonly execution_data: string | null;
  readonly enabled: number;
  readonly created_at: string;
  readonly last_run: string | null;
  readonly next_run: string;
  readonly tz: string | null;
  readonly cwd: string | null;
  readonly missed: string | null;
  readonly max_cost_usd: number | null;
  readonly grants: string | null;
  readonly expires_at: string | null;
  readonly failures: number | null;
  readonly made_in_session: string | null;
}

interface RunRow {
  readonly id: string;
  readonly task_id: string;
  readonly scheduled_for: string;
  readonly fired_at: string;
  readonly finished_at: string | null;
  readonly status: RunStatus;
  readonly session_id: string | null;
  readonly cost_usd: number | null;
  readonly summary: string | null;
  readonly seen: number;
}

/** The ways of a store to its database. */
interface Access {
  readonly read: <T>(work: (connection: Connection) => T) => Promise<T>;
  readonly write: <T>(work: (connection: Connection) => T) => Promise<T>;
  readonly me: () => ProcessIdentity;
}

/** Opens the tasks of a database. */
export function tasksOf({ read, write, me }: Access): Tasks {
  /** Databases that are known to have the tables. */
  const made = new WeakSet<Connection>();
  const change = <T>(work: (connection: Connection) => T): Promise<T> =>
    write((connection) => {
      if (!made.has(connection)) connection.db.exec(taskTables);
      made.add(connection);
      return connection.db.transaction(() => work(connection)).immediate();
    });
  /** Reads, or gives `none` where there never was a task. */
  const look = <T>(none: T, work: (connection: Connection) => T): Promise<T> =>
    read((connection) => {
      if (!made.has(connection)) {
        if (connection.sql("SELECT 1 FROM sqlite_schema WHERE name = 'task_runs'").get() === undefined) return none;
        made.add(connection);
      }
      return work(connection);
    });
  return {
    add: (task) => change((connection) => insertTask(connection, task)),
    list: () => look([], (connection) => readTasks(connection, 'ORDER BY enabled DESC, next_run, id')),
    find: (text) => look({ found: 'none', nearest: [] }, (connection) => findTask(connection, text)),
    change: (id, changes) => change((connection) => changeTask(connection, id, changes)),
    remove: (id) => change((connection) => removeTask(connection, id)),
    due: (nowMs) =>
      look([], (connection) =>
        readTasks(connection, 'WHERE enabled = 1 AND next_run <= ? ORDER BY next_run, id', timeText(nowMs)),
      ),
    claim: (task, claim) => change((connection) => claimTask(connection, task, claim, me)),
    finish: (runId, changes) => change((connection) => finishRun(connection, runId, changes)),
    runs: (filter) => look([], (connection) => readRuns(connection, filter)),
    markSeen: (runIds) =>
      change(({ sql }) => {
        for (const id of runIds) sql('UPDATE task_runs SET seen = 1 WHERE id = ?').run(id);
      }),
    spentSince: (sinceMs) => look(0, (connection) => spentSince(connection, sinceMs)),
    interruptOld: async (nowMs) => {
      const running = await look(false, ({ sql }) => sql(runningRuns).get() !== undefined);
      return running ? await change((connection) => interruptOld(connection, nowMs, me())) : [];
    },
  };
}

/** `2026-01-27 14:35:00`, UTC. */
function timeText(ms: number): string {
  return new Date(ms).toISOString().slice(0, 19).replace('T', ' ');
}

function timeOrNull(ms: number | null): string | null {
  return ms === null ? null : timeText(ms);
}

/** Not a number for what is no time: another program or a bad page may hold
 * anything. */
function msOf(text: unknown): number {
  return typeof text === 'string' ? Date.parse(`${text.replace(' ', 'T')}Z`) : Number.NaN;
}

function msOrNull(text: string | null): number | null {
  return text === null ? null : msOf(text);
}

function insertTask({ sql }: Connection, task: Task): void {
  if (sql('SELECT 1 FROM scheduled_tasks WHERE id = ?').get(task.id) !== undefined) throw taskExists(task.id);
  sql(`INSERT INTO scheduled_tasks (id, task_type, description, schedule_type, schedule_data, execution_data, enabled,
         created_at, last_run, next_run) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`).run(
    task.id,
    task.type,
    task.description,
    task.scheduleType,
    JSON.stringify(task.schedule),
    task.execution === null ? null : JSON.stringify(task.execution),
    task.enabled ? 1 : 0,
    timeText(task.createdAt),
    timeOrNull(task.lastRun),
    timeText(task.nextRun),
  );
  writeSettings({ sql }, task);
}

/** The error of a second task with one id. */
export function taskExists(id: string): StoreError {
  return new StoreError('exists', `There is a task ${id} already`, 'Try again; it gets another id.');
}

function writeSettings({ sql }: Pick<Connection, 'sql'>, task: Task): void {
  sql(`INSERT OR REPLACE INTO task_settings (task_id, tz, cwd, missed, max_cost_usd, grants, expires_at, failures,
         made_in_session) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`).run(
    task.id,
    task.tz,
    task.cwd,
    task.missed,
    task.maxCostUsd,
    JSON.stringify(task.grants),
    timeOrNull(task.expiresAt),
    task.failures,
    task.madeInSession,
  );
}

/** Leaves out rows that nobody can run: another program may write seed 002's table. */
function readTasks({ sql }: Connection, rest: string, ...values: readonly unknown[]): readonly Task[] {
  return sql<TaskRow>(
    `SELECT t.*, s.tz, s.cwd, s.missed, s.max_cost_usd, s.grants, s.expires_at, s.failures, s.made_in_session
       FROM scheduled_tasks t LEFT JOIN task_settings s ON s.task_id = t.id ${rest}`,
  )
    .all(...values)
    .flatMap((row) => taskOf(row) ?? []);
}

function taskOf(row: TaskRow): Task | null {
  const tz = row.tz ?? Intl.DateTimeFormat().resolvedOptions().timeZone;
  const nextRun = msOf(row.next_run);
  const facts = factsOf({ ...row, tz });
  if (facts === null || Number.isNaN(nextRun)) return null;
  return {
    ...facts,
    enabled: row.enabled === 1,
    createdAt: msOf(row.created_at),
    lastRun: msOrNull(row.last_run),
    nextRun,
    expiresAt: msOrNull(row.expires_at),
  };
}

/** Columns that mean the same here and on a team's server. */
type FactColumn =
  | 'id'
  | 'task_type'
  | 'description'
  | 'schedule_type'
  | 'schedule_data'
  | 'execution_data'
  | 'cwd'
  | 'missed'
  | 'max_cost_usd'
  | 'grants'
  | 'failures'
  | 'made_in_session';

/** Reads them; null for what this program cannot run: a newer one may have made it. */
export function factsOf(
  row: Pick<TaskRow, FactColumn> & { readonly tz: string },
): Omit<Task, 'enabled' | 'createdAt' | 'lastRun' | 'nextRun' | 'expiresAt' | 'machine'> | null {
  const schedule = readSchedule(parseOrNull(row.schedule_data), row.tz);
  const type = taskTypes.find((known) => known === row.task_type);
  if (schedule === null || type === undefined) return null;
  const [execution, grants] = [parseOrNull(row.execution_data), parseOrNull(row.grants)];
  return {
    id: row.id,
    type,
    description: row.description,
    scheduleType: row.schedule_type === 'recurring' ? 'recurring' : 'once',
    schedule,
    execution: isRecord(execution) ? (execution as JsonObject) : null,
    tz: row.tz,
    cwd: row.cwd ?? '/',
    missed: row.missed === 'skip' || row.missed === 'ask' ? row.missed : 'run_once',
    maxCostUsd: row.max_cost_usd,
    grants: Array.isArray(grants) ? grants.filter((grant) => typeof grant === 'string') : [],
    failures: row.failures ?? 0,
    madeInSession: row.made_in_session,
  };
}

function parseOrNull(text: string | null): unknown {
  try {
    return parseJson(text ?? 'null');
  } catch {
    return null;
  }
}

function findTask(connection: Connection, text: string): TaskMatch {
  return matchTask(readTasks(connection, 'ORDER BY id'), text);
}

/** Finds a task by its id or by a prefix that one id alone has. */
export function matchTask(tasks: readonly Task[], text: string): TaskMatch {
  const wanted = text.trim().toLowerCase();
  const exact = tasks.find((task) => task.id === wanted);
  const found = exact ? [exact] : wanted === '' ? [] : tasks.filter((task) => task.id.startsWith(wanted));
  const [task] = found;
  if (task === undefined)
    return {
      found: 'none',
      nearest: nearest(
        wanted,
        tasks.map(({ id }) => id),
      ),
    };
  return found.length === 1 ? { found: 'one', task } : { found: 'many', tasks: found };
}

function changeTask(connection: Connection, id: string, change: TaskChange): boolean {
  const [task] = readTasks(connection, 'WHERE t.id = ?', id);
  if (task === undefined) return false;
  const changed = { ...task, ...change };
  connection
    .sql('UPDATE scheduled_tasks SET enabled = ?, next_run = ? WHERE id = ?')
    .run(changed.enabled ? 1 : 0, timeText(changed.nextRun), id);
  writeSettings(connection, changed);
  return true;
}

function removeTask({ sql }: Connection, id: string): boolean {
  sql('DELETE FROM task_settings WHERE task_id = ?').run(id);
  return sql('DELETE FROM scheduled_tasks WHERE id = ?').run(id).changes > 0;
}

const runningRuns = "SELECT * FROM task_runs WHERE status = 'running'";

/** The name of the lease that says which process is at work on a run. */
function leaseOf(runId: string): string {
  return `task run ${runId}`;
}

function claimTask(
  connection: Connection,
  task: Pick<Task, 'id' | 'nextRun'>,
  { firedAt, nextRun, status, atOnce }: TaskClaim,
  me: () => ProcessIdentity,
): TaskRun | null {
  const { sql } = connection;
  const runs = status === 'running';
  if (runs && sql(`${runningRuns} AND task_id = ?`).get(task.id) !== undefined) return null;
  if (runs && atOnce !== undefined && atWork(connection) >= atOnce) return null;
  const fired = timeText(firedAt);
  const moved = sql(
    `UPDATE scheduled_tasks SET next_run = coalesce(?, next_run), enabled = ?,
         last_run = CASE WHEN ? THEN ? ELSE last_run END
       WHERE id = ? AND enabled = 1 AND next_run = ?`,
  ).run(timeOrNull(nextRun), nextRun === null ? 0 : 1, runs ? 1 : 0, fired, task.id, timeText(task.nextRun));
  if (moved.changes === 0) return null;
  const id = ulid(firedAt, randomBytes(16));
  if (runs) takeLease(connection, leaseOf(id), me(), firedAt);
  const run = sql<RunRow>(
    `INSERT INTO task_runs (id, task_id, scheduled_for, fired_at, finished_at, status) VALUES (?, ?, ?, ?, ?, ?)
       RETURNING *`,
  ).get(id, task.id, timeText(task.nextRun), fired, runs ? null : fired, status);
  sql(
    `DELETE FROM task_runs WHERE task_id = ? AND rowid <=
       (SELECT rowid FROM task_runs WHERE task_id = ? ORDER BY rowid DESC LIMIT 1 OFFSET ${maxRuns})`,
  ).run(task.id, task.id);
  return run ? runOf(run) : null;
}

/** Runs that work, in all processes. A reminder is no work. */
function atWork({ sql }: Connection): number {
  const { n } = sql<{ readonly n: number }>(
    `SELECT count(*) AS n FROM task_runs r JOIN scheduled_tasks t ON t.id = r.task_id
       WHERE r.status = 'running' AND t.task_type <> 'reminder'`,
  ).get() ?? { n: 0 };
  return n;
}

function runOf(row: RunRow): TaskRun {
  return {
    id: row.id,
    taskId: row.task_id,
    scheduledFor: msOf(row.scheduled_for),
    firedAt: msOf(row.fired_at),
    finishedAt: msOrNull(row.finished_at),
    status: row.status,
    sessionId: row.session_id,
    costUsd: row.cost_usd,
    summary: row.summary,
    seen: row.seen === 1,
  };
}

function finishRun({ sql }: Connection, runId: string, change: RunChange): void {
  const row = sql<RunRow>('SELECT * FROM task_runs WHERE id = ?').get(runId);
  if (!row) return;
  const { finishedAt, status, sessionId, costUsd, summary } = { ...runOf(row), ...change };
  sql('UPDATE task_runs SET finished_at = ?, status = ?, session_id = ?, cost_usd = ?, summary = ? WHERE id = ?').run(
    timeOrNull(finishedAt),
    status,
    sessionId,
    costUsd,
    summary,
    runId,
  );
  if (status !== 'running') sql('DELETE FROM leases WHERE session_id = ?').run(leaseOf(runId));
}

function readRuns({ sql }: Connection, { taskId, unseen, limit }: RunFilter): readonly TaskRun[] {
  return sql<RunRow>(
    `SELECT * FROM task_runs WHERE (? IS NULL OR task_id = ?) AND (? = 0 OR (seen = 0 AND status <> 'running'))
       ORDER BY rowid DESC LIMIT ?`,
  )
    .all(taskId ?? null, taskId ?? null, unseen === true ? 1 : 0, limit)
    .map(runOf);
}

function spentSince({ sql }: Connection, sinceMs: number): number {
  const { usd } = sql<{ readonly usd: number }>(
    'SELECT coalesce(sum(cost_usd), 0) AS usd FROM task_runs WHERE fired_at >= ? AND cost_usd > 0',
  ).get(timeText(sinceMs)) ?? { usd: 0 };
  return usd;
}

function interruptOld(connection: Connection, nowMs: number, me: ProcessIdentity): readonly TaskRun[] {
  const { sql } = connection;
  const gone = sql<RunRow>(`${runningRuns} ORDER BY rowid`)
    .all()
    .filter((row) => leaseHolder(connection, leaseOf(row.id), undefined, me, nowMs) === null);
  for (const row of gone) {
    finishRun(connection, row.id, { status: 'interrupted', finishedAt: nowMs });
    sql(
      `UPDATE scheduled_tasks SET next_run = ?, enabled = CASE WHEN schedule_type = 'once' THEN 1 ELSE enabled END
         WHERE id = ? AND task_type = 'reminder'`,
    ).run(row.scheduled_for, row.task_id);
  }
  return gone.map((row) => ({ ...runOf(row), status: 'interrupted', finishedAt: nowMs }));
}
