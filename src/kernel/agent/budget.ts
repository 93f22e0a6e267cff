import { attachmentsOf, type Event, isCompaction, knownEvent, spentBy, type UsageData } from '../core/event.js';
import { pictureTokens } from '../core/files/attached-formats.js';
import { type ModelRef, project } from '../core/projection.js';
import type { Fault, Price, Rates } from '../core/provider.js';
import { utf8Bytes } from '../core/text.js';
import type { Recorder } from './recorder.js';

/** The spend limit of a session, with the price of the model in use. */
export interface Budget {
  /** Most USD the session may cost. */
  readonly maxCostUsd: number;
  readonly price: Price;
  /** Most tokens of an answer whose request sets no limit of its own. */
  readonly maxOutputTokens: number;
  /** True where the provider enforces that limit by itself; otherwise it is sent. */
  readonly isEnforced: boolean;
}

/** The limits of the next request. `maxOutputTokens` is the limit that it must send in place of its usual one, or null.
 * `isShort`: money sets that limit, and the answer could have been longer otherwise. */
export type Allowance =
  | { readonly allowed: true; readonly maxOutputTokens: number | null; readonly isShort: boolean }
  | { readonly allowed: false; readonly fault: Fault };

/** No answer is asked for that must be shorter than this. */
const leastAnswerTokens = 256;
/** The same for a summary of the conversation. */
export const leastSummaryTokens = 1024;
/** A warning is given when spending passes one of these shares of the limit. */
const warnedShares = [0.95, 0.8];

const unlimited: Allowance = { allowed: true, maxOutputTokens: null, isShort: false };

interface Spending {
  readonly record: Pick<Recorder, 'recent' | 'conversation' | 'totals'>;
  readonly model: () => { readonly ref: ModelRef };
  readonly models: { readonly budget?: (ref: ModelRef) => Budget | Fault | null };
}

/** The budget of the model in use; null where there is no limit. */
export function budgetOf(d: Pick<Spending, 'model' | 'models'>): Budget | Fault | null {
  return d.models.budget?.(d.model().ref) ?? null;
}

/** The allowance of the next request, by the money that is left. */
export function allowanceOf(d: Spending, leastTokens = leastAnswerTokens): Allowance {
  const budget = budgetOf(d);
  if (budget === null) return unlimited;
  if ('code' in budget) return { allowed: false, fault: budget };
  const spent = { contextTokens: contextTokens(d.record.recent()), spentUsd: d.record.totals().spentUsd };
  return allowance(spent, budget, d.record.conversation().settings.max_output_tokens, leastTokens);
}

/** Projects the cost: the money spent so far, the tokens that go in (those of the last request, and a quarter of the
 * bytes added since) at the highest rate they may have, and an answer as long as the rest pays for. Refuses a request
 * whose answer would be shorter than `leastTokens`. `limit` is the request's own limit. */
export function allowance(
  { contextTokens: tokens, spentUsd: spent }: { readonly contextTokens: number; readonly spentUsd: number },
  budget: Budget,
  limit: number | undefined,
  leastTokens = leastAnswerTokens,
): Allowance {
  const { long } = budget.price;
  const rates: Rates = long !== undefined && tokens > long.aboveTokens ? long : budget.price;
  const inputUsd = (tokens * Math.max(rates.input, rates.cacheWrite ?? 0)) / 1e6;
  const wanted = limit ?? budget.maxOutputTokens;
  const least = Math.min(leastTokens, wanted);
  const payable = affordable(budget.maxCostUsd - spent - inputUsd, rates.output);
  if (payable < least)
    return {
      allowed: false,
      fault:
        spent === 0
          ? tooSmall(budget, inputUsd, least, rates)
          : used(budget, spent, inputUsd + (least * rates.output) / 1e6),
    };
  if (payable < wanted) return { allowed: true, maxOutputTokens: payable, isShort: true };
  return limit === undefined && !budget.isEnforced
    ? { allowed: true, maxOutputTokens: wanted, isShort: false }
    : unlimited;
}

/** Tokens that `usd` pays for; -1 where it is negative. */
function affordable(usd: number, perMillion: number): number {
  if (usd < 0) return -1;
  // A rounding error in a sum of prices must not cost a token.
  return perMillion === 0 ? Number.POSITIVE_INFINITY : Math.floor((usd * 1e6) / perMillion + 1e-6);
}

const hint = 'Raise it with --max-cost, or with /budget in the REPL.';

function used({ maxCostUsd }: Budget, spent: number, next: number): Fault {
  return {
    code: 'max_cost',
    message:
      `Stopped at the spend limit of ${money(maxCostUsd)}: ${money(spent)} is spent, ` +
      `and the next request would cost at least ${money(next)}.`,
    hint,
  };
}

