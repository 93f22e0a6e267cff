import type { Usage } from '../core/event.js';

/** USD per million tokens. `cache_read` and `cache_write` fall back to `input`. */
export interface Price {
  readonly input: number;
  readonly cache_read?: number;
  readonly cache_write?: number;
  readonly output: number;
  /** The prices of a whole request whose prompt (cached or not) is larger than `above_tokens`. */
  readonly long?: { readonly above_tokens: number; readonly input: number; readonly cache_read?: number; readonly cache_write?: number; readonly output: number };
}

/** What a request costs in USD; null where the price is not known. */
export function costUsd(usage: Usage, price: Price | null): number | null {
  if (price === null) return null;
  const prompt = usage.input + usage.cacheRead + usage.cacheWrite;
  const tier = price.long !== undefined && prompt > price.long.above_tokens ? price.long : price;
  const total = usage.input * tier.input + usage.cacheRead * (tier.cache_read ?? tier.input)
    + usage.cacheWrite * (tier.cache_write ?? tier.input) + usage.output * tier.output;
  return total / 1_000_000;
}
