import type { TurnEnd } from '../core/session.js';
import { exit } from '../commands/cli-error.js';

/** The signals that end the program in order, with the exit codes they give: 128 and the signal's number. */
export const endingSignals = { SIGINT: exit.interrupted, SIGTERM: exit.terminated, SIGHUP: 129 } as const;
export type EndingSignal = keyof typeof endingSignals;

/** Calls back at each of these signals, which then do not end the process by themselves. */
export function onEndingSignal(listener: (signal: EndingSignal) => void): void {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.on(signal, () => {
      listener(signal);
    });
}

/** The exit code of a headless turn. Several reasons: signal first, then 4, 5 or 1, then 3, then 6. Source: contracts
 * 8, "`result`". */
export function turnExitCode(end: TurnEnd, signal: EndingSignal | null): number {
  if (signal) return endingSignals[signal];
  if (end.fault?.code === 'auth') return exit.credentials;
  if (end.fault?.code === 'max_cost') return exit.cost;
  if (end.status === 'failed') return exit.failed;
  if (end.status === 'interrupted') return exit.interrupted;
  if (end.status === 'limit_reached') return exit.limit;
  return end.denied > 0 ? exit.denied : exit.done;
}
