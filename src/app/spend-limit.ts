import type { Budget } from '../kernel/agent/budget.js';
import { CliError, exit } from '../kernel/console/command.js';
import type { ModelRef } from '../kernel/core/projection.js';
import type { Fault } from '../kernel/core/provider.js';
import { builtInPresets, mergePresets } from '../kernel/providers/catalog.js';
import { findModel } from '../kernel/providers/models.js';
import { isWireName, knownWires } from '../kernel/providers/wires/known-wires.js';
import type { Settings } from '../kernel/console/run-settings.js';

/** Output tokens of an answer where neither the request nor the model's entry sets a limit. */
const assumedOutputTokens = 8192;

/** The cost limit that the sessions of one run share: `max_cost_usd`, until `/budget` sets another limit. */
export interface SpendLimit {
  /** Null where there is no limit. */
  limitUsd(): number | null;
  set(limitUsd: number | null): void;
  /** Returns what requests to a model may cost; a fault where its price is not known, null without a limit. `atMostUsd`:
   * a limit of the session itself. */
  budget(ref: ModelRef, atMostUsd?: number | null): Budget | Fault | null;
}

type SpendSource = Pick<Settings['config'], 'limits' | 'provider'>;

export function createSpendLimit({ limits, provider }: SpendSource): SpendLimit {
  let { maxCostUsd: shared } = limits;
  return {
    limitUsd: () => shared,
    set: (limitUsd) => {
      shared = limitUsd;
    },
    budget: (ref, atMostUsd = null) => {
      const maxCostUsd = atMostUsd === null ? shared : Math.min(shared ?? atMostUsd, atMostUsd);
      if (maxCostUsd === null) return null;
      if (ref.api === 'offline')
        return { maxCostUsd, price: { input: 0, output: 0 }, maxOutputTokens: assumedOutputTokens, isEnforced: true };
      const price = findModel(ref.provider, ref.model, provider.models)?.price ?? null;
      return price === null ? unknownPrice(ref) : { maxCostUsd, price, ...longestAnswer(provider, ref) };
    },
  };
}

/** Throws a `CliError` (2) where there is a limit and the first model has no price. A later model is refused with a
 * fault instead. */
export function requirePrice(spend: SpendLimit, first: ModelRef): void {
  const budget = spend.budget(first);
  if (budget !== null && 'code' in budget) throw new CliError(exit.usage, budget.message, budget.hint ?? '');
}

/** Returns the longest answer to a request without a limit of its own: what the wire sends by itself, else what the
 * model can. */
function longestAnswer(
  { custom, models }: SpendSource['provider'],
  { provider, api, model }: ModelRef,
): Pick<Budget, 'maxOutputTokens' | 'isEnforced'> {
  const sent = mergePresets(builtInPresets, custom)[provider]?.quirks?.default_max_output_tokens;
  if (sent !== undefined) return { maxOutputTokens: sent, isEnforced: true };
  const byWire = isWireName(api) ? knownWires[api].outputTokens : null;
  const known = byWire === null ? (findModel(provider, model, models)?.maxOutputTokens ?? null) : null;
  return { maxOutputTokens: known ?? byWire ?? assumedOutputTokens, isEnforced: known !== null };
}

function unknownPrice({ provider, model }: ModelRef): Fault {
  const name = `${provider}/${model}`;
  return {
    code: 'max_cost',
    message: `--max-cost: the price of \`${name}\` is not known`,
    hint:
      'Add it to "models" in your configuration (`agent config path`), in the form of config/models.json: ' +
      `"${name}": {"input_usd": …, "output_usd": …} (USD per million tokens).`,
  };
}
