import { addAll } from '../../core/lists.js';
import { parseJson } from '../../core/json.js';
import type { Stop, TokenUsage } from '../../core/event.js';
import { isRecord, type Json } from '../../core/json.js';
import type { FaultCode, ReceivedCall } from '../../core/provider.js';
import { wellFormed } from '../../core/text.js';
import { fault, isFailure, streamFault } from './fault.js';
import { meaningOf } from './finish-reasons.js';
import type { WireFields, WireChunk } from './wire.js';

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
export function messagesUsage(value: WireFields): Reported | null {
  const input = count(value.input_tokens);
  const output = count(value.output_tokens);
  if (input === undefined && output === undefined) return null;
  const cacheRead = first(value.cache_read_input_tokens);
  const cacheWrite = first(value.cache_creation_input_tokens);
  return { usage: { input: first(input), cacheRead, cacheWrite, output: first(output) }, ...cost(value) };
}

function reported(total: number, cacheRead: number, cacheWrite: number, output: number, value: WireFields): Reported {
  return {
    usage: { input: Math.max(0, total - cacheRead - cacheWrite), cacheRead, cacheWrite, output },
    ...cost(value),
  };
}

/** Reads `usage.cost` in USD (OpenRouter). With an own key at the upstream, adds what the upstream charged. */
function cost(value: WireFields): { readonly costUsd?: number } {
  if (typeof value.cost !== 'number' || !Number.isFinite(value.cost) || value.cost < 0) return {};
  const upstream = record(value.cost_details).upstream_inference_cost;
  return { costUsd: value.is_byok === true && typeof upstream === 'number' ? value.cost + upstream : value.cost };
}

function record(value: unknown): WireFields {
  return isRecord(value) ? value : {};
}

function count(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : undefined;
}

/** Returns the first of `values` that is a count, else 0. */
function first(...values: readonly unknown[]): number {
  return values.map(count).find((value) => value !== undefined) ?? 0;
}

/** The most UTF-16 units of one answer: of text and reasoning together, and of arguments. */
const maxUnits = 8 * 1024 * 1024;
const none: readonly WireChunk[] = [];

/** End of an answer, as a wire read it. */
export interface Finish {
  /** The provider's own word for how the answer ended. */
  readonly reason: string;
  /** True where a part of the answer is a refusal. */
  readonly isRefused?: boolean;
  readonly calls: readonly ReceivedCall[];
  readonly usage: Reported | null;
  readonly reasoning: readonly Json[];
}

/** Usage as a chunk holds it. */
export interface Reported {
  readonly usage: TokenUsage;
  readonly costUsd?: number;
}

/** One answer while it is read, the same for every wire. It keeps the limits and the rules of ending; the wire keeps
 * its own details. */
export class WireAnswer {
  ended = false;
  #chunks: WireChunk[] = [];
  #said = 0;
  #arguments = 0;
  readonly #held = { text: '', reasoning: '' };
  readonly #maxCalls: number;

  constructor(maxCalls = Number.POSITIVE_INFINITY) {
    this.#maxCalls = maxCalls;
  }

  /** True where more calls have begun than are read: the wire then finishes with the calls it has. */
  isOverCalled(begun: () => number): boolean {
    return this.#maxCalls !== Number.POSITIVE_INFINITY && !this.ended && begun() > this.#maxCalls;
  }

  /** True once any text was given, which cannot be undone. */
  get spoke(): boolean {
    return this.#said > 0;
  }

  say(type: 'text' | 'reasoning', part: string): void {
    if (part === '' || this.ended) return;
    this.#said += part.length;
    if (this.#said > maxUnits) {
      this.fail('protocol', 'The answer is longer than 8 MiB and was discarded.', false);
      return;
    }
    const text = this.#held[type] + part;
    const last = text.charCodeAt(text.length - 1);
    const split = last >= 0xd800 && last <= 0xdbff;
    this.#held[type] = split ? text.slice(-1) : '';
    const whole = split ? text.slice(0, -1) : text;
    if (whole !== '') this.#chunks.push({ type, text: wellFormed(whole) });
  }

