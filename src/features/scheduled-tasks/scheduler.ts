import { addAll } from '../../kernel/core/lists.js';
import type { Log } from '../../kernel/core/runtime.js';
import { mostDue, type RunStatus, type Task, type TaskClaim, type TaskRun, type Tasks } from './tasks.js';
import type { DesktopNotification } from '../../kernel/console/slash-command.js';
import type { ApprovalMode } from '../../kernel/core/policy.js';

/** One firing of a task that does more than remind. */
export interface TaskRunRequest {
  readonly task: Task;
  readonly run: TaskRun;
  /** Runs that nobody was there for since `run.scheduledFor`,
   * this one among them; 0 where it is in time. */
  readonly missed: number;
  readonly maxCostUsd: number;
  readonly signal: AbortSignal;
  /** Notes the session of the run before its work begins,
   * and what it has cost so far, which counts for the day also
   * where the process is killed. */
  readonly note: (known: { readonly sessionId: string } | { readonly costUsd: number }) => Promise<void>;
}

/** Runs a task in a session of its own, where nobody can be asked. `atLeast`: the run is not freer than this approval
 * mode. Never rejects. */
export type RunTask = (request: TaskRunRequest, atLeast?: ApprovalMode) => Promise<TaskOutcome>;

/** The outcome of a request. */
export interface TaskOutcome {
  readonly status: Exclude<RunStatus, 'running' | 'skipped'>;
  readonly summary: string;
  /** Null where it is not known. */
  readonly costUsd: number | null;
}

/** A run that was begun or skipped,
 * or a task that waits for a word of the user: then `run` is null. */
export interface Fired {
  readonly task: Task;
  readonly run: TaskRun | null;
  readonly missed: number;
}

export interface FiringDeps {
  readonly tasks: Tasks;
  /** Unix ms of the wall clock: it may jump. */
  readonly now: () => number;
  /** The next time of a task after a moment, or null. */
  readonly nextAfter: (task: Task, afterMs: number) => number | null;
  /** Does what a task says, with nobody there to ask. May not reject. */
  readonly work: (request: TaskRunRequest) => Promise<TaskOutcome>;
  /** Notifies the user until `signal` ends that; resolves to true if they have read it. May not reject. */
  readonly tell: (said: DesktopNotification, fired: Fired, signal: AbortSignal) => Promise<boolean>;
  /** A user is there who is asked about missed runs, if their task wants that; else those wait silently. */
  readonly asks: boolean;
  readonly limits: { readonly maxCostUsd: number; readonly maxCostUsdPerDay: number };
  readonly log: Log;
}

/** Fires tasks as long as a process lives. */
export interface Firing {
  /** Fires what is due. Resolves once all of it is begun,
   * with what was; a run that ends begins what waits for it. */
  check(): Promise<readonly Fired[]>;
  /** Milliseconds until the next look: less than a minute,
   * since a clock may jump, a machine may sleep, and another
   * process may add a task. */
  restMs(): Promise<number>;
  /** Runs a task now, whatever its schedule is. Resolves to null if another process has just begun it, or if too many
   * runs are active. */
  runNow(task: Task): Promise<TaskRun | null>;
  /** Resolves when no run is active and nothing waits for one. */
  settled(): Promise<void>;
  /** Ends the active runs. */
  stop(): Promise<void>;
}

const lateMs = 60_000;
const longestRestMs = 15_000;
/** All processes together, reminders left aside. */
const runsAtOnce = 2;
/** The most reminders that this process has begun, and the most programs that notify at once. After a kill at most this
 * number is repeated. */
const toldAtOnce = 5;
const failuresToPause = 3;
/** The most missed runs that are counted. */
const mostCounted = 10_000;

export function createFiring(d: FiringDeps): Firing {
  return new Live(d);
}

class Live implements Firing {
  readonly #d: FiringDeps;
  readonly #running = new Set<Promise<void>>();
  readonly #stop = new AbortController();
  /** The cost that active runs may still cause. */
  #reservedUsd = 0;
  /** True if this process looks for due tasks; false if it runs one task alone. */
  #looks = false;
  /** The reminders that have begun and are not recorded as said. */
  #reminding = 0;
  #telling = 0;
  readonly #untold: (() => void)[] = [];
  /** The tasks that wait for a word, so that each is said once. */
  readonly #asked = new Set<string>();

  constructor(d: FiringDeps) {
    this.#d = d;
  }

