import type { Event } from '../../kernel/core/event.js';
import type { ReplNotices, RunPart } from '../../kernel/console/feature.js';
import { PartKey } from '../../kernel/console/parts.js';
import type { ReadGoal } from './goal-state.js';

/** The limits of the check of a goal, besides those of its tool. */
export interface GoalLimits {
  readonly timeoutS: number;
}

/** The drivers of the goals of a REPL's sessions. */
export interface GoalDrivers {
  readonly part: RunPart;
  readonly limits: GoalLimits;
  readonly read: ReadGoal;
  /** Returns true where a goal waits for its next turn or its check. */
  readonly isActive: (events: readonly Event[]) => boolean;
  /** Begins to work: the REPL shows the session with this id. */
  begin(sessionId: string, notices: ReplNotices): void;
  /** Takes the next step of the session with this id, once nothing else runs in it. */
  wake(sessionId: string): void;
}

export const goalDrivers = new PartKey<GoalDrivers>('goal drivers');
