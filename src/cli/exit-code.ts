import type { TurnEnd } from '../core/agent-event.js';
import { exit } from './cli-error.js';

/** The exit code of a headless turn. Several reasons: signal first, then 4, 5 or 1, then 3, then 6. Source: contracts 8, "`result`". */
export function turnExitCode(end: TurnEnd, signal: 'SIGINT' | 'SIGTERM' | null): number {
  if (signal) return signal === 'SIGINT' ? exit.interrupted : exit.terminated;
  if (end.fault?.code === 'auth') return exit.credentials;
  if (end.fault?.code === 'max_cost') return exit.cost;
  if (end.status === 'failed') return exit.failed;
  if (end.status === 'interrupted') return exit.interrupted;
  if (end.status === 'limit_reached') return exit.limit;
  return end.denied > 0 ? exit.denied : exit.done;
}