  async check(): Promise<readonly Fired[]> {
    const { tasks, now } = this.#d;
    this.#looks = true;
    await this.#reportInterrupted();
    const fired: Fired[] = [];
    for (let mayBeMore = true; mayBeMore;) {
      const due = await tasks.due(now());
      const begun: Fired[] = [];
      for (const task of due) {
        if (this.#stop.signal.aborted) break;
        const one = await this.#fire(task);
        if (one) begun.push(one);
      }
      addAll(fired, begun);
      mayBeMore = due.length >= mostDue && begun.some(({ run }) => run !== null);
    }
    return fired;
  }

  async restMs(): Promise<number> {
    const now = this.#d.now();
    const next = (await this.#d.tasks.list()).find((task) => task.enabled && task.nextRun > now);
    return Math.min(longestRestMs, (next?.nextRun ?? Infinity) - now);
  }

  async runNow(task: Task): Promise<TaskRun | null> {
    const { tasks, now } = this.#d;
    const { id, enabled, scheduleType } = task;
    const firedAt = now();
    const nextRun = scheduleType === 'recurring' ? Math.max(task.nextRun, this.#next(task, firedAt) ?? 0) : null;
    await tasks.change(id, { enabled: true, nextRun: firedAt });
    const found = await tasks.find(id);
    const due = found.found === 'one' ? found.task : task;
    const run = await this.#claim(due, { firedAt, nextRun, status: 'running' });
    if (run === null) return null;
    if (!enabled) await tasks.change(id, { enabled: false });
    this.#begin({ task, run, missed: 0 });
    return run;
  }

  async settled(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.settled();
  }

  async #fire(task: Task): Promise<Fired | null> {
    const firedAt = this.#d.now();
    if (task.expiresAt !== null && task.expiresAt <= firedAt) return await this.#expire(task);
    const missed = firedAt - task.nextRun > lateMs ? this.#missed(task, firedAt) : 0;
    const waits = { task, run: null, missed };
    if (missed > 0 && task.missed === 'ask') return await this.#ask(waits);
    const status = missed > 0 && task.missed === 'skip' ? 'skipped' : 'running';
    const nextRun = task.scheduleType === 'once' ? null : this.#next(task, firedAt);
    const run = await this.#claim(task, { firedAt, nextRun, status });
    if (run === null) return null;
    const fired = { task, run, missed };
    if (status === 'running') this.#begin(fired);
    return fired;
  }

  /** Claims a task unless too many of its kind are active: the next one begins when one of them ends. */
  async #claim(task: Task, claim: Omit<TaskClaim, 'atOnce'>): Promise<TaskRun | null> {
    const { tasks } = this.#d;
    if (task.type !== 'reminder') return await tasks.claim(task, { ...claim, atOnce: runsAtOnce });
    if (this.#reminding >= toldAtOnce) return null;
    // Counted before the claim: another look may run meanwhile.
    this.#reminding++;
    const run = await tasks.claim(task, claim).catch((error: unknown) => {
      this.#reminding--;
      throw error;
    });
    if (run === null || claim.status !== 'running') this.#reminding--;
    return run;
  }

  #next(task: Task, afterMs: number): number | null {
    return task.scheduleType === 'once' ? null : this.#d.nextAfter(task, afterMs);
  }

  #missed(task: Task, nowMs: number): number {
    let count = 0;
    for (let at: number | null = task.nextRun; at !== null && at <= nowMs && count < mostCounted; count++)
      at = this.#next(task, at);
    return count;
  }

