import type { Stop } from '../../core/event.js';
import type { Fault, ModelChunk, ModelRequest } from '../../core/provider.js';
import type { Schedule } from '../../core/runtime.js';
import { type RefusedAnswer, usageLimitIn } from '../wires/usage-limits.js';
import { askedWaitMs, waitInText } from '../wires/waits.js';
import type { Wire, WireChunk } from '../wires/wire.js';
import { type AnswerReader, createAnswerReader } from './answer-reader.js';
import { type BodyReader, readBody, readText } from './body.js';
import type { Post } from './client.js';
import { HttpFailure } from './exchange.js';
import { createWatch, type Expired } from './watch.js';

/** Longest text of one answer. Source: security 2.42. */
const maxTextMiB = 8;
const maxTextChars = maxTextMiB * 1024 * 1024;
const maxErrorBytes = 64 * 1024;

export interface TimeLimits {
  readonly firstByteTimeoutMs: number;
  readonly idleTimeoutMs: number;
  /** One model request with all its retries and waits. */
  readonly turnTimeoutMs: number;
}

/** State that all attempts at one request share. */
export interface AttemptContext {
  readonly host: string;
  readonly wire: Wire;
  readonly limits: TimeLimits & Pick<RetryRules, 'maxRetryAfterMs'>;
  /** Unix milliseconds. */
  readonly turnEndsAt: number;
  /** Opens the client of the server, once. */
  readonly open: () => Promise<{ readonly post: Post }>;
  /** Unix milliseconds. */
  readonly now: () => number;
  readonly schedule: Schedule;
  /** Headers that this request has beside those of the endpoint. */
  readonly headers: Readonly<Record<string, string>>;
  /** Called with the headers of every answer, refusals included. */
  readonly onHeaders: (headers: Headers) => void;
  /** Returns what an answer cost in USD. */
  readonly cost: (usage: Extract<WireChunk, { type: 'usage' }>) => number | null;
  /** Returns what has to be said about a complete answer, right before its end. */
  readonly notices: (request: ModelRequest, answer: CompleteAnswer) => Promise<readonly ModelChunk[]>;
}

/** A complete answer, as far as notices depend on it. */
interface CompleteAnswer {
  readonly text: string;
  /** Number of its tool calls. */
  readonly calls: number;
  /** Tokens of the request, as the server counts them; 0 where it counts none. */
  readonly promptTokens: number;
  readonly stop: Stop;
}

/** State that an attempt takes over from the earlier ones. */
export interface Earlier {
  /** True: an answer of whole calls counts although it has no finish reason, because the one before was alike. */
  readonly takesUnfinished: boolean;
  /** Usage of the answers before this one. */
  readonly spent: Spent | null;
  /** Factor for the limit of the first byte: larger once a server was silent for that long. */
  readonly patience: number;
}

type Spent = Extract<ModelChunk, { type: 'usage' }>;

/** End of an attempt: complete (it gave `end`), or why it does not count. */
export type AttemptOutcome = { readonly complete: true } | FailedAttempt;

export interface FailedAttempt {
  readonly complete: false;
  readonly failed: Failed;
  /** Usage of this attempt and the ones before. */
  readonly spent: Spent | null;
  readonly unfinished?: true;
  readonly expired?: Expired;
}

/** Sends a request once and reads its answer. Yields text and reasoning as they arrive; calls, usage and `end` only
 * once the answer is complete, so that no call of an unfinished answer can run. Never throws. Leaving early (an abort,
 * a reader that stops) closes the connection. */
