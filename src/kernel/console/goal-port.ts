import type { Session } from '../agent/session.js';
import type { Event } from '../core/event.js';
import type { TurnEnd } from '../core/session-port.js';
import { PartKey } from './parts.js';

/** A goal as the user sets it. */
export interface GoalRequest {
  readonly condition: string;
  /** The command whose exit code 0 meets it; null: the model has to show that it is met. */
  readonly check: string | null;
  /** Null: the default. */
  readonly maxTurns: number | null;
  /** Most USD from now on; null: no limit of its own. */
  readonly maxCostUsd: number | null;
}

/** The goal in the `result` of a headless run. Source: everyday features, "Formats". */
export interface GoalResult {
  readonly condition: string;
  readonly check: string | null;
  readonly met: boolean;
  readonly turns: number;
  readonly last_exit_code: number | null;
}

/** All turns of a goal as one. */
export interface GoalEnd extends TurnEnd {
  /** Absent: the session has no goal. */
  readonly goal?: GoalResult;
}

/** The work of a headless run. */
export interface GoalOrder {
  /** Null: the goal that the session already has, if any. */
  readonly request: GoalRequest | null;
  /** The first message; '': the condition. */
  readonly prompt: string;
  /** Sends the first message. */
  readonly submit: (prompt: string) => Promise<TurnEnd>;
}

/** Works towards goals without a user. */
export interface Goals {
  pursue(session: Session, order: GoalOrder): Promise<GoalEnd>;
  /** Returns true while turns of the session of these events work towards a goal. */
  isActive(events: readonly Event[]): boolean;
}

export const goals = new PartKey<Goals>('goals');
