import { randomBytes, randomUUID } from 'node:crypto';
import { ulid } from '../../kernel/core/store.js';
import {
  anyMachine,
  mostDue,
  type RunChange,
  type RunFilter,
  type RunStatus,
  type Task,
  type TaskClaim,
  type TaskRun,
  type Tasks,
} from './tasks.js';
import { wellFormed } from '../../kernel/core/text.js';
import { factsOf, matchTask, taskExists } from './task-rows.js';
import { leaseBeatMs, leaseStaleMs, type ServerPlace, type ServerRows } from '../../kernel/store/tables.js';

interface TaskRow {
  readonly id: string;
  readonly machine: string;
  readonly task_type: string;
  readonly description: string;
  readonly schedule_type: string;
  readonly schedule_data: string;
  readonly execution_data: string | null;
  readonly enabled: boolean;
  readonly created_at: number;
  readonly last_run: number | null;
  readonly next_run: number;
  readonly tz: string;
  readonly cwd: string;
  readonly missed: string;
  readonly max_cost_usd: number | null;
  readonly grants: string;
  readonly expires_at: number | null;
  readonly failures: number;
  readonly made_in_session: string | null;
}

interface RunRow {
  readonly id: string;
  readonly task_id: string;
  readonly host: string;
  readonly scheduled_for: number;
  readonly fired_at: number;
  readonly finished_at: number | null;
  readonly status: RunStatus;
  readonly session_id: string | null;
  readonly cost_usd: number | null;
  readonly summary: string | null;
  readonly seen: boolean;
}

/** Runs of one task that are kept. */
const maxRuns = 1000;
/** Claims of a process between two looks for runs that are too many. */
const prunedEvery = 50;
const stale = `interval '${leaseStaleMs} milliseconds'`;
const taskColumns = `id, machine, task_type, description,
  schedule_type, schedule_data, execution_data, enabled, created_at,
  last_run, next_run, tz, cwd, missed, max_cost_usd, grants,
  expires_at, failures, made_in_session`;
const runColumns = `id, task_id, host, scheduled_for, fired_at,
  finished_at, status, session_id, cost_usd, summary, seen`;

/** Opens the tasks that machines share through a server.
 * A process is one worker: what it claims is its own as long as
 * it beats, by the clock of the server. */
export function openSharedTasks(options: ServerPlace): Tasks {
  return new SharedTasks(options);
}

class SharedTasks implements Tasks {
  readonly #rows: ServerRows;
  readonly #transact: ServerPlace['connection']['transact'];
  readonly #team: string | null;
  readonly #machine: string;
  readonly #host: string;
  readonly #worker = randomUUID();
  /** Runs of this process by id; true: it is work and no reminder. */
  readonly #runs = new Map<string, boolean>();
  #beat: NodeJS.Timeout | null = null;
  #claims = 0;
  /** The last claim of work was refused: as many as may are at work here. */
  #isFull = false;

  constructor({ connection, team, machine, host }: ServerPlace) {
    this.#rows = connection.rows;
    this.#transact = connection.transact;
    this.#team = team;
    this.#host = host;
    this.#machine = machine ?? host;
  }

  add: Tasks['add'] = async (task) => {
    const values = [...taskValues(task, task.machine ?? this.#machine), this.#team];
    const marks = values.map((_, index) => `$${index + 1}`).join(', ');
    const added = await this.#rows(
      `INSERT INTO agent.tasks (${taskColumns}, team) VALUES (${marks}) ON CONFLICT (id) DO NOTHING RETURNING id`,
      values,
    );
    if (added.length === 0) throw taskExists(task.id);
  };

  list: Tasks['list'] = () => this.#tasks('ORDER BY enabled DESC, next_run, id');
  find: Tasks['find'] = async (text) => matchTask(await this.#tasks('ORDER BY id'), text);

  change: Tasks['change'] = (id, change) =>
    this.#transact(async (rows) => {
      const [row] = await rows<TaskRow>(`SELECT ${taskColumns} FROM agent.tasks WHERE id = $1 FOR UPDATE`, [id]);
      const task = row ? taskOf(row) : null;
      if (task === null) return false;
      await rows(
        `UPDATE agent.tasks
         SET enabled = $2, next_run = $3, missed = $4,
           max_cost_usd = $5, grants = $6, expires_at = $7,
           failures = $8 WHERE id = $1`,
        [id, ...changedValues({ ...task, ...change })],
      );
      return true;
    });

  remove: Tasks['remove'] = async (id) => {
    const gone = await this.#rows('DELETE FROM agent.tasks WHERE id = $1 RETURNING id', [id]);
    return gone.length > 0;
  };

