import type { Session } from '../agent/session.js';
import type { TurnEnd } from '../core/session-port.js';
import { PartKey } from './parts.js';

/** The sub-agents in the background of a run without a user. */
export interface BackgroundAgents {
  /** Waits until all of a session have ended, with a turn for their ends, and returns the end of the last turn; `end`
   * where none was started. A turn that does not end well ends the wait, and the agents are stopped with the session. */
  settle(session: Session, end: TurnEnd): Promise<TurnEnd>;
}

export const backgroundAgents = new PartKey<BackgroundAgents>('background agents');
