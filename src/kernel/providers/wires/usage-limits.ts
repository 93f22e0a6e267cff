import { largestOf } from '../../core/lists.js';
import { isRecord } from '../../core/json.js';
import { usedUpWaitMs } from './rate-limits.js';
import { type AnswerHeaders, askedWaitMs, parseJsonText, toMs, type WaitForm } from './waits.js';

/** A usage limit of a plan, a day or a week that an answer reports. It takes minutes to days, so the same request is not
 * sent again meanwhile. */
export interface UsageLimit {
  /** Milliseconds until it ends; null: the answer does not say. */
  readonly waitMs: number | null;
}

/** The place in an answer that says when a limit ends. `header` also means headers that a gateway writes into the body. */
type LimitEnd =
  | { readonly in: 'header' | 'field'; readonly name: string; readonly form: WaitForm }
  /** The first group of `pattern` is a date, a Unix time or a span. `zone`: that of a date without one. */
  | { readonly in: 'text'; readonly pattern: RegExp; readonly zone?: string }
  /** Headers of windows that are used up. */
  | { readonly in: 'used windows' }
  /** The next midnight in `zone`: the answer does not say it, the documentation of the vendor does. */
  | { readonly in: 'midnight'; readonly zone: string }
  /** Whatever a rate limit says. */
  | { readonly in: 'rate limit' };

/** One form in which a vendor reports that a usage limit is reached. */
interface LimitForm {
  readonly vendor: string;
  /** Read 2026-11. */
  readonly source: string;
  /** The form is meant where this header has such a value, or the body such a text. */
  readonly header?: { readonly name: string; readonly value: RegExp };
  readonly text?: RegExp;
  /** Not where the body has this text, or the answer this header. */
  readonly unless?: RegExp;
  readonly unlessHeader?: string;
  /** The vendor uses the form for short limits, too: one that ends soon is retried like any rate limit. */
  readonly mayBeShort?: true;
  /** The first that is there counts. */
  readonly ends: readonly LimitEnd[];
}

const rateLimit: LimitEnd = { in: 'rate limit' };

/** The first form that fits counts. A rate limit that fits none is a usage limit where its wait is longer than
 * `http.max_retry_after_ms`: that covers what Groq, Azure OpenAI, the OpenAI API, Cerebras and GitHub Models say of their
 * limits of a day. */
