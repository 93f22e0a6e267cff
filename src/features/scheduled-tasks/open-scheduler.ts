import { randomUUID } from 'node:crypto';
import type { ApprovalMode } from '../../kernel/core/policy.js';
import type { Tasks } from './tasks.js';
import { createProcessRunner } from '../../kernel/tools/process/runner.js';
import { announce, type Announcement } from './announce.js';
import { createFiring, type Fired, type Firing, type RunTask } from './scheduler.js';
import { runTimes } from './schedule-parser.js';
import { ownKeys, secretVariables } from '../../kernel/secrets/known-secrets.js';
import type { Settings } from '../../kernel/console/run-settings.js';
import { PartKey } from '../../kernel/console/parts.js';

/** Is told what becomes of tasks. Returns whether the user has read it. */
export type TaskEventListener = (said: Announcement, fired: Fired) => boolean;

/** The tasks of the store, and what fires them. */
export interface FiredTasks {
  readonly tasks: Tasks;
  readonly firing: Firing;
}

/** What fires the tasks of a REPL; opened with the first use. */
export const firedTasks = new PartKey<() => Promise<FiredTasks>>('fired tasks');

type Source = Pick<Settings, 'config' | 'env' | 'home' | 'log'>;

/** Who is told. `heard` shows what happens; it is told on the desktop in any case. `asks`: they can answer. */
interface FiringHost {
  /** Runs a task in a session of its own. */
  readonly run: RunTask;
  readonly heard: TaskEventListener;
  readonly asks: boolean;
  /** The approval mode of their conversation: no task does more than that. */
  readonly approval?: () => ApprovalMode;
}

/** Opens what fires the tasks of a store. Runs have the settings of their own directory, with the `options` that hold
 * for all of them. */
export function openFiring(settings: Source, tasks: Tasks, { heard, asks, run, approval }: FiringHost): Firing {
  const { config, log } = settings;
  const toDesktop = desktop(settings);
  return createFiring({
    tasks,
    now: Date.now,
    nextAfter: ({ schedule }, afterMs) => runTimes(schedule, afterMs, 1)[0] ?? null,
    work: (request) => run(request, approval?.()),
    tell: async (said, fired, signal) => {
      const isRead = heard(said, fired);
      const problem = await toDesktop(said, signal);
      if (problem !== null) log({ at: 'tasks', message: 'nobody was told', problem });
      return isRead;
    },
    asks,
    limits: config.tasks,
    log,
  });
}

/** Returns what tells the user by `tasks.notify_command`, else by the desktop: why it could not, or null. */
export function desktop({
  config,
  env,
  home,
}: Pick<Source, 'config' | 'env' | 'home'>): (said: Announcement, signal?: AbortSignal) => Promise<string | null> {
  const secret = new Set(secretVariables(env, ownKeys(config)));
  const processes = createProcessRunner({ marker: { name: '_AGENT_RUN', value: randomUUID() } });
  const options = {
    command: config.tasks.notifyCommand,
    env: Object.fromEntries(
      Object.entries(env).flatMap(([name, value]) => (value === undefined || secret.has(name) ? [] : [[name, value]])),
    ),
    platform: process.platform,
    cwd: home,
    processes,
  };
  return (said, signal) => announce(options, said, signal);
}
