import { overBudget, type Budget } from '../../agent/budget.js';
import type { ModelRef } from '../../core/conversation.js';
import type { Event } from '../../core/event.js';
import type { Fault } from '../../core/provider.js';
import { findModel } from '../../providers/models.js';
import { CliError, exit } from '../cli-error.js';
import type { Setup } from '../setup.js';

/** Output tokens assumed where neither the configuration nor the model's entry says how long an answer may get. */
const assumedOutputTokens = 8192;

export type SpendCheck = (events: readonly Event[], ref: ModelRef) => Fault | null;

/** Judges the next request against `max_cost_usd`; without a limit nothing is ever refused. Throws a `CliError` (2) where the model to start with
 *  has no price; one that is switched to later is refused by a fault instead. */
export function spendCheck(setup: Setup, first: ModelRef): SpendCheck {
  const { maxCostUsd } = setup.config.limits;
  if (maxCostUsd === null) return () => null;
  const budgetOf = (ref: ModelRef): Budget | null => {
    const facts = findModel(ref.provider, ref.model, setup.config.provider.models);
    const price = ref.api === 'offline' ? { input: 0, output: 0 } : (facts?.price ?? null);
    const maxOutputTokens = setup.config.request.maxOutputTokens ?? facts?.maxOutputTokens ?? assumedOutputTokens;
    return price === null ? null : { maxCostUsd, price, maxOutputTokens };
  };
  if (budgetOf(first) === null) throw new CliError(exit.usage, unknownPrice(first), priceHint(first));
  return (events, ref) => {
    const budget = budgetOf(ref);
    return budget === null ? { code: 'max_cost', message: unknownPrice(ref), hint: priceHint(ref) } : overBudget(events, budget);
  };
}

function unknownPrice(ref: ModelRef): string {
  return `--max-cost: the price of \`${ref.provider}/${ref.model}\` is not known`;
}

function priceHint(ref: ModelRef): string {
  return `Add it to config/models.json, or to "models" in your configuration: "${ref.provider}/${ref.model}": {"input_usd": …, "output_usd": …} (USD per million tokens).`;
}
