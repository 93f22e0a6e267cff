import type { TurnEnd } from '../core/session-port.js';
import { exit } from './command.js';

/** The endings of a turn without a user: the exit code of the program, and the status of a task's run. If several
 * endings share a status, the first one gives the exit code of such a run. */
export const turnEndings = {
  credentials: { exitCode: exit.credentials, status: 'failed' },
  cost: { exitCode: exit.cost, status: 'limit' },
  interrupted: { exitCode: exit.interrupted, status: 'interrupted' },
  failed: { exitCode: exit.failed, status: 'failed' },
  limit: { exitCode: exit.limit, status: 'limit' },
  denied: { exitCode: exit.denied, status: 'needs_approval' },
  done: { exitCode: exit.done, status: 'done' },
} as const satisfies Readonly<Record<string, { readonly exitCode: number; readonly status: string }>>;

export type TurnEnding = keyof typeof turnEndings;

/** Returns the one ending that counts where several apply. `unsaved`: events that could not be saved, which is a
 * failure. Source: contracts 8, "`result`", and 10. */
export function endingOf(end: TurnEnd, unsaved = 0): TurnEnding {
  if (end.fault?.code === 'auth') return 'credentials';
  if (end.fault?.code === 'max_cost') return 'cost';
  if (end.status === 'interrupted') return 'interrupted';
  if (end.status === 'failed' || unsaved > 0) return 'failed';
  if (end.status === 'limit_reached') return 'limit';
  return end.denials.some(({ unasked }) => unasked) ? 'denied' : 'done';
}

/** Returns the exit code of `agent tasks run` and `approve` for the run of a task. */
export function runExitCode(status: string): number {
  if (status === 'failed' || status === 'running') return exit.failed;
  return Object.values(turnEndings).find((ending) => ending.status === status)?.exitCode ?? exit.done;
}