export async function* attempt(
  request: ModelRequest,
  body: Uint8Array,
  earlier: Earlier,
  context: AttemptContext,
): AsyncGenerator<ModelChunk, AttemptOutcome> {
  const { host, limits, turnEndsAt } = context;
  const { spent } = earlier;
  const controller = new AbortController();
  const abort = (): void => {
    controller.abort();
  };
  request.signal.addEventListener('abort', abort, { once: true });
  const firstByteMs = limits.firstByteTimeoutMs * earlier.patience;
  const times = { firstByteMs, idleMs: limits.idleTimeoutMs, turnEndsAt };
  const watch = createWatch(times, context.now, context.schedule, abort);
  let isOver = false;
  try {
    const { post } = await context.open();
    const response = await post(body, controller.signal, context.headers);
    context.onHeaders(response.headers);
    const failed = await failureIn(response, context);
    isOver = !response.ok;
    if (failed !== null) return { complete: false, failed, spent };
    const bytes = readBody(response);
    const contentType = response.headers.get('content-type') ?? '';
    const reader = createAnswerReader(context.wire, request.maxCalls, { host, contentType });
    const gate = new AnswerGate(earlier, context);
    for (let hasMore = true; hasMore;) {
      const piece = await nextPiece(bytes, reader);
      hasMore = piece.hasMore;
      if (hasMore) watch.alive(piece.chunks.length > 0);
      yield* gate.pass(piece.chunks);
      if (gate.failed !== null) return { complete: false, ...gate.failed };
      if (!gate.isComplete) continue;
      await bytes.release();
      isOver = true;
      yield* await gate.rest(request);
      return { complete: true };
    }
    return { complete: false, failed: unreadable(`${host} sent no readable answer`, true), spent };
  } catch (error) {
    const expired = watch.expired();
    if (expired === null) return { complete: false, failed: failureOf(error, host), spent };
    const failed = timedOut(expired, host, { ...limits, firstByteTimeoutMs: firstByteMs });
    return { complete: false, failed, spent, expired };
  } finally {
    watch.stop();
    request.signal.removeEventListener('abort', abort);
    if (!isOver) controller.abort();
  }
}

/** Returns why an answer holds nothing to read: its status is no success, or it has no body. Null where it can be
 * read. */
async function failureIn(response: Response, context: AttemptContext): Promise<Failed | null> {
  if (!response.ok) return await refusal(response, context);
  return response.body === null ? withoutBody(response.status, context.host) : null;
}

/** Reads the next bytes of an answer, or its end. */
async function nextPiece(
  body: BodyReader,
  reader: AnswerReader,
): Promise<{ readonly hasMore: boolean; readonly chunks: readonly WireChunk[] }> {
  let bytes: Uint8Array | null;
  try {
    bytes = await body.next();
  } catch (error) {
    return { hasMore: false, chunks: reader.broken(error) };
  }
  return bytes === null ? { hasMore: false, chunks: reader.end() } : { hasMore: true, chunks: reader.push(bytes) };
}

/** Holds back the chunks that an unfinished answer must not give. */
class AnswerGate {
  isComplete = false;
  failed: Pick<FailedAttempt, 'failed' | 'spent' | 'unfinished'> | null = null;
  readonly #earlier: Earlier;
  readonly #context: AttemptContext;
  readonly #held: ModelChunk[];
  #spent: Spent | null;
  #shownChars = 0;
  #text = '';
  #calls = 0;
  #promptTokens = 0;

  constructor(earlier: Earlier, context: AttemptContext) {
    this.#earlier = earlier;
    this.#context = context;
    this.#spent = earlier.spent;
    this.#held = earlier.spent === null ? [] : [earlier.spent];
  }

  /** Returns the chunks that are shown at once. Stops at the one that completes or fails the answer. */
  pass(chunks: readonly WireChunk[]): readonly ModelChunk[] {
    const shown: ModelChunk[] = [];
    for (const chunk of chunks) {
      const one = this.#take(chunk);
      if (one !== null) shown.push(one);
      if (this.failed !== null || this.isComplete) break;
    }
    const last = shown.at(-1);
    if (this.isComplete && (last?.type === 'text' || last?.type === 'reasoning'))
      shown[shown.length - 1] = { ...last, isLast: true };
    return shown;
  }