export const limitForms: readonly LimitForm[] = [
  {
    vendor: 'Anthropic, plans',
    source: 'anthropics/claude-code#92418, manaflow-ai/subrouter#24: headers of Claude plans',
    header: { name: 'anthropic-ratelimit-unified-status', value: /^rejected$/i },
    ends: [
      { in: 'header', name: 'anthropic-ratelimit-unified-reset', form: 'when' },
      { in: 'used windows' },
      rateLimit,
    ],
  },
  {
    vendor: 'Anthropic, plans, without a status',
    source: 'anthropics/claude-code#9046',
    header: { name: 'anthropic-ratelimit-unified-reset', value: /./ },
    unlessHeader: 'anthropic-ratelimit-unified-status',
    ends: [{ in: 'header', name: 'anthropic-ratelimit-unified-reset', form: 'when' }],
  },
  {
    vendor: 'Anthropic, plans through gateways',
    source: 'anthropics/claude-code#2087: "Claude AI usage limit reached|1749924000"',
    text: /usage limit reached\|\d{10}/i,
    ends: [{ in: 'text', pattern: /usage limit reached\|(\d{10,13})/i }],
  },
  {
    vendor: 'OpenAI, ChatGPT plans (Codex)',
    source: 'router-for-me/CLIProxyAPI#1666, earendil-works/pi#4172, icebear0828/codex-proxy#65',
    text: /usage_limit_reached/,
    ends: [
      { in: 'field', name: 'resets_at', form: 'when' },
      { in: 'field', name: 'resets_in_seconds', form: 'seconds' },
      { in: 'used windows' },
      rateLimit,
    ],
  },
  {
    vendor: 'Google, Gemini Code Assist',
    source: 'google-gemini/gemini-cli#29425',
    text: /QUOTA_EXHAUSTED/,
    ends: [
      { in: 'field', name: 'quotaResetTimeStamp', form: 'when' },
      { in: 'field', name: 'quotaResetDelay', form: 'span' },
      rateLimit,
    ],
  },
  {
    vendor: 'Google, Gemini API, limits of a day',
    source:
      'ai.google.dev/gemini-api/docs/rate-limits: "reset at midnight Pacific time"; retryDelay is that of the minute',
    text: /"quotaId"\s*:\s*"[^"]*PerDay|requests_per_model_per_day/,
    // A model that the plan does not have at all has the limit 0.
    unless: /limit:\s*0\b|"quotaValue"\s*:\s*"0"/,
    ends: [{ in: 'midnight', zone: 'America/Los_Angeles' }],
  },
  {
    vendor: 'Google, limits of a day for each user',
    source: 'google-gemini/gemini-cli#2711: no time',
    text: /per day per user/i,
    ends: [rateLimit],
  },
  {
    vendor: 'OpenRouter, free models',
    source: 'openrouter.ai/docs/api-reference/limits, Gitlawb/openclaude#936: X-RateLimit-Reset in metadata.headers',
    text: /free-models-per-day|openrouter_free_tier_daily/,
    ends: [{ in: 'header', name: 'x-ratelimit-reset', form: 'when' }, rateLimit],
  },
  {
    vendor: 'Z.AI and Zhipu, GLM Coding Plan',
    source: 'docs.z.ai/api-reference/api-code (1308, 1310), can1357/oh-my-pi#11014: the time is that of Beijing',
    text: /"code"\s*:\s*"?13(?:08|10)\b|\[13(?:08|10)\]|使用上限/,
    ends: [{ in: 'text', pattern: /(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)(?!\S*Z)/, zone: '+08:00' }, rateLimit],
  },
  {
    vendor: 'MiniMax, Token Plan',
    source: 'MiniMax-AI/MiniMax-M2.7#36',
    text: /usage limit exceeded|"status_code"\s*:\s*2056/i,
    ends: [{ in: 'text', pattern: /resets at (\d{4}-\d\d-\d\dT[\d:.]+Z)/ }, rateLimit],
  },
  {
    vendor: 'OpenCode, Zen and Go',
    source: 'anomalyco/opencode#42977, Gitlawb/openclaude#1749: retry-after',
    text: /\b(?:Free|Go|Black)?UsageLimitError\b/,
    ends: [rateLimit],
  },
  {
    vendor: 'Moonshot, Kimi Code',
    source: 'openclaw/openclaw#142656: status 403, no time',
    text: /access_terminated_error(?=[\s\S]*(?:usage limit|quota))|(?:usage limit|quota)[\s\S]*access_terminated_error/i,
    unless: /suspended|banned|violat/i,
    ends: [rateLimit],
  },
  {
    vendor: 'Ollama Cloud',
    source: 'continuedev/continue#11444: no time',
    text: /reached your (?:session|hourly|daily|weekly|monthly) usage limit/i,
    ends: [rateLimit],
  },
  {
    vendor: 'GitHub Copilot',
    source: 'microsoft/vscode#325598, github/copilot-cli#2696, #2828: a date without a zone is no time',
    text: /user_(?:weekly|global|model)_rate_limited|(?:weekly|session) (?:rate )?limits?\b/i,
    mayBeShort: true,
    ends: [rateLimit],
  },
  {
    vendor: 'Amazon Bedrock',
    source: 'anthropics/claude-code#236, Ivy-Interactive/Ivy-Tendril#1756: no time',
    text: /too many tokens per day/i,
    ends: [rateLimit],
  },
];

/** Statuses of a used-up limit; an error inside a stream has none. */
const limitStatuses: ReadonlySet<number | undefined> = new Set([402, 403, 429, undefined]);

/** An answer that was refused. `status`: undefined for an error inside a stream. */
export interface RefusedAnswer {
  readonly status: number | undefined;
  readonly headers: AnswerHeaders;
  readonly body: string;
}

/** Returns the usage limit that an answer reports; null where it reports none, or one that is over soon and may be
 * retried. `shortMs`: the longest wait of such a one. */
export function usageLimitIn(answer: RefusedAnswer, now: number, shortMs: number): UsageLimit | null {
  const form = limitStatuses.has(answer.status) ? limitForms.find((one) => fits(one, answer)) : undefined;
  if (form === undefined) return null;
  const waitMs = endOf(form, answer, now);
  return form.mayBeShort && waitMs !== null && waitMs <= shortMs ? null : { waitMs };
}