  /** Says once of each missed run that it waits. */
  async #ask(waits: Fired): Promise<Fired> {
    const { task, missed } = waits;
    const key = `${task.id} ${task.nextRun}`;
    if (this.#d.asks && !this.#asked.has(key)) {
      this.#asked.add(key);
      await this.#tell(
        {
          title: 'A task asks',
          text:
            `${task.description}: ${missedText(missed, task.nextRun, task.tz)} ` +
            `\`agent tasks run ${task.id}\` runs it now, \`agent tasks resume ${task.id}\` waits for the next time.`,
        },
        waits,
      );
    }
    return waits;
  }

  async #expire(task: Task): Promise<null> {
    await this.#d.tasks.change(task.id, { enabled: false });
    await this.#tell(
      {
        title: 'A task has ended',
        text:
          `${task.description} was created by a model and has expired. ` +
          `\`agent tasks resume ${task.id}\` makes it permanent.`,
      },
      { task, run: null, missed: 0 },
    );
    return null;
  }

  #begin(fired: Fired & { readonly run: TaskRun }): void {
    const work = this.#whole(fired).then(() => {
      this.#running.delete(work);
    });
    this.#running.add(work);
  }

  /** Notifies the user, at most `toldAtOnce` at the same time. Returns whether they saw it; null if the program ended
   * first. */
  async #tell(said: DesktopNotification, fired: Fired): Promise<boolean | null> {
    if (this.#telling < toldAtOnce) this.#telling++;
    else await new Promise<void>((resolve) => this.#untold.push(resolve));
    try {
      const { signal } = this.#stop;
      return signal.aborted ? null : await this.#d.tell(said, fired, signal);
    } finally {
      const next = this.#untold.shift();
      if (next) next();
      else this.#telling--;
    }
  }

  /** A store that fails in the middle is for the log:
   * the run counts as interrupted once this process has ended. */
  async #whole(fired: Fired & { readonly run: TaskRun }): Promise<void> {
    try {
      await this.#complete(fired).finally(() => {
        if (fired.task.type === 'reminder') this.#reminding--;
      });
      if (this.#looks && !this.#stop.signal.aborted) await this.check();
    } catch (error) {
      this.#d.log({ at: 'tasks', message: 'a run could not be recorded', run: fired.run.id, error: String(error) });
    }
  }

  async #complete({ task, run, missed }: Fired & { readonly run: TaskRun }): Promise<void> {
    const { tasks, now } = this.#d;
    const outcome = task.type === 'reminder' ? null : await this.#request(task, run, missed);
    const said = outcome === null ? reminder(task, missed) : report(task, run, outcome);
    const end: TaskOutcome = outcome ?? { status: 'done', summary: said.text, costUsd: 0 };
    // A reminder is said before it counts as done: one too many is better than none.
    const read = outcome === null ? await this.#tell(said, { task, run, missed }) : false;
    // The next process says what this one did not come to.
    if (read === null) return;
    await tasks.finish(run.id, { ...end, finishedAt: now() });
    const paused = await this.#countFailure(task, end.status);
    const told =
      outcome === null ? read : await this.#tellEnd(paused ?? said, { task, run: { ...run, ...end }, missed });
    if (told) await tasks.markSeen([run.id]);
  }

  /** Reports the end of a run. If the user ends the program, the next start reports it. */
  async #tellEnd(said: DesktopNotification, fired: Fired): Promise<boolean> {
    return (await this.#tell(said, fired)) === true;
  }

  async #request(task: Task, run: TaskRun, missed: number): Promise<TaskOutcome> {
    const { tasks, limits, now, work } = this.#d;
    const day = limits.maxCostUsdPerDay;
    const spent = (await tasks.spentSince(startOfDay(now()))) + this.#reservedUsd;
    if (spent >= day && day < Infinity) {
      const summary = `Not run: the tasks of today have cost $${spent.toFixed(2)} of $${day.toFixed(2)}.`;
      return { status: 'limit', summary, costUsd: 0 };
    }
    const maxCostUsd = Math.min(task.maxCostUsd ?? limits.maxCostUsd, day - spent);
    const { signal } = this.#stop;
    const note: TaskRunRequest['note'] = (known) => tasks.finish(run.id, known);
    this.#reservedUsd += maxCostUsd;
    try {
      return await work({ task, run, missed, maxCostUsd, signal, note });
    } finally {
      this.#reservedUsd -= maxCostUsd;
    }
  }

  /** Counts failures in a row.
   * Returns what is said of the task that they pause. */
  async #countFailure(task: Task, status: RunStatus): Promise<DesktopNotification | null> {
    const { tasks } = this.#d;
    if (status === 'done' && task.failures > 0) await tasks.change(task.id, { failures: 0 });
    if (status !== 'failed') return null;
    const failures = task.failures + 1;
    const pauses = failures >= failuresToPause;
    await tasks.change(task.id, pauses ? { failures, enabled: false } : { failures });
    if (!pauses) return null;
    const text =
      `${task.description} has failed ${failures} times in a row. ` +
      `\`agent tasks runs ${task.id}\` shows why, \`agent tasks resume ${task.id}\` resumes it.`;
    return { title: 'A task is paused', text };
  }

  /** Says of runs whose process was ended in the middle that they were.
   * A reminder among them is due again. */
  async #reportInterrupted(): Promise<void> {
    const { tasks, now } = this.#d;
    for (const run of await tasks.interruptOld(now())) {
      const found = await tasks.find(run.taskId);
      if (found.found !== 'one' || found.task.type === 'reminder') continue;
      const { task } = found;
      const text = `${task.description}: the program exited while it was running. It was not repeated.`;
      if (await this.#tell({ title: 'A task was interrupted', text }, { task, run, missed: 0 }))
        await tasks.markSeen([run.id]);
    }
  }
}

function startOfDay(nowMs: number): number {
  return new Date(nowMs).setHours(0, 0, 0, 0);
}

/** `3 runs were missed since 27 Jan, 09:00.` */
export function missedText(missed: number, sinceMs: number, timeZone: string): string {
  const since = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'short', timeZone }).format(sinceMs);
  return missed === 1 ? `It was due at ${since}.` : `${missed} runs were missed since ${since}.`;
}

function reminder({ execution, description, nextRun, tz }: Task, missed: number): DesktopNotification {
  const message = typeof execution?.message === 'string' ? execution.message : description;
  return { title: 'Reminder', text: missed === 0 ? message : `${message} (${missedText(missed, nextRun, tz)})` };
}

const titles: Readonly<Record<TaskOutcome['status'], string>> = {
  done: 'A task is done',
  failed: 'A task failed',
  needs_approval: 'A task needs your approval',
  limit: 'A task has reached its limit',
  interrupted: 'A task was interrupted',
};

function report(task: Task, run: TaskRun, { status, summary }: TaskOutcome): DesktopNotification {
  const next = status === 'needs_approval' ? ` \`agent tasks approve ${run.id}\` shows the call.` : '';
  return { title: titles[status], text: `${task.description}: ${summary}${next}` };
}