  /** Returns the chunks of a complete answer that were held back: calls, usage, notices, and `end`. */
  async rest(request: ModelRequest): Promise<readonly ModelChunk[]> {
    const end = this.#held.pop();
    if (end?.type !== 'end') return this.#held;
    const answer = { text: this.#text, calls: this.#calls, promptTokens: this.#promptTokens, stop: end.stop };
    return [...this.#held, ...(await this.#context.notices(request, answer)), end];
  }

  /** Returns the chunk where it is shown at once. */
  #take(chunk: WireChunk): ModelChunk | null {
    switch (chunk.type) {
      case 'text':
        this.#text += chunk.text;
        return this.#fits(chunk.text) ? chunk : null;
      case 'reasoning':
        return this.#fits(chunk.text) ? chunk : null;
      case 'tool_call':
        this.#calls++;
        this.#held.push(chunk);
        return null;
      case 'usage':
        this.#count(chunk);
        return null;
      case 'end':
        this.#held.push(chunk);
        this.isComplete = true;
        return null;
      case 'fault':
        if (this.#earlier.takesUnfinished && chunk.unfinished !== undefined) {
          this.pass(chunk.unfinished);
          this.#held.unshift(unfinishedNotice(this.#context.host));
        } else this.failed = { ...failedIn(chunk, this.#context), spent: this.#spent };
        return null;
      default:
        chunk satisfies never;
        return null;
    }
  }

  #fits(text: string): boolean {
    this.#shownChars += text.length;
    if (this.#shownChars <= maxTextChars) return true;
    const message = `the answer of ${this.#context.host} has more than ${maxTextMiB} MiB of text`;
    this.failed = { failed: unreadable(message, false), spent: this.#spent };
    return false;
  }

  /** Replaces the usage that is held: a server may report it several times. */
  #count(chunk: Extract<WireChunk, { type: 'usage' }>): void {
    const { usage } = chunk;
    this.#promptTokens = usage.input + usage.cacheRead + usage.cacheWrite;
    this.#spent = sumUsage(this.#earlier.spent, { type: 'usage', usage, costUsd: this.#context.cost(chunk) });
    const at = this.#held.findIndex(({ type }) => type === 'usage');
    this.#held.splice(at < 0 ? this.#held.length : at, at < 0 ? 0 : 1);
    this.#held.push(this.#spent);
  }
}

function failedIn(
  { fault, retryable, said, unfinished }: Extract<WireChunk, { type: 'fault' }>,
  context: AttemptContext,
): Pick<FailedAttempt, 'failed' | 'unfinished'> {
  const now = context.now();
  const limited =
    said === undefined ? null : limitedBy(fault, { status: fault.status, headers: {}, body: said }, context);
  if (limited !== null) return { failed: limited };
  const wait = said === undefined ? undefined : waitInText(said, now);
  return {
    failed: { fault, retryable, ...(wait === undefined ? {} : { retryAfterMs: wait }) },
    ...(unfinished === undefined ? {} : { unfinished: true }),
  };
}

function unfinishedNotice(host: string): ModelChunk {
  return {
    type: 'notice',
    level: 'warn',
    code: 'no_finish_reason',
    message: `${host} sent no finish reason, even after a retry. Its tool calls are complete, so they run.`,
  };
}

/** Adds up the usage of two requests that count as one. */
function sumUsage(before: Spent | null, now: Spent): Spent {
  if (before === null) return now;
  const { usage: one } = before;
  const { usage: two } = now;
  const usage = {
    input: one.input + two.input,
    cacheRead: one.cacheRead + two.cacheRead,
    cacheWrite: one.cacheWrite + two.cacheWrite,
    output: one.output + two.output,
  };
  return {
    type: 'usage',
    usage,
    costUsd: before.costUsd === null || now.costUsd === null ? null : before.costUsd + now.costUsd,
  };
}

/** Says what an answer that is not 2xx means. */
async function refusal(response: Response, context: AttemptContext): Promise<Failed> {
  const { wire, host, now } = context;
  const { status } = response;
  const headers = Object.fromEntries(response.headers);
  if (status >= 300 && status < 400) {
    readBody(response).destroy();
    const target = redirectTarget(headers.location);
    const reason = 'redirects are not followed, to keep the key safe';
    const message = `${host} answered with a redirect (${status})${target}; ${reason}`;
    return {
      fault: { code: 'protocol', message, hint: "set the base URL to the server's real address", status },
      retryable: false,
    };
  }
  const body = await readText(response, maxErrorBytes);
  const fault = wire.fault(status, body);
  const limited = limitedBy(fault, { status, headers, body }, context);
  if (limited !== null) return { ...limited, body };
  const wait = askedWaitMs(headers, body, { now: now(), isRateLimit: fault.code === 'rate_limited' });
  return {
    fault: { status, ...fault },
    retryable: isRetryableAnswer(status, headers, fault),
    body,
    ...(wait === undefined ? {} : { retryAfterMs: wait }),
  };
}

/** Returns the failure of an answer that reports a usage limit; null for any other answer. */
function limitedBy(fault: Fault, answer: RefusedAnswer, { now, limits }: AttemptContext): Failed | null {
  const at = now();
  const limit = usageLimitIn(answer, at, limits.maxRetryAfterMs);
  if (limit === null) return null;
  const { hint: _, ...said } = fault;
  const limited: Fault = {
    ...said,
    code: 'rate_limited',
    ...(answer.status === undefined ? {} : { status: answer.status }),
  };
  const retryAt = at + (limit.waitMs ?? Infinity);
  if (retryAt >= latestMs) return { fault: { ...limited, hint: unknownEndHint }, retryable: false };
  const hint = `The usage limit ends at ${isoSeconds(retryAt)}. Wait until then, or use another model.`;
  return { fault: { ...limited, hint, retryAt }, retryable: false };
}

const unknownEndHint = 'The answer does not say when the limit ends. Try again later, or use another model.';

function isoSeconds(at: number): string {
  return new Date(at).toISOString().replace(/\.\d+Z$/, 'Z');
}

/** Returns the failure of an answer whose status says that it is empty: another attempt would be empty too. */
function withoutBody(status: number, host: string): Failed {
  return {
    fault: {
      code: 'protocol',
      message: `${host} answered ${status}, a response without a body`,
      hint: 'check the base URL',
      status,
    },
    retryable: false,
  };
}

function redirectTarget(location: string | undefined): string {
  if (location === undefined || !URL.canParse(location, 'http://here.invalid')) return '';
  const url = new URL(location, 'http://here.invalid');
  return ` to ${url.host === 'here.invalid' ? url.pathname : url.origin}`;
}

function unreadable(message: string, retryable: boolean): Failed {
  return { fault: { code: 'protocol', message }, retryable };
}

/** Says why a request could not be made. */
function failureOf(error: unknown, host: string): HttpFailure {
  if (error instanceof HttpFailure) return error;
  const said = error instanceof Error ? error.message : String(error);
  return new HttpFailure(
    { code: 'internal', message: `the request to ${host} could not be made: ${said}` },
    false,
    error,
  );
}

function timedOut(expired: Expired, host: string, limits: TimeLimits): HttpFailure {
  switch (expired) {
    case 'first_byte':
      return new HttpFailure(
        {
          code: 'network',
          message: `${host} sent nothing for ${limits.firstByteTimeoutMs / 1000} s`,
          hint: 'a slow server needs a larger `http.first_byte_timeout_ms`',
        },
        true,
      );
    case 'idle':
      return new HttpFailure(
        {
          code: 'stream_incomplete',
          message: `${host} stopped in the middle of its answer and sent nothing for ${limits.idleTimeoutMs / 1000} s`,
        },
        true,
      );
    case 'turn':
      return new HttpFailure(
        {
          code: 'network',
          message: `${host} did not finish within ${limits.turnTimeoutMs / 1000} s`,
          hint: 'a longer answer needs a larger `http.turn_timeout_ms`',
        },
        false,
      );
    default:
      return expired satisfies never;
  }
}

export interface RetryRules {
  /** Requests after the first. */
  readonly maxRetries: number;
  /** The first wait; it doubles from retry to retry, up to 32 s. */
  readonly retryBaseMs: number;
  /** A request is not retried where the server asks for a longer wait. */
  readonly maxRetryAfterMs: number;
}

/** A failed request. `retryAfterMs`: the wait that the server asks for; `body`: of an answer that is not 2xx. */
export interface Failed {
  readonly fault: Fault;
  readonly retryable: boolean;
  readonly retryAfterMs?: number;
  readonly body?: string;
}

type RetryPlan = { readonly retry: true; readonly delayMs: number } | { readonly retry: false; readonly fault: Fault };

const longestBackoffMs = 32_000;
const jitter = 0.25;

/** Decides what follows a failure. `attempt` counts the requests made, from 1; `random` is in [0, 1); `leftMs` is the
 * rest of the turn. Pure. */
export function planRetry(
  failed: Failed,
  attempt: number,
  rules: RetryRules,
  at: { readonly random: number; readonly now: number; readonly leftMs: number },
): RetryPlan {
  const { fault, retryAfterMs } = failed;
  if (!failed.retryable) return { retry: false, fault };
  if (retryAfterMs !== undefined && retryAfterMs > rules.maxRetryAfterMs) {
    return { retry: false, fault: { ...fault, ...askedTooLong(fault, retryAfterMs, at.now) } };
  }
  if (attempt > rules.maxRetries) {
    return {
      retry: false,
      fault:
        rules.maxRetries === 0 ? fault : { ...fault, message: `${fault.message} (gave up after ${attempt} tries)` },
    };
  }
  const delayMs = retryAfterMs ?? backoffMs(attempt, rules.retryBaseMs, at.random);
  if (delayMs >= at.leftMs)
    return {
      retry: false,
      fault: {
        ...fault,
        message: `${fault.message} (no time left in this turn for another try)`,
        ...(retryAfterMs === undefined ? {} : endOfLimit(fault, at.now + retryAfterMs)),
      },
    };
  return { retry: true, delayMs };
}

/** Returns `baseMs`, doubled for each request after the first, up to 32 s, ±25 %. */
export function backoffMs(attempt: number, baseMs: number, random: number): number {
  const plain = Math.min(baseMs * 2 ** (attempt - 1), longestBackoffMs);
  return Math.round(plain * (1 - jitter + 2 * jitter * random));
}

/** Returns the end of a rate limit. A server that is down asks for a wait, too, and promises nothing. */
function endOfLimit({ code }: Fault, retryAt: number): Pick<Fault, 'retryAt'> {
  return code === 'rate_limited' && retryAt < latestMs ? { retryAt } : {};
}

/** The latest time that a date can have. */
const latestMs = 8.64e15;

function askedTooLong(fault: Fault, waitMs: number, now: number): Pick<Fault, 'message' | 'hint' | 'retryAt'> {
  const seconds = Math.ceil(waitMs / 1000);
  const until = Number.isFinite(waitMs) && now + waitMs < latestMs ? isoSeconds(now + waitMs) : 'far in the future';
  return {
    ...endOfLimit(fault, now + waitMs),
    message: `${fault.message}; the server asks to wait ${seconds} s, until ${until}`,
    hint: 'try again then, switch the model, or raise `http.max_retry_after_ms`',
  };
}

/** Statuses after which the same request may succeed. Source: contracts 5, "Provider failures". */
function isRetryableStatus(status: number): boolean {
  return status === 408 || status === 409 || status === 425 || status === 429 || status >= 500;
}

/** Returns true where a request is worth repeating after an answer that is not 2xx. A request that was refused is never
 * sent again unchanged, whatever `x-should-retry` says; neither is one for a rejected key or a used-up quota. */
export function isRetryableAnswer(status: number, headers: Readonly<Record<string, string>>, fault: Fault): boolean {
  if (fault.code !== 'network' && fault.code !== 'rate_limited') return false;
  return isRetryableStatus(status) && headers['x-should-retry'] !== 'false';
}
