import type { FiredTasks } from './open-scheduler.js';
import { waitsForLimit } from '../../kernel/agent/limit-wait.js';
import { loadOnce } from '../../kernel/core/runtime.js';
import type { ReplHost, ReplNotices, ReplPart } from '../../kernel/console/feature.js';
import { summaryBeside, type TaskRun, type Tasks, unseenRuns } from './tasks.js';
import { firstLine } from '../../kernel/core/text.js';
import type { DesktopNotification } from '../../kernel/console/slash-command.js';
import type { Settings } from '../../kernel/console/run-settings.js';
import { taskTableSet } from './task-tables.js';
import { firedTasks } from './task-parts.js';

/** Loads the code of tasks, which a REPL without any does not need. */
export const loadTasks = () => import('./scheduled-tasks-code.js');

/** Opens the tasks of a REPL: those that come due are fired between the turns. Commands of the REPL find what fires
 * them. Where there never was a task, nothing is loaded for them. */
export function openReplTasks(host: ReplHost): ReplPart {
  const tasks = new ReplTasks(host);
  host.parts.add(firedTasks, tasks.open);
  return tasks;
}

interface Host extends Pick<ReplHost, 'current' | 'policy' | 'runUnattended' | 'schedule' | 'tables'> {
  readonly settings: Pick<Settings, 'config' | 'env' | 'home' | 'log'>;
}

/** The delay of the first look: the screen appears first. */
const firstLookMs = 1000;
const idleMs = 60_000;
const maxTold = 5;

/** Tasks in a REPL. */
export class ReplTasks implements ReplPart {
  readonly #host: Host;
  readonly #opened = loadOnce(() => this.#load());
  #handle: ReplNotices | null = null;
  #cancel: (() => void) | null = null;
  #unsubscribe: (() => void) | null = null;
  #looking: Promise<void> = Promise.resolve();
  #hasTold = false;
  #closed = false;

  constructor(host: Host) {
    this.#host = host;
  }

  readonly open = (): Promise<FiredTasks> => this.#opened.get();

  /** Begins to look, once the screen is shown. */
  start(handle: ReplNotices): void {
    this.#handle = handle;
    this.#arm(firstLookMs);
  }

  /** Ends the runs that continue. */
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
      : this.#host.schedule(() => {
          this.#looking = this.#looking.then(() => this.#look());
        }, delayMs);
  }

  async #look(): Promise<void> {
    if (this.#closed) return;
    const session = this.#host.current();
    this.#unsubscribe?.();
    // A turn may have made a task that comes due before the next look.
    this.#unsubscribe = session.subscribe((event) => {
      if (event.type === 'turn_ended') this.#arm(0);
    });
    try {
      const tasks = await this.#host.tables(taskTableSet);
      if (!this.#hasTold) await this.#tellUnseen(tasks);
      const isBusy = session.busy() && !waitsForLimit(session.recent());
      if (isBusy || (await tasks.list()).length === 0) {
        this.#arm(idleMs);
        return;
      }
      const { firing } = await this.open();
      await firing.check();
      this.#arm(await firing.restMs());
    } catch (error) {
      this.#host.settings.log({ at: 'tasks', message: 'tasks could not be looked up', error: String(error) });
      this.#arm(idleMs);
    }
  }

  async #load(): Promise<FiredTasks> {
    const { settings, runUnattended, policy } = this.#host;
    const [tasks, { openFiring }] = await Promise.all([this.#host.tables(taskTableSet), loadTasks()]);
    const heard = (said: DesktopNotification): boolean => {
      this.#handle?.remind(said);
      return true;
    };
    const firing = openFiring(settings, tasks, {
      run: runUnattended,
      heard,
      asks: true,
      // A task cannot ask, so `mutating` allows it no more than plan mode does.
      approval: () => (policy.planning() ? 'mutating' : policy.mode()),
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
