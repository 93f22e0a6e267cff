import type { FiredTasks } from './open-scheduler.js';
import { unseenRuns } from './found-tasks.js';
import { loadOnce, type Schedule } from '../../kernel/core/runtime.js';
import type { SessionPort } from '../../kernel/core/session-port.js';
import { summaryBeside, type TaskRun, type Tasks } from './tasks.js';
import { firstLine } from '../../kernel/core/text.js';
import type { DesktopNotification } from '../../kernel/console/slash-command.js';
import type { Approval, Settings } from '../../kernel/console/run-settings.js';
import { taskTableSet } from './task-tables.js';
import type { Tables } from '../../kernel/store/tables.js';
import type { RunTask } from './scheduler.js';

/** Where a REPL shows what becomes of tasks. */
interface ReplNotices {
  notice(level: 'info', message: string): void;
  remind(said: DesktopNotification): void;
}

/** Tasks in a REPL: those that come due are fired between the turns. */
export interface ReplTasks {
  /** For `/tasks`. */
  readonly open: () => Promise<FiredTasks>;
  /** Begins to look, once the screen stands. Where there never was a task, nothing is loaded for them. */
  start(handle: ReplNotices): void;
  /** Ends the runs that go on. Call before the store is closed. */
  close(): Promise<void>;
}

interface Source {
  readonly tables: Tables;
  readonly policy: Pick<Approval, 'mode' | 'planning'>;
  /** Runs a task; its options are those of the REPL that hold calls back. */
  readonly runTask: RunTask;
  readonly settings: Pick<Settings, 'config' | 'env' | 'home' | 'log'>;
}

/** The screen stands and is read before anything is looked up. */
const firstLookMs = 1000;
const idleMs = 60_000;
const maxTold = 5;

export function createReplTasks(run: Source, current: () => SessionPort, schedule: Schedule): ReplTasks {
  return new Live(run, current, schedule);
}

class Live implements ReplTasks {
  readonly #run: Source;
  readonly #current: () => SessionPort;
  readonly #schedule: Schedule;
  readonly #opened = loadOnce(() => this.#load());
  #handle: ReplNotices | null = null;
  #cancel: (() => void) | null = null;
  #unsubscribe: (() => void) | null = null;
  #looking: Promise<void> = Promise.resolve();
  #hasTold = false;
  #closed = false;

  constructor(run: Source, current: () => SessionPort, schedule: Schedule) {
    this.#run = run;
    this.#current = current;
    this.#schedule = schedule;
  }

  readonly open = (): Promise<FiredTasks> => this.#opened.get();

  start(handle: ReplNotices): void {
    this.#handle = handle;
    this.#arm(firstLookMs);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#cancel?.();
    this.#unsubscribe?.();
    await this.#looking;
    await (await this.#opened.started())?.firing.stop();
  }

  #arm(delayMs: number): void {
    this.#cancel?.();
    this.#cancel = this.#closed
      ? null
      : this.#schedule(() => {
          this.#looking = this.#looking.then(() => this.#look());
        }, delayMs);
  }

  async #look(): Promise<void> {
    if (this.#closed) return;
    const session = this.#current();
    this.#unsubscribe?.();
    // A turn may have made a task that comes due before the next look.
    this.#unsubscribe = session.subscribe((event) => {
      if (event.type === 'turn_ended') this.#arm(0);
    });
    try {
      const tasks = await this.#run.tables(taskTableSet);
      if (!this.#hasTold) await this.#tellUnseen(tasks);
      if (session.busy() || (await tasks.list()).length === 0) {
        this.#arm(idleMs);
        return;
      }
      const { firing } = await this.open();
      await firing.check();
      this.#arm(await firing.restMs());
    } catch (error) {
      this.#run.settings.log({ at: 'tasks', message: 'tasks could not be looked up', error: String(error) });
      this.#arm(idleMs);
    }
  }

  async #load(): Promise<FiredTasks> {
    const { settings, runTask } = this.#run;
    const [tasks, { openFiring }] = await Promise.all([this.#run.tables(taskTableSet), import('./open-scheduler.js')]);
    const heard = (said: DesktopNotification): boolean => {
      this.#handle?.remind(said);
      return true;
    };
    const firing = openFiring(settings, tasks, {
      run: runTask,
      heard,
      asks: true,
      // A task cannot ask, so `mutating` allows it no more than plan mode does.
      approval: () => (this.#run.policy.planning() ? 'mutating' : this.#run.policy.mode()),
    });
    return { tasks, firing };
  }

  /** Says what came of runs since the last start. */
  async #tellUnseen(tasks: Tasks): Promise<void> {
    this.#hasTold = true;
    const runs = await unseenRuns(tasks);
    if (runs.length === 0) return;
    const names = new Map((await tasks.list()).map(({ id, description }) => [id, description]));
    const lines = runs.slice(0, maxTold).map((run) => unseenLine(run, names.get(run.taskId) ?? run.taskId));
    const more = runs.length > maxTold ? [`… ${runs.length - maxTold} more: /tasks runs`] : [];
    this.#handle?.notice('info', ['Since the last start:', ...lines, ...more].join('\n'));
    await tasks.markSeen(runs.map(({ id }) => id));
  }
}

function unseenLine({ id, status, summary }: TaskRun, name: string): string {
  const next = status === 'needs_approval' ? ` /tasks approve ${id}` : '';
  const more = summaryBeside(name, firstLine(summary ?? '', 200));
  return `${status}: ${firstLine(name, 60)}${more === '' ? '' : `: ${more}`}${next}`;
}
