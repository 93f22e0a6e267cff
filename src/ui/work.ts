import type { AgentEvent } from '../core/session.js';
import { notify, type Notify } from './notify.js';
import { patienceMs } from './panels/running-panel.js';
import type { Clock, OutputPort } from './ports.js';
import type { Timers } from './timers.js';
import type { View } from './view.js';

const longTurnMs = 15_000;

/** The work that goes on in a session: since when, and the sign to somebody who looks elsewhere once it has ended or
 * asks something. */
export interface Work {
  /** Null when idle. */
  sinceMs(): number | null;
  /** Something was sent. `busy` says afterwards whether anything came of it. */
  sent(send: () => void, busy: () => boolean): void;
  heed(event: AgentEvent): void;
  /** The turn was told to end: a command may take a moment for that. */
  stop(): void;
  stopping(): boolean;
  /** Another session is on the screen, which is idle. */
  reset(): void;
  /** While something runs, elapsed times move on once a second. Nothing is scheduled when idle. */
  wake(view: View, onWake: () => void): void;
}

interface Parts {
  readonly clock: Clock;
  readonly output: Pick<OutputPort, 'write'>;
  readonly how: Notify | undefined;
  readonly timers: Timers;
}

export function createWork({ clock, output, how, timers }: Parts): Work {
  let sinceMs: number | null = null;
  let stopping = false;
  const ended = (): void => {
    const long = sinceMs !== null && clock() - sinceMs >= longTurnMs;
    sinceMs = null;
    stopping = false;
    if (long) notify(output, how);
  };
  return {
    sinceMs: () => sinceMs,
    sent: (send, busy) => {
      sinceMs ??= clock();
      send();
      if (!busy()) sinceMs = null;
    },
    heed: (event) => {
      if (event.type === 'turn_started') sinceMs ??= clock();
      if (event.type === 'turn_ended') ended();
      if (event.type === 'approval_requested') notify(output, how);
    },
    stop: () => {
      stopping = sinceMs !== null;
    },
    stopping: () => stopping,
    reset: () => {
      sinceMs = null;
      stopping = false;
    },
    wake: (view, onWake) => {
      const nowMs = clock();
      const young = view.calls.some((call) => call.startedAtMs !== null && nowMs - call.startedAtMs < patienceMs);
      if (timers.has('wake') || (!young && sinceMs === null && view.retry === null)) return;
      timers.set('wake', young ? patienceMs : 1_000, onWake);
    },
  };
}
