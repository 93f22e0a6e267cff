import type { Budget } from '../../agent/budget.js';
import type { ModelRef } from '../../core/projection.js';
import type { Fault } from '../../core/provider.js';
import { builtInPresets, mergePresets } from '../../providers/presets.js';
import { findModel } from '../../providers/models.js';
import { CliError, exit } from '../../commands/cli-error.js';
import type { Setup } from '../setup.js';

/** Output tokens of an answer where neither the request nor the model's entry sets a limit. */
const assumedOutputTokens = 8192;

/** What the sessions of one run may cost: `max_cost_usd`, until `/budget` sets another limit. */
export interface SpendLimit {
  /** Null: there is none. */
  limitUsd(): number | null;
  set(limitUsd: number | null): void;
  /** What requests to a model may cost; a fault where its price is not known, null without a limit. */
  budget(ref: ModelRef): Budget | Fault | null;
}

export function createSpendLimit(setup: Setup): SpendLimit {
  let maxCostUsd = setup.config.limits.maxCostUsd;
  return {
    limitUsd: () => maxCostUsd,
    set: (limitUsd) => {
      maxCostUsd = limitUsd;
    },
    budget: (ref) => {
      if (maxCostUsd === null) return null;
      if (ref.api === 'offline')
        return { maxCostUsd, price: { input: 0, output: 0 }, maxOutputTokens: assumedOutputTokens, isKept: true };
      const price = findModel(ref.provider, ref.model, setup.config.provider.models)?.price ?? null;
      return price === null ? unknownPrice(ref) : { maxCostUsd, price, ...longestAnswer(setup, ref) };
    },
  };
}

/** Throws a `CliError` (2) where there is a limit and the model to start with has no price; one that is switched to
 * later is refused by a fault instead. */
export function requirePrice(spend: SpendLimit, first: ModelRef): void {
  const budget = spend.budget(first);
  if (budget !== null && 'code' in budget) throw new CliError(exit.usage, budget.message, budget.hint ?? '');
}

/** How long an answer gets whose request sets no limit: what the wire sends by itself, else what the model can. */
function longestAnswer(setup: Setup, { provider, api, model }: ModelRef): Pick<Budget, 'maxOutputTokens' | 'isKept'> {
  const sent = mergePresets(builtInPresets, setup.config.provider.custom)[provider]?.quirks?.default_max_output_tokens;
  if (sent !== undefined) return { maxOutputTokens: sent, isKept: true };
  const known =
    api === 'anthropic-messages'
      ? null
      : (findModel(provider, model, setup.config.provider.models)?.maxOutputTokens ?? null);
  return { maxOutputTokens: known ?? assumedOutputTokens, isKept: known !== null };
}

function unknownPrice({ provider, model }: ModelRef): Fault {
  const name = `${provider}/${model}`;
  return {
    code: 'max_cost',
    message: `--max-cost: the price of \`${name}\` is not known`,
    hint: `Add it to config/models.json, or to "models" in your configuration: "${name}": {"input_usd": …, "output_usd": …} (USD per million tokens).`,
  };
}
