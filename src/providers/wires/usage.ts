import { isRecord } from '../../core/json.js';
import type { Reported } from './answer.js';
import type { Fields } from './wire.js';

/** Reads the usage of Chat Completions. `prompt_tokens` includes cached tokens, which are subtracted. Where a server
 * counts reasoning in `total_tokens` but not in `completion_tokens` (xAI), it is added. Null where nothing was
 * counted. */
export function chatUsage(value: unknown): Reported | null {
  if (!isRecord(value)) return null;
  const prompt = count(value.prompt_tokens);
  const completion = count(value.completion_tokens);
  if (prompt === undefined && completion === undefined) return null;
  const details = record(value.prompt_tokens_details);
  const cacheRead = first(
    details.cached_tokens,
    value.prompt_cache_hit_tokens,
    value.cached_tokens,
    value.cache_read_input_tokens,
  );
  const cacheWrite = first(details.cache_write_tokens, value.cache_creation_input_tokens);
  const reasoning = first(record(value.completion_tokens_details).reasoning_tokens);
  const output = first(completion);
  const left = value.total_tokens === first(prompt) + output + reasoning ? reasoning : 0;
  return reported(first(prompt), cacheRead, cacheWrite, output + left, value);
}

/** Reads the usage of Responses, where `input_tokens` includes cached tokens. */
export function responsesUsage(value: unknown): Reported | null {
  if (!isRecord(value)) return null;
  const details = record(value.input_tokens_details);
  const input = count(value.input_tokens);
  const output = count(value.output_tokens);
  if (input === undefined && output === undefined) return null;
  return reported(first(input), first(details.cached_tokens), first(details.cache_write_tokens), first(output), value);
}

/** Reads the usage of Messages, whose counts are already disjoint. They come in `message_start` and, final, in
 * `message_delta`. */
export function messagesUsage(value: Fields): Reported | null {
  const input = count(value.input_tokens);
  const output = count(value.output_tokens);
  if (input === undefined && output === undefined) return null;
  const cacheRead = first(value.cache_read_input_tokens);
  const cacheWrite = first(value.cache_creation_input_tokens);
  return { usage: { input: first(input), cacheRead, cacheWrite, output: first(output) }, ...cost(value) };
}

function reported(total: number, cacheRead: number, cacheWrite: number, output: number, value: Fields): Reported {
  return {
    usage: { input: Math.max(0, total - cacheRead - cacheWrite), cacheRead, cacheWrite, output },
    ...cost(value),
  };
}

/** Reads `usage.cost` in USD (OpenRouter). With an own key at the upstream, adds what the upstream charged. */
function cost(value: Fields): { readonly costUsd?: number } {
  if (typeof value.cost !== 'number' || !Number.isFinite(value.cost) || value.cost < 0) return {};
  const upstream = record(value.cost_details).upstream_inference_cost;
  return { costUsd: value.is_byok === true && typeof upstream === 'number' ? value.cost + upstream : value.cost };
}

function record(value: unknown): Fields {
  return isRecord(value) ? value : {};
}

function count(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : undefined;
}

/** Returns the first of `values` that is a count, else 0. */
function first(...values: readonly unknown[]): number {
  return values.map(count).find((value) => value !== undefined) ?? 0;
}
