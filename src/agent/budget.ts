import { knownEvent, type Event } from '../core/event.js';
import type { Fault } from '../core/provider.js';
import { utf8Bytes } from '../core/text.js';

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
  const { spent, inputTokens } = measure(events);
  const projected = (inputTokens * budget.price.input + budget.maxOutputTokens * budget.price.output) / 1e6;
  if (spent + projected <= budget.maxCostUsd) return null;
  const money = (usd: number): string => `$${usd.toFixed(4)}`;
  return {
    code: 'max_cost',
    message: `Stopped at the spend limit of ${money(budget.maxCostUsd)}: ${money(spent)} is spent and the next request may cost ${money(projected)}.`,
    hint: 'Raise it with --max-cost, or lower max_output_tokens.',
  };
}

function measure(events: readonly Event[]): { readonly spent: number; readonly inputTokens: number } {
  let spent = 0;
  let tokens = 0;
  let bytes = 0;
  for (const raw of events) {
    const event = knownEvent(raw);
    if (event?.kind === 'usage') {
      const { data } = event;
      spent += data.cost_usd ?? 0;
      tokens = data.input_tokens + data.cache_read_tokens + data.cache_write_tokens + data.output_tokens;
      bytes = 0;
    } else if (raw.kind !== 'tool_started') bytes += utf8Bytes(raw.content ?? '') + (raw.data === null ? 0 : utf8Bytes(JSON.stringify(raw.data)));
  }
  return { spent, inputTokens: tokens + Math.ceil(bytes / 4) };
}
