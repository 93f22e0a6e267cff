import type { FiredTasks } from '../../commands/command.js';
import { unseenRuns } from '../../commands/tasks/found-tasks.js';
import { loadOnce, type Schedule } from '../../core/runtime.js';
import type { SessionPort } from '../../core/session-port.js';
import { summaryBeside, type TaskRun, type Tasks } from '../../core/tasks.js';
import { firstLine } from '../../core/text.js';
import type { Sign } from '../../terminal/streams.js';
import type { ReplHandle } from '../../ui/repl-options.js';
import type { RootOptions } from '../options.js';
import type { Run } from '../session/assemble.js';
import type { Settings } from '../settings.js';

/** Tasks in a REPL: those that come due are fired between the turns. */
export interface ReplTasks {
  /** For `/tasks`. */
  readonly open: () => Promise<FiredTasks>;
  /** Begins to look, once the screen stands. Where there never was a task, nothing is loaded for them. */
  start(handle: ReplHandle): void;
  /** Ends the runs that go on. Call before the store is closed. */
  close(): Promise<void>;
}

interface Source extends Pick<Run, 'options' | 'tasks'> {
  readonly policy: Pick<Run['policy'], 'mode' | 'planning'>;
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
  #handle: ReplHandle | null = null;
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

  start(handle: ReplHandle): void {
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
      const tasks = await this.#run.tasks();
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
    const { settings, options } = this.#run;
    const [tasks, { openFiring }] = await Promise.all([this.#run.tasks(), import('./open-firing.js')]);
    const heard = (said: Sign): boolean => {
      this.#handle?.remind(said);
      return true;
    };
    const firing = openFiring(settings, ownOptions(options), tasks, {
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

/** A yes or a model for this conversation is none for tasks; what holds calls back is for both. A list of tools that
 * only adds some (`+web`) holds nothing back. */
function ownOptions(options: RootOptions): RootOptions {
  const { safe, sandbox, test, ephemeral, debug, outputFormat, tools } = options;
  const isNarrower = tools === false || (typeof tools === 'string' && !tools.startsWith('+'));
  return {
    ...(isNarrower ? { tools } : {}),
    outputFormat,
    set: [],
    ...(safe ? { safe } : {}),
    ...(sandbox === undefined ? {} : { sandbox }),
    ...(test ? { test } : {}),
    ...(ephemeral ? { ephemeral } : {}),
    ...(debug ? { debug } : {}),
  };
}
