import type { Fault } from '../../core/provider.js';

export interface RetryRules {
  /** Requests after the first. */
  readonly maxRetries: number;
  /** The first wait; it doubles from retry to retry, up to 32 s. */
  readonly retryBaseMs: number;
  /** A request is not retried where the server asks for a longer wait. */
  readonly maxRetryAfterMs: number;
}

/** A failed request. `retryAfterMs`: the wait that the server asks for. */
export interface Failed {
  readonly fault: Fault;
  readonly retryable: boolean;
  readonly retryAfterMs?: number;
}

export type RetryPlan =
  | { readonly retry: true; readonly delayMs: number }
  | { readonly retry: false; readonly fault: Fault };

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
        rules.maxRetries === 0 ? fault : { ...fault, message: `${fault.message} (gave up after ${attempt} requests)` },
    };
  }
  const delayMs = retryAfterMs ?? backoffMs(attempt, rules.retryBaseMs, at.random);
  if (delayMs >= at.leftMs)
    return {
      retry: false,
      fault: { ...fault, message: `${fault.message} (no time left in this turn for another try)` },
    };
  return { retry: true, delayMs };
}

/** Returns `baseMs`, doubled for each request after the first, up to 32 s, ±25 %. */
export function backoffMs(attempt: number, baseMs: number, random: number): number {
  const plain = Math.min(baseMs * 2 ** (attempt - 1), longestBackoffMs);
  return Math.round(plain * (1 - jitter + 2 * jitter * random));
}

function askedTooLong(fault: Fault, waitMs: number, now: number): Pick<Fault, 'message' | 'hint'> {
  const seconds = Math.ceil(waitMs / 1000);
  const until =
    Number.isFinite(waitMs) && now + waitMs < 8.64e15
      ? new Date(now + waitMs).toISOString().replace(/\.\d+Z$/, 'Z')
      : 'far in the future';
  return {
    message: `${fault.message}; the server asks to wait ${seconds} s, until ${until}`,
    hint: 'try again then, switch the model, or raise `http.max_retry_after_ms`',
  };
}

/** Statuses after which the same request may succeed. Source: contracts 5, "Provider failures". */
export function isRetryableStatus(status: number): boolean {
  return status === 408 || status === 409 || status === 425 || status === 429 || status >= 500;
}

/** True where a request is worth repeating after an answer that is not 2xx: by `x-should-retry`, else by the status;
 * never for a rejected key or a used-up quota. */
export function isRetryableAnswer(status: number, headers: Readonly<Record<string, string>>, fault: Fault): boolean {
  if (fault.code === 'auth' || fault.code === 'quota' || fault.code === 'context_overflow') return false;
  const said = headers['x-should-retry'];
  if (said === 'true' || said === 'false') return said === 'true';
  return isRetryableStatus(status);
}

/** Reads the wait that a server asks for: `retry-after-ms`, or `retry-after` as seconds or a date. Undefined where
 * there is none, where it is in the past, and where it is neither a number nor a date. Source: RFC 9110, 10.2.3. */
export function retryAfterMs(headers: Readonly<Record<string, string>>, now: number): number | undefined {
  const exact = Number.parseFloat(headers['retry-after-ms'] ?? '');
  if (exact > 0) return Math.ceil(exact);
  const text = headers['retry-after']?.trim() ?? '';
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text) > 0 ? Math.ceil(Number(text) * 1000) : undefined;
  const at = /[a-z]{3}/i.test(text) ? Date.parse(text) : Number.NaN;
  return at > now ? at - now : undefined;
}
