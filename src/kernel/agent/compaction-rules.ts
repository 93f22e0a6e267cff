import { isCompaction } from '../core/event.js';
import { contextTokens } from './budget.js';
import type { CompactionRules, TurnDeps } from './dependencies.js';

/** The window of a model whose window is not known, where the settings say nothing. */
const usualWindow = 200_000;
const defaultRules: CompactionRules = { atShare: 0.85, keepTokens: null, assumedWindow: usualWindow };

export function compactionRules({ limits }: Pick<TurnDeps, 'limits'>): CompactionRules {
  return limits.compaction ?? defaultRules;
}

type Sized = Pick<TurnDeps, 'model' | 'models' | 'limits'>;

/** Returns the tokens of the context window of the model in use; null where that is not known. */
export function knownWindow({ model, models }: Pick<TurnDeps, 'model' | 'models'>): number | null {
  return models.contextWindow?.(model().ref) ?? null;
}

/** Returns the window that is assumed for the model in use; null for none. The scripts of the embedded provider have no
 * window. */
function assumedWindow(d: Sized): number | null {
  return d.model().ref.api === 'offline' ? null : compactionRules(d).assumedWindow;
}

/** Returns the tokens of the context window by which sizes are judged. `named`: the server has just given this number. */
export function windowOf(d: Sized, named?: number): number {
  return named ?? knownWindow(d) ?? compactionRules(d).assumedWindow ?? usualWindow;
}

/** True where the next request would come near the end of the model's window and the model has answered since the last
 * compaction. */
export function windowIsFull(d: TurnDeps): boolean {
  const { atShare } = compactionRules(d);
  const window = knownWindow(d) ?? assumedWindow(d);
  const events = d.record.recent();
  if (atShare === null || window === null || contextTokens(events) <= window * atShare) return false;
  const last = events.findLastIndex(isCompaction);
  return last < 0 || events.slice(last).some((event) => event.kind === 'assistant' || event.kind === 'tool_call');
}

/** Says once that the next request is large and the window of its model is not known. */
export function warnOfSize(d: TurnDeps): void {
  const { provider, model, api } = d.model().ref;
  const name = `${provider}/${model}`;
  if (knownWindow(d) !== null || api === 'offline' || d.unknownWindows.has(name)) return;
  const tokens = contextTokens(d.record.recent());
  if (tokens <= usualWindow) return;
  d.unknownWindows.add(name);
  const message =
    `The next request has about ${tokens} tokens, and the context window of ${name} is not known: ` +
    `the provider may refuse or cut it. /compact makes it shorter; models.${name}.context_window sets the window.`;
  d.emit({ type: 'notice', level: 'warn', code: 'window_not_known', message });
}
