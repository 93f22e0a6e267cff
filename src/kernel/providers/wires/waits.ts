import { largestOf, smallestOf } from '../../core/lists.js';
import { isRecord, parseJson } from '../../core/json.js';

/** The headers of an answer, names in lower case. */
export type AnswerHeaders = Readonly<Record<string, string>>;

/** Form in which a wait is written. `seconds`, `milliseconds`: a number; `span`: `1m30.5s`, `850ms` or a number of
 * seconds; `when`: a date, a Unix time, or a span. */
export type WaitForm = 'seconds' | 'milliseconds' | 'span' | 'when';

interface WaitField {
  readonly name: string;
  readonly form: WaitForm;
  /** The documentation, read 2026-11. */
  readonly source: string;
}

/** Headers that give the wait itself, most exact first. */
const waitHeaders: readonly WaitField[] = [
  { name: 'retry-after-ms', form: 'milliseconds', source: 'OpenAI and Azure OpenAI, their SDKs' },
  { name: 'x-ms-retry-after-ms', form: 'milliseconds', source: 'Azure, API guidelines' },
  { name: 'retry-after', form: 'when', source: 'RFC 9110, 10.2.3' },
];

/** Fields of an error body that give the wait itself. */
const waitFields: readonly WaitField[] = [
  { name: 'retryDelay', form: 'span', source: 'Google, google.rpc.RetryInfo' },
  { name: 'retry_delay', form: 'span', source: 'Google, google.rpc.RetryInfo in gateways' },
  { name: 'retry_after_ms', form: 'milliseconds', source: 'Groq and gateways' },
  { name: 'retryAfterMs', form: 'milliseconds', source: 'gateways' },
  { name: 'retry_after_seconds', form: 'seconds', source: 'OpenRouter, error.metadata' },
  { name: 'retry_after', form: 'when', source: 'GitHub Copilot and gateways' },
  { name: 'retryAfter', form: 'when', source: 'gateways' },
  { name: 'resets_in_seconds', form: 'seconds', source: 'OpenAI' },
  { name: 'resets_at', form: 'when', source: 'OpenAI' },
];

/** Headers that say when a limit is full again, and the one that says how much of it is left. */
const resetHeaders: readonly { readonly name: RegExp; readonly left: string; readonly source: string }[] = [
  {
    name: /^x-ratelimit-reset-(.+)$/,
    left: 'x-ratelimit-remaining-$1',
    source: 'OpenAI, Groq, Cerebras, Azure: rate limit headers',
  },
  {
    // Those of plans (`unified`) say nothing of a short limit: usage-limits.ts.
    name: /^anthropic-ratelimit-(?!unified-)(.+)-reset$/,
    left: 'anthropic-ratelimit-$1-remaining',
    source: 'Anthropic: rate limits',
  },
  { name: /^x-ratelimit-reset$/, left: 'x-ratelimit-remaining', source: 'OpenRouter, GitHub, Together' },
  { name: /^ratelimit-reset$/, left: 'ratelimit-remaining', source: 'IETF draft, RateLimit header fields' },
  { name: /^ratelimitbysize-reset$/, left: 'ratelimitbysize-remaining', source: 'Mistral: rate limit headers' },
];

/** Returns the wait in milliseconds that a server asks for: by a header, else in its body, else, where the limit of a
 * rate was reached, by the time at which that limit is full again. Undefined where it asks for none, and for a time in
 * the past. */
export function askedWaitMs(
  headers: AnswerHeaders,
  body: string,
  { now, isRateLimit }: { readonly now: number; readonly isRateLimit: boolean },
): number | undefined {
  return (
    firstWait(waitHeaders, (name) => headers[name], now) ??
    waitInText(body, now) ??
    (isRateLimit ? resetMs(headers, now) : undefined)
  );
}

/** Returns the wait that an error asks for: a field of it, else its sentence. */
export function waitInText(text: string, now: number): number | undefined {
  const value = parseJsonText(text);
  return (value === undefined ? undefined : waitInValue(value, now, 0)) ?? waitInSentence(text);
}

const maxDepth = 8;