/** Returns true where the body alone reports a usage limit, whatever its status says. */
export function namesUsageLimit(status: number | undefined, body: string): boolean {
  return (
    limitStatuses.has(status) && limitForms.some((form) => form.text !== undefined && fits(form, { headers: {}, body }))
  );
}

function fits(
  { header, text, unless, unlessHeader }: LimitForm,
  { headers, body }: Pick<RefusedAnswer, 'headers' | 'body'>,
): boolean {
  if (unless?.test(body) || (unlessHeader !== undefined && headers[unlessHeader] !== undefined)) return false;
  return (header !== undefined && header.value.test(headers[header.name] ?? '')) || text?.test(body) === true;
}

/** Clocks that differ more than this from that of the server are not trusted with its points in time. */
const mostSkewMs = 60_000;

/** A limit whose time is over and that still refuses is asked about again after this. */
const overdueMs = 30_000;
const longestOverdueMs = 24 * 3_600_000;

function endOf({ ends }: LimitForm, answer: RefusedAnswer, now: number): number | null {
  const serverNow = Date.parse(answer.headers.date ?? '');
  const at = Math.abs(serverNow - now) > mostSkewMs ? serverNow : now;
  for (const end of ends) {
    const waitMs = waitAt(end, answer, at);
    if (waitMs !== undefined) return waitMs;
    if (waitAt(end, answer, at - longestOverdueMs) !== undefined && end.in !== 'rate limit') return overdueMs;
  }
  return null;
}

function waitAt(end: LimitEnd, { headers, body }: RefusedAnswer, now: number): number | undefined {
  switch (end.in) {
    case 'header':
      return toMs(headers[end.name] ?? fieldIn(body, end.name), end.form, now);
    case 'field':
      return toMs(fieldIn(body, end.name), end.form, now);
    case 'text': {
      const found = end.pattern.exec(body)?.[1];
      return toMs(end.zone === undefined ? found : found?.replace(' ', 'T').concat(end.zone), 'when', now);
    }
    case 'used windows': {
      const inBody = fieldIn(body, 'headers');
      return largest([usedUpWaitMs(headers, now), usedUpWaitMs(isRecord(inBody) ? lowerCase(inBody) : {}, now)]);
    }
    case 'midnight':
      return nextMidnight(end.zone, now) - now;
    case 'rate limit':
      return askedWaitMs(headers, body, { now, isRateLimit: true });
    default:
      return end satisfies never;
  }
}

function largest(waits: readonly (number | undefined)[]): number | undefined {
  const known = waits.filter((wait) => wait !== undefined);
  return known.length === 0 ? undefined : largestOf(known);
}

function lowerCase(headers: Readonly<Record<string, unknown>>): AnswerHeaders {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value)]));
}

const maxDepth = 8;

/** Returns the value of a field anywhere in a body. Names of headers may have capitals. */
function fieldIn(body: string, name: string): unknown {
  return findField(parseJsonText(body), name, 0);
}

function findField(value: unknown, name: string, depth: number): unknown {
  if (depth > maxDepth) return undefined;
  if (typeof value === 'string') {
    const inner = parseJsonText(value);
    return inner === undefined ? undefined : findField(inner, name, depth + 1);
  }
  if (!isRecord(value) && !Array.isArray(value)) return undefined;
  for (const [key, inner] of Object.entries(value)) {
    if (key === name || key.toLowerCase() === name) return inner;
    const found = findField(inner, name, depth + 1);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Returns the next midnight in a time zone, in Unix milliseconds. */
function nextMidnight(zone: string, now: number): number {
  const clock = new Intl.DateTimeFormat('en-GB', {
    timeZone: zone,
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    hourCycle: 'h23',
  });
  const sinceMidnightMs = (at: number): number => {
    const [hours = 0, minutes = 0, seconds = 0] = clock.format(at).split(':').map(Number);
    return ((hours * 60 + minutes) * 60 + seconds) * 1000 + (at % 1000);
  };
  // A day with a change of the clock has 23 or 25 hours.
  const guess = now - sinceMidnightMs(now) + 26 * 3_600_000;
  return guess - sinceMidnightMs(guess);
}
