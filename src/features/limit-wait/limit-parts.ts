import type { ReplNotices, RunPart } from '../../kernel/console/feature.js';
import { PartKey } from '../../kernel/console/parts.js';

/** The rules of a run for usage limits. */
export interface LimitRules {
  /** `ask`: the user is asked in a REPL, and other runs do not wait. */
  readonly wait: 'ask' | 'always' | 'never';
  /** Milliseconds; null: as long as a limit takes. Without a user. */
  readonly longestMs: number;
}

/** Waits for usage limits in the sessions of a run. */
export interface LimitWaits {
  readonly part: RunPart;
  /** Begins to offer and continue waits: the REPL shows the session with this id. */
  begin(screen: ReplNotices): void;
  /** Has the next limit of this session be waited for without a question. */
  want(sessionId: string): void;
}

export const limitWaits = new PartKey<LimitWaits>('limit waits');
