import { isCompaction } from '../core/event.js';
import { contextTokens } from './budget.js';
import type { CompactionRules, TurnDeps } from './dependencies.js';

const defaultRules: CompactionRules = { atShare: 0.85, keepTokens: null };

export function compactionRules({ limits }: Pick<TurnDeps, 'limits'>): CompactionRules {
  return limits.compaction ?? defaultRules;
}

/** True where the next request would come near the end of the model's window and the model has answered since the last
 * compaction. */
export function windowIsFull(d: TurnDeps): boolean {
  const { atShare } = compactionRules(d);
  const window = d.models.contextWindow?.(d.model().ref) ?? null;
  const events = d.record.events();
  if (atShare === null || window === null || contextTokens(events) <= window * atShare) return false;
  const last = events.findLastIndex(isCompaction);
  return last < 0 || events.slice(last).some((event) => event.kind === 'assistant' || event.kind === 'tool_call');
}