function tooSmall({ maxCostUsd }: Budget, inputUsd: number, least: number, { output }: Rates): Fault {
  const next = inputUsd + (least * output) / 1e6;
  return {
    code: 'max_cost',
    message:
      `The spend limit of ${money(maxCostUsd)} is too small: a request with an answer of ${least} ` +
      `${least === 1 ? 'token' : 'tokens'} costs about ${money(next)}.`,
    hint,
  };
}

/** Returns what an input of `tokens` costs, in US dollars: read from the provider's cache, or written to it. */
export function requestInputUsd(price: Price, tokens: number, how: 'cached' | 'new'): number {
  const { long } = price;
  const rates: Rates = long !== undefined && tokens > long.aboveTokens ? long : price;
  const rate = how === 'cached' ? rates.cacheRead : rates.cacheWrite;
  return (tokens * (rate ?? rates.input)) / 1e6;
}

/** The fault that ends a turn whose answer was cut at a limit set by money. */
export function cutFault(maxCostUsd: number, spent: number): Fault {
  return {
    code: 'max_cost',
    message: `The answer was cut at the spend limit of ${money(maxCostUsd)}: ${money(spent)} is spent.`,
    hint,
  };
}

/** The warning for spending that went from `before` to `after`, or null. */
export function spendingWarning(maxCostUsd: number, before: number, after: number): string | null {
  const share = warnedShares.find((passed) => before < passed * maxCostUsd && after >= passed * maxCostUsd);
  return share === undefined
    ? null
    : `${share * 100}% of the spend limit of ${money(maxCostUsd)} is used: ${money(after)}.`;
}

/** The cost of the session so far, its agents included, as far as it is known. */
export function spentUsd(events: readonly Event[]): number {
  return events.reduce((spent, event) => spent + (spentBy(event)?.cost_usd ?? 0), 0);
}

/** Formats an amount with enough digits to distinguish it from others of its size: `$5.00`, `$0.0109`, `$0.000042`. */
export function money(usd: number): string {
  const size = Math.abs(usd);
  const digits = size > 0 && size < 0.1 ? Math.min(12, 2 - Math.floor(Math.log10(size))) : 2;
  const written = size.toFixed(Math.max(size < 10 && size > 0 ? 4 : 2, digits)).replace(/(\.\d\d\d*?)0+$/, '$1');
  return `${usd < 0 ? '-' : ''}$${written}`;
}

const bytesPerToken = 4;

/** Estimates the tokens of the next request: those of the last one, and a quarter of the bytes that have come since. After
 * a compaction or a rewind it is a quarter of all bytes of the conversation. */
export function contextTokens(events: readonly Event[]): number {
  const last = events.findLastIndex((event) => reportedBy(event) !== null);
  const since = events.slice(last + 1);
  if (since.some((event) => isCompaction(event) || event.kind === 'compaction_undone' || event.kind === 'rewind'))
    return tokensOf(project(events));
  const usage = reportedBy(events[last]);
  const reported =
    usage === null ? 0 : usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens + usage.output_tokens;
  // The settings of the catalogue say how much of a result is sent.
  const catalogue = events.slice(0, last + 1).findLast(({ kind }) => kind === 'tools');
  return reported + sentTokens(catalogue === undefined ? since : [catalogue, ...since], usage === null);
}

/** Returns the tokens of events as they are sent. `isFirst`: with the prompt and the tools. */
function sentTokens(events: readonly Event[], isFirst: boolean): number {
  const { system, tools, messages } = project(events);
  const pictures = events
    .flatMap(({ data }) => attachmentsOf(data))
    .reduce((sum, file) => sum + pictureTokens(file), 0);
  return (isFirst ? tokensOf(system) + tokensOf(tools) : 0) + tokensOf(messages) + pictures;
}

/** The usage of a request that was part of the conversation. No request has no input: a server that says so does not
 * count. */
function reportedBy(raw: Event | undefined): UsageData | null {
  const event = raw?.kind === 'usage' ? knownEvent(raw) : null;
  if (event?.kind !== 'usage' || event.data.purpose !== undefined) return null;
  const { input_tokens, cache_read_tokens, cache_write_tokens } = event.data;
  return input_tokens + cache_read_tokens + cache_write_tokens > 0 ? event.data : null;
}

/** A quarter of the bytes of `value` as JSON. */
export function tokensOf(value: unknown): number {
  return Math.ceil(utf8Bytes(JSON.stringify(value)) / bytesPerToken);
}