  /** Counts a piece of arguments that arrived. */
  countArguments(piece: string): void {
    this.#arguments += piece.length;
    if (this.#arguments > maxUnits)
      this.fail('protocol', 'The arguments of the tool calls are longer than 8 MiB; the answer was discarded.', false);
  }

  fail(code: FaultCode, message: string, retryable: boolean): void {
    if (this.ended) return;
    this.ended = true;
    this.#chunks.push({ type: 'fault', fault: fault(code, message), retryable });
  }

  incomplete(why: string): void {
    this.fail('stream_incomplete', `The answer is incomplete: ${why}.`, true);
  }

  /** Fails with an event that is no JSON. A text of the server is what it wants to say. */
  unreadable(text: string | null): void {
    if (text === null) this.incomplete('an event of the stream is broken');
    else this.failWith(text);
  }

  /** Fails because there is no finish reason. Where all calls are whole, the fault has the rest of the answer. */
  unfinished(why: string, rest: Finish): void {
    if (this.ended) return;
    const isWhole = rest.calls.length > 0 && rest.calls.every((call) => call.name !== '' && isComplete(call.arguments));
    this.incomplete(why);
    const last = this.#chunks.at(-1);
    if (!isWhole || last?.type !== 'fault') return;
    const whole = new WireAnswer(this.#maxCalls);
    whole.finish(rest);
    this.#chunks[this.#chunks.length - 1] = { ...last, unfinished: whole.take() };
  }

  /** Fails with a body that is JSON and no answer: by what it says, where it says something. */
  notAnAnswer(body: Json, expected: string): void {
    if (isFailure(body)) this.failWith(body);
    else this.fail('protocol', `The server answered with JSON that is not ${expected}.`, false);
  }

  /** Fails with what the server says instead of an answer: an error object, a text, or whatever it sent. */
  failWith(error: unknown): void {
    if (this.ended) return;
    this.ended = true;
    this.#chunks.push({ type: 'fault', ...streamFault(error) });
  }

  /** Completes the answer as its finish reason says. Gives its calls unless the provider refused. An answer that broke
   * off or that no documented reason completes is a fault. */
  finish({ reason, isRefused, calls, usage, reasoning }: Finish): void {
    if (this.ended) return;
    const meaning = isRefused === true ? 'refusal' : meaningOf(reason);
    this.#flush('reasoning');
    this.#flush('text');
    const paid: readonly WireChunk[] = usage ? [{ type: 'usage', ...usage }] : [];
    if (meaning === 'broken' || meaning === 'failed') {
      addAll(this.#chunks, paid);
      if (meaning === 'broken')
        this.fail('network', `The provider stopped the answer (finish reason "${reason}").`, true);
      else this.fail('protocol', `The answer is not complete: it ended with the finish reason "${reason}".`, false);
      return;
    }
    this.ended = true;
    const settled = settle(meaning, calls.length);
    const given = calls.slice(0, this.#maxCalls);
    if (settled === 'tool' || settled === 'length')
      for (const call of given) this.#chunks.push({ type: 'tool_call', call });
    addAll(this.#chunks, paid);
    this.#chunks.push({ type: 'end', stop: settled, ...(reasoning.length > 0 ? { reasoning } : {}) });
  }

  /** Returns what was read since the last time, in order. */
  take(): readonly WireChunk[] {
    if (this.#chunks.length === 0) return none;
    const chunks = this.#chunks;
    this.#chunks = [];
    return chunks;
  }

  #flush(type: 'text' | 'reasoning'): void {
    if (this.#held[type] !== '') this.#chunks.push({ type, text: wellFormed(this.#held[type]) });
    this.#held[type] = '';
  }
}

/** Corrects the stop reason: gateways send `stop` with calls, which means tools, and `tool` without calls means the
 * end. */
function settle(stop: Exclude<Stop, 'interrupted'>, calls: number): Exclude<Stop, 'interrupted'> {
  if (stop === 'stop' || stop === 'tool') return calls > 0 ? 'tool' : 'stop';
  return stop;
}

/** Returns what is wrong with data that is no JSON: its text, where it is a text for the reader; null where it is a
 * JSON value that broke off. */
export function plainText(data: string): string | null {
  const text = data.trim();
  return text === '' || /^[[{"\d]/.test(text) ? null : text;
}

/** Parses an event's data; undefined where it is not JSON, or nested so deep that it could not be written again. */
export function parseData(data: string): unknown {
  try {
    return parseJson(data);
  } catch {
    return undefined;
  }
}

/** Returns true for the text of a whole JSON object. */
export function isComplete(text: string): boolean {
  return mayBeComplete(text) && isRecord(parseData(text));
}

/** Returns false for a text that cannot be a whole object. Most pieces end elsewhere, so that long arguments are not
 * parsed with each of them. */
export function mayBeComplete(text: string): boolean {
  return text.endsWith('}') || (/\s$/.test(text.slice(-1)) && text.trimEnd().endsWith('}'));
}
