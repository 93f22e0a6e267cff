import type { CompactionData } from '../core/event.js';
import type { Price } from '../core/provider.js';
import { money, requestInputUsd } from './budget.js';
import { compactionRules } from './compaction-rules.js';
import type { TurnDeps } from './dependencies.js';

/** The newest messages stay as they are up to this share of the window. */
const newestShare = 0.1;
/** More than this share never stays, whatever the settings say: a compaction has to make room. */
const mostKeptShare = 0.5;

type Ruled = Pick<TurnDeps, 'limits'>;

/** Returns the tokens of the newest messages that a compaction leaves as they are. */
export function keptTokens(d: Ruled, trigger: CompactionData['trigger'], windowTokens: number): number {
  const { keepTokens } = compactionRules(d);
  if (trigger === 'overflow') return 0;
  if (keepTokens !== null) return Math.min(keepTokens, windowTokens * mostKeptShare);
  return trigger === 'auto' ? windowTokens * newestShare : 0;
}

/** The size of the next request before and after a compaction. */
export interface TokenChange {
  readonly tokensBefore: number;
  readonly tokensAfter: number;
}

type Costs = Pick<CompactionData, 'usd_before' | 'usd_after'>;

/** Returns what the input of a cached request costs before and after; nothing where no price is known, or all is free. */
export function requestCosts(price: Price | null, { tokensBefore, tokensAfter }: TokenChange): Costs {
  if (price === null || price.input === 0) return {};
  return {
    usd_before: requestInputUsd(price, tokensBefore, 'cached'),
    usd_after: requestInputUsd(price, tokensAfter, 'cached'),
  };
}

/** Says what a compaction changes, as a part of a sentence. `spentUsd`: the cost of the summary. */
export function describeChange(change: TokenChange, price: Price | null, spentUsd = 0): string {
  const { tokensBefore, tokensAfter } = change;
  const { usd_before: before, usd_after: after } = requestCosts(price, change);
  const tokens = `about ${tokensAfter} tokens instead of ${tokensBefore}`;
  if (price === null || before === undefined || after === undefined)
    return `${tokens}. The next request is not cached.`;
  const next = money(requestInputUsd(price, tokensAfter, 'new'));
  const summary = spentUsd > 0 ? ` The summary cost ${money(spentUsd)}.` : '';
  return (
    `${tokens}, and the input of a request about ${money(after)} instead of ${money(before)}. ` +
    `The next request is not cached and costs ${next}.${summary}`
  );
}
