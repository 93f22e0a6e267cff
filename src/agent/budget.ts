import { knownEvent, type Event } from '../core/event.js';
import type { Fault } from '../core/provider.js';
import { contextTokens } from './context-size.js';

/** USD per million tokens. */
export interface Price { readonly input: number; readonly output: number }

export interface Budget {
  /** Most USD the session may cost. */
  readonly maxCostUsd: number;
  readonly price: Price;
  /** Most tokens an answer may have. */
  readonly maxOutputTokens: number;
}

/** A fault where the session's cost so far and the next request's projected cost together pass the limit, else null.
 *  Projected: the tokens known to go in (what the last request reported, and a quarter of the bytes added since) and a whole answer out. Source: contracts 8. */
export function overBudget(events: readonly Event[], budget: Budget): Fault | null {
  const spent = spentUsd(events);
  const projected = (contextTokens(events) * budget.price.input + budget.maxOutputTokens * budget.price.output) / 1e6;
  if (spent + projected <= budget.maxCostUsd) return null;
  const money = (usd: number): string => `$${usd.toFixed(4)}`;
  return {
    code: 'max_cost',
    message: `Stopped at the spend limit of ${money(budget.maxCostUsd)}: ${money(spent)} is spent and the next request may cost ${money(projected)}.`,
    hint: 'Raise it with --max-cost, or lower max_output_tokens.',
  };
}

function spentUsd(events: readonly Event[]): number {
  return events.reduce((spent, raw) => {
    const event = raw.kind === 'usage' ? knownEvent(raw) : null;
    return spent + (event?.kind === 'usage' ? (event.data.cost_usd ?? 0) : 0);
  }, 0);
}
