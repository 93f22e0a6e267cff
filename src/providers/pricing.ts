import type { Usage } from '../core/event.js';

/** USD per million tokens. The cache's prices fall back to `input`. */
export interface Price extends Rates {
  /** The rates of a whole request whose prompt (cached or not) is longer than `aboveTokens`. */
  readonly long?: Rates & { readonly aboveTokens: number };
}

interface Rates {
  readonly input: number;
  readonly cacheRead?: number;
  readonly cacheWrite?: number;
  readonly output: number;
}

/** What a request costs in USD; null where the price is not known. */
export function costUsd(usage: Usage, price: Price | null): number | null {
  if (price === null) return null;
  const prompt = usage.input + usage.cacheRead + usage.cacheWrite;
  const rates = price.long !== undefined && prompt > price.long.aboveTokens ? price.long : price;
  const total =
    usage.input * rates.input +
    usage.cacheRead * (rates.cacheRead ?? rates.input) +
    usage.cacheWrite * (rates.cacheWrite ?? rates.input) +
    usage.output * rates.output;
  return total / 1_000_000;
}