function waitInValue(value: unknown, now: number, depth: number): number | undefined {
  if (depth > maxDepth) return undefined;
  if (typeof value === 'string') {
    const inner = /^\s*[[{]/.test(value) ? parseJsonText(value) : undefined;
    return inner === undefined ? undefined : waitInValue(inner, now, depth + 1);
  }
  if (!isRecord(value) && !Array.isArray(value)) return undefined;
  const own = isRecord(value) ? firstWait(waitFields, (name) => value[name], now) : undefined;
  if (own !== undefined) return own;
  for (const [name, inner] of Object.entries(value)) {
    const found = name === 'headers' ? waitInHeaders(inner, now) : waitInValue(inner, now, depth + 1);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Reads headers of the upstream inside a body. Source: OpenRouter, `error.metadata.headers`. */
function waitInHeaders(value: unknown, now: number): number | undefined {
  if (!isRecord(value)) return undefined;
  const headers = Object.fromEntries(
    Object.entries(value).flatMap(([name, item]) =>
      typeof item === 'string' || typeof item === 'number' ? [[name.toLowerCase(), String(item)]] : [],
    ),
  );
  return firstWait(waitHeaders, (name) => headers[name], now) ?? resetMs(headers, now);
}

function firstWait(fields: readonly WaitField[], read: (name: string) => unknown, now: number): number | undefined {
  for (const { name, form } of fields) {
    const waitMs = toMs(read(name), form, now);
    if (waitMs !== undefined) return waitMs;
  }
  return undefined;
}

/** Returns the longest wait for a limit that is used up; where the server does not say which one is, the shortest. */
function resetMs(headers: AnswerHeaders, now: number): number | undefined {
  const waits = Object.entries(headers).flatMap(([name, value]) => {
    const known = resetHeaders.find((header) => header.name.test(name));
    const waitMs = known === undefined ? undefined : toMs(value, 'when', now);
    if (known === undefined || waitMs === undefined) return [];
    return [{ waitMs, isUsedUp: Number(headers[name.replace(known.name, known.left)] ?? Number.NaN) === 0 }];
  });
  const usedUp = waits.filter(({ isUsedUp }) => isUsedUp);
  if (usedUp.length > 0) return largestOf(usedUp.map(({ waitMs }) => waitMs));
  return waits.length === 0 ? undefined : smallestOf(waits.map(({ waitMs }) => waitMs));
}

/** Waits in the sentences of vendors. Source: OpenAI ("Please try again in 1m30s"), Google ("Please retry in
 * 12.5s"), Azure OpenAI ("Please retry after 26 seconds"), Amazon ("try again in 30 seconds"). */
const sentences =
  /\b(?:try(?:ing)? again|retry(?:ing)?|wait(?:ing)?|available(?: again)?|resets?)\s+(?:(?:in|after|for|at least|another|about)\s+){0,2}((?:\d+(?:\.\d+)?\s*(?:milliseconds?|millis|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d)\b[\s,]*(?:and\s+)?)+|(?:\d+(?:\.\d+)?(?:ms|[smhd]))+)/i;

function waitInSentence(text: string): number | undefined {
  const span = sentences.exec(text.slice(0, 20_000))?.[1];
  return span === undefined ? undefined : spanMs(span);
}

const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Reads `1m30.5s`, `850ms`, `2 minutes and 3 seconds`. */
function spanMs(span: string): number | undefined {
  let totalMs = 0;
  for (const [, number = '', unit = ''] of span.matchAll(/(\d+(?:\.\d+)?)\s*([a-z]+)/gi)) {
    const name = unit.toLowerCase();
    totalMs += Number(number) * (unitMs[name.startsWith('ms') || name.startsWith('mil') ? 'ms' : (name[0] ?? '')] ?? 0);
  }
  return usable(totalMs);
}

/** Returns the milliseconds until a time as headers write it: a date, a Unix time, a span or seconds. */
export function waitUntil(value: string | undefined, now: number): number | undefined {
  return toMs(value, 'when', now);
}

/** Returns the milliseconds that a value of this form means from `now` on; undefined for none, and for a time in the
 * past. */
export function toMs(value: unknown, form: WaitForm, now: number): number | undefined {
  if (isRecord(value) && form === 'span')
    return usable(Number(value.seconds ?? 0) * 1000 + Number(value.nanos ?? 0) / 1e6);
  if (typeof value !== 'string' && typeof value !== 'number') return undefined;
  const text = String(value).trim();
  if (/^\d+(?:\.\d+)?$/.test(text)) return usable(numberMs(Number(text), form, now));
  return form === 'span' || form === 'when' ? textMs(text, form, now) : undefined;
}

function textMs(text: string, form: 'span' | 'when', now: number): number | undefined {
  if (/^(?:\d+(?:\.\d+)?(?:ms|[smhd]))+$/i.test(text)) return spanMs(text);
  return form === 'when' && /[a-z]{3}|\d{4}-\d\d-\d\dT/i.test(text) ? usable(Date.parse(text) - now) : undefined;
}

/** Returns a number as a wait in milliseconds. A large one is a point in time: Unix seconds from 1e9, Unix milliseconds
 * from 1e12. */
function numberMs(number: number, form: WaitForm, now: number): number {
  if (form === 'milliseconds') return number;
  if (form === 'when' && number >= 1e12) return number - now;
  if (form === 'when' && number >= 1e9) return number * 1000 - now;
  return number * 1000;
}

function usable(waitMs: number): number | undefined {
  return waitMs > 0 && Number.isFinite(waitMs) ? Math.ceil(waitMs) : undefined;
}

/** Returns the value of a text that is a JSON object or list; undefined for any other text. */
export function parseJsonText(text: string): unknown {
  try {
    return /^\s*[[{]/.test(text) ? parseJson(text) : undefined;
  } catch {
    return undefined;
  }
}
