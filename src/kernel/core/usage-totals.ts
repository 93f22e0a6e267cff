import { type Event, spentBy } from './event.js';

/** Tokens and cost of several requests together; `cost_usd` is null as soon as one of them has no known price. */
export interface UsageSum {
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly cache_read_tokens: number;
  readonly cache_write_tokens: number;
  readonly cost_usd: number | null;
}

export const noUsage: UsageSum = {
  input_tokens: 0,
  output_tokens: 0,
  cache_read_tokens: 0,
  cache_write_tokens: 0,
  cost_usd: 0,
};

export function addUsage(sum: UsageSum, raw: Event): UsageSum {
  const data = spentBy(raw);
  if (data === null) return sum;
  return {
    input_tokens: sum.input_tokens + data.input_tokens,
    output_tokens: sum.output_tokens + data.output_tokens,
    cache_read_tokens: sum.cache_read_tokens + data.cache_read_tokens,
    cache_write_tokens: sum.cache_write_tokens + data.cache_write_tokens,
    cost_usd: sum.cost_usd === null || data.cost_usd === null ? null : sum.cost_usd + data.cost_usd,
  };
}

/** The usage of a session so far, its agents included. */
export interface UsageTotals {
  readonly requests: number;
  /** The number of requests whose price is not known. */
  readonly unpriced: number;
  readonly sum: UsageSum;
  /** As far as prices are known. */
  readonly spentUsd: number;
}

export const noTotals: UsageTotals = { requests: 0, unpriced: 0, sum: noUsage, spentUsd: 0 };

export function addToTotals(totals: UsageTotals, raw: Event): UsageTotals {
  const data = spentBy(raw);
  if (data === null) return totals;
  return {
    requests: totals.requests + 1,
    unpriced: totals.unpriced + (data.cost_usd === null ? 1 : 0),
    sum: addUsage(totals.sum, raw),
    spentUsd: totals.spentUsd + (data.cost_usd ?? 0),
  };
}
