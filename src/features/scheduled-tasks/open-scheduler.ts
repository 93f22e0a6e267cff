import type { ApprovalMode } from '../../kernel/core/policy.js';
import type { Tasks } from './tasks.js';
import { desktop } from '../../kernel/console/announce.js';
import type { DesktopNotification } from '../../kernel/console/slash-command.js';
import { createFiring, type Fired, type Firing } from './scheduler.js';
import { taskRunner } from './run-task.js';
import type { RunUnattended } from '../../kernel/console/unattended.js';
import { runTimes } from './schedule-parser.js';
import type { Settings } from '../../kernel/console/run-settings.js';

/** Gets the notifications of tasks. Returns true if the user has read one. */
export type TaskEventListener = (said: DesktopNotification, fired: Fired) => boolean;

/** The tasks of the store, and what fires them. */
export interface FiredTasks {
  readonly tasks: Tasks;
  readonly firing: Firing;
}

type Source = Pick<Settings, 'config' | 'env' | 'home' | 'log'>;

/** The front end that fires tasks. `heard` shows notifications; the desktop gets them in any case. `asks`: a user is
 * there to answer. */
interface FiringHost {
  readonly run: RunUnattended;
  readonly heard: TaskEventListener;
  readonly asks: boolean;
  /** The approval mode of their conversation: no task does more than that. */
  readonly approval?: () => ApprovalMode;
}

/** Opens what fires the tasks of a store. Runs have the settings of their directory, with the `options` that apply to
 * all of them. */
export function openFiring(settings: Source, tasks: Tasks, { heard, asks, run, approval }: FiringHost): Firing {
  const { config, log } = settings;
  const toDesktop = desktop(settings);
  const runTask = taskRunner(run);
  return createFiring({
    tasks,
    now: Date.now,
    nextAfter: ({ schedule }, afterMs) => runTimes(schedule, afterMs, 1)[0] ?? null,
    work: (request) => runTask(request, approval?.()),
    tell: async (said, fired, signal) => {
      const isRead = heard(said, fired);
      const problem = await toDesktop(said, signal);
      if (problem !== null) log({ at: 'tasks', message: 'no one was notified', problem });
      return isRead;
    },
    asks,
    limits: config.tasks,
    log,
  });
}
