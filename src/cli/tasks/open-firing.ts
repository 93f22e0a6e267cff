import { randomUUID } from 'node:crypto';
import type { Heard } from '../../commands/command.js';
import type { ApprovalMode } from '../../core/policy.js';
import type { Tasks } from '../../core/tasks.js';
import { createProcessRunner } from '../../tools/process/runner.js';
import { announce, type Announcement } from '../../toolsets/tasks/announce.js';
import { createFiring, type Firing } from '../../toolsets/tasks/firing.js';
import { runTimes } from '../../toolsets/tasks/when.js';
import type { RootOptions } from '../options.js';
import { ownKeys, secretVariables } from '../secrets.js';
import type { Settings } from '../settings.js';
import { runErrand } from './run-errand.js';

type Source = Pick<Settings, 'config' | 'env' | 'home' | 'log'>;

/** Who is told. `heard` shows what happens; it is told on the desktop in any case. `asks`: they can answer. */
interface Person {
  readonly heard: Heard;
  readonly asks: boolean;
  /** The approval mode of their conversation: no task does more than that. */
  readonly approval?: () => ApprovalMode;
}

/** Opens what fires the tasks of a store. Runs have the settings of their own directory, with the `options` that hold
 * for all of them. */
export function openFiring(
  settings: Source,
  options: RootOptions,
  tasks: Tasks,
  { heard, asks, approval }: Person,
): Firing {
  const { config, log } = settings;
  const toDesktop = desktop(settings);
  return createFiring({
    tasks,
    now: Date.now,
    nextAfter: ({ schedule }, afterMs) => runTimes(schedule, afterMs, 1)[0] ?? null,
    work: (errand) => runErrand(options, errand, approval?.()),
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

/** Returns what tells the person by `tasks.notify_command`, else by the desktop: why it could not, or null. */
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