  /** A task runs with the rights of whoever takes it:
   * those of others are taken where the settings say that this
   * machine is for any. Those of one moment come in an order of this worker's own,
   * so that workers do not all reach for
   * the same. What waits for a word of the user comes last. */
  due: Tasks['due'] = (nowMs) =>
    this.#tasks(
      `WHERE enabled AND next_run <= $1 AND ($2 OR task_type = 'reminder')
         AND CASE WHEN machine = '${anyMachine}'
           THEN $3 = '${anyMachine}'
           ELSE owner = session_user AND machine IN ($3, $4) END
         AND NOT EXISTS (SELECT 1 FROM agent.task_runs r
           WHERE r.task_id = t.id AND r.status = 'running')
       ORDER BY (missed = 'ask' AND next_run < $1 - 60000), next_run, md5(id || $5) LIMIT ${mostDue}`,
      [nowMs, !this.#isFull, this.#machine, this.#host, this.#worker],
    );

  claim: Tasks['claim'] = async (task, claim) => {
    const runs = claim.status === 'running';
    if (runs && claim.atOnce !== undefined && this.#working() >= claim.atOnce) {
      this.#isFull = true;
      return null;
    }
    if (runs) this.#startBeat();
    const id = ulid(claim.firedAt, randomBytes(16));
    // Counted before the answer: a second claim of this process meanwhile is held to the same limit.
    if (runs) this.#runs.set(id, claim.atOnce !== undefined);
    try {
      const row = await this.#claimed(id, task, claim);
      if (row === null) this.#forget(id);
      return row && runOf(row);
    } catch (error) {
      this.#forget(id);
      throw error;
    }
  };

  finish: Tasks['finish'] = async (runId, change) => {
    const [sets, values] = runSets(change);
    try {
      if (sets.length > 0)
        await this.#rows(`UPDATE agent.task_runs SET ${sets.join(', ')} WHERE id = $1`, [runId, ...values]);
    } finally {
      // Also where it could not be said: without a beat it counts as interrupted later.
      if ((change.status ?? 'running') !== 'running') this.#forget(runId);
    }
  };

  runs: Tasks['runs'] = async ({ taskId, unseen, limit }: RunFilter) => {
    const rows = await this.#rows<RunRow>(
      `SELECT ${runColumns} FROM agent.task_runs
       WHERE ($1::text IS NULL OR task_id = $1) AND (NOT $2
         OR (NOT seen AND status <> 'running'))
       ORDER BY number DESC LIMIT $3`,
      [taskId ?? null, unseen === true, limit],
    );
    return rows.map(runOf);
  };

  markSeen: Tasks['markSeen'] = async (runIds) => {
    if (runIds.length > 0)
      await this.#rows('UPDATE agent.task_runs SET seen = true WHERE id = ANY ($1)', [[...runIds]]);
  };

  /** Of the runs of this role, on all machines. */
  spentSince: Tasks['spentSince'] = async (sinceMs) => {
    const [row] = await this.#rows<{ readonly usd: number }>(
      `SELECT coalesce(sum(cost_usd), 0)::float8 AS usd FROM agent.task_runs
       WHERE fired_at >= $1 AND cost_usd > 0 AND owner = session_user`,
      [seconds(sinceMs)],
    );
    return row?.usd ?? 0;
  };

  interruptOld: Tasks['interruptOld'] = async (nowMs) => {
    const gone = await this.#rows<RunRow>(
      `WITH gone AS (
         UPDATE agent.task_runs r SET status = 'interrupted',
           finished_at = $1 WHERE r.status = 'running' AND r.id IN (
           SELECT o.id FROM agent.task_runs o
           WHERE o.status = 'running'
             AND o.beat < clock_timestamp() - ${stale} FOR UPDATE SKIP LOCKED)
         RETURNING r.*),
       again AS (
         UPDATE agent.tasks t SET next_run = g.scheduled_for,
           enabled = t.enabled OR t.schedule_type = 'once'
         FROM gone g WHERE t.id = g.task_id
           AND t.task_type = 'reminder')
       SELECT ${runColumns} FROM gone ORDER BY number`,
      [seconds(nowMs)],
    );
    return gone.map(runOf);
  };

  async #tasks(rest: string, values: readonly unknown[] = []): Promise<readonly Task[]> {
    const rows = await this.#rows<TaskRow>(`SELECT ${taskColumns} FROM agent.tasks t ${rest}`, values);
    return rows.flatMap((row) => taskOf(row) ?? []);
  }

  #working(): number {
    return [...this.#runs.values()].filter((works) => works).length;
  }

  /** One statement: of workers that ask at once,
   * one gets the row; the others pass over it. */
  async #claimed(
    id: string,
    task: Pick<Task, 'id' | 'nextRun'>,
    { firedAt, nextRun, status }: TaskClaim,
  ): Promise<RunRow | null> {
    const runs = status === 'running';
    const fired = seconds(firedAt);
    const next = nextRun === null ? null : seconds(nextRun);
    const [row] = await this.#rows<RunRow>(
      `WITH picked AS (
         SELECT id, next_run FROM agent.tasks WHERE id = $1
           AND enabled AND next_run = $2
           AND NOT ($5 AND EXISTS (SELECT 1
             FROM agent.task_runs r WHERE r.task_id = $1
             AND r.status = 'running'))
         FOR UPDATE SKIP LOCKED),
       moved AS (
         UPDATE agent.tasks t SET next_run = coalesce($3::bigint,
           t.next_run), enabled = $3::bigint IS NOT NULL,
           last_run = CASE WHEN $5 THEN $4 ELSE t.last_run END
         FROM picked p WHERE t.id = p.id RETURNING t.id, t.team,
           p.next_run)
       INSERT INTO agent.task_runs (id, task_id, team, scheduled_for,
         fired_at, finished_at, status, worker, host)
       SELECT $6, id, team, next_run, $4, CASE WHEN $5 THEN NULL
         ELSE $4::bigint END, $7, $8, $9 FROM moved
       ON CONFLICT (task_id) WHERE status = 'running' DO NOTHING
       RETURNING ${runColumns}`,
      [task.id, seconds(task.nextRun), next, fired, runs, id, status, this.#worker, this.#host],
    );
    if (row === undefined) return null;
    if (this.#claims++ % prunedEvery > 0) return row;
    await this.#rows(
      `DELETE FROM agent.task_runs WHERE task_id = $1 AND number <=
         (SELECT number FROM agent.task_runs WHERE task_id = $1 ORDER BY number DESC LIMIT 1 OFFSET ${maxRuns})`,
      [task.id],
    );
    return row;
  }

  /** Beats as long as this process has runs.
   * A beat that fails is followed by the next. */
  #startBeat(): void {
    this.#beat ??= setInterval(() => {
      void this.#rows('UPDATE agent.task_runs SET beat = clock_timestamp() WHERE id = ANY ($1)', [
        [...this.#runs.keys()],
      ]).catch(() => undefined);
    }, leaseBeatMs).unref();
  }

  #forget(runId: string): void {
    this.#runs.delete(runId);
    this.#isFull = false;
    if (this.#runs.size > 0 || this.#beat === null) return;
    clearInterval(this.#beat);
    this.#beat = null;
  }
}

function taskValues(task: Task, machine: string): readonly unknown[] {
  return [
    task.id,
    machine,
    task.type,
    plain(task.description),
    task.scheduleType,
    JSON.stringify(task.schedule),
    task.execution === null ? null : JSON.stringify(task.execution),
    task.enabled,
    seconds(task.createdAt),
    secondsOrNull(task.lastRun),
    seconds(task.nextRun),
    task.tz,
    task.cwd,
    task.missed,
    task.maxCostUsd,
    JSON.stringify(task.grants),
    secondsOrNull(task.expiresAt),
    task.failures,
    task.madeInSession,
  ];
}

/** PostgreSQL keeps no U+0000 in a text. */
function plain(text: string): string {
  return wellFormed(text).replaceAll('\0', '\u2400');
}

function changedValues(task: Task): readonly unknown[] {
  const { enabled, nextRun, missed, maxCostUsd, grants, expiresAt, failures } = task;
  return [enabled, seconds(nextRun), missed, maxCostUsd, JSON.stringify(grants), secondsOrNull(expiresAt), failures];
}

function seconds(ms: number): number {
  return Math.floor(ms / 1000) * 1000;
}

function secondsOrNull(ms: number | null): number | null {
  return ms === null ? null : seconds(ms);
}

function taskOf(row: TaskRow): Task | null {
  const facts = factsOf(row);
  if (facts === null) return null;
  return {
    ...facts,
    enabled: row.enabled,
    createdAt: row.created_at,
    lastRun: row.last_run,
    nextRun: row.next_run,
    expiresAt: row.expires_at,
    machine: row.machine,
  };
}

function runOf(row: RunRow): TaskRun {
  return {
    id: row.id,
    taskId: row.task_id,
    scheduledFor: row.scheduled_for,
    firedAt: row.fired_at,
    finishedAt: row.finished_at,
    status: row.status,
    sessionId: row.session_id,
    costUsd: row.cost_usd,
    summary: row.summary,
    seen: row.seen,
    host: row.host,
  };
}

/** The columns that a change sets, from parameter 2 on, and their values. */
function runSets(change: RunChange): readonly [sets: readonly string[], values: readonly unknown[]] {
  const { finishedAt, status, sessionId, costUsd, summary } = change;
  const wanted: readonly (readonly [column: string, value: unknown])[] = [
    ['finished_at', finishedAt == null ? finishedAt : seconds(finishedAt)],
    ['status', status],
    ['session_id', sessionId],
    ['cost_usd', costUsd],
    ['summary', summary == null ? summary : plain(summary)],
  ];
  const given = wanted.filter(([, value]) => value !== undefined);
  return [given.map(([column], index) => `${column} = $${index + 2}`), given.map(([, value]) => value)];
}
