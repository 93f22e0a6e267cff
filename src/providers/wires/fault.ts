import { parseJson } from '../../core/json.js';
import { isRecord } from '../../core/json.js';
import type { Fault, FaultCode } from '../../core/provider.js';
import { replaceUnseen } from '../../core/text.js';

const maxMessage = 300;

/** What an error body says, in any vendor's shape. */
interface ErrorFacts {
  readonly status?: number;
  readonly type: string;
  readonly code: string;
  readonly message: string;
  /** The call of the model that the server could not read (Groq). */
  readonly failedGeneration?: unknown;
}

/** Reads the body of an answer that is not 2xx, or of a 200 without an answer. The message is the vendor's own sentence
 * in one line of at most 300 characters, with keys masked. Source: contracts 5 and 8. */
export function httpFault(status: number, body: string): Fault {
  const facts = { ...readBody(body, status), status };
  if (status === 407) return { ...proxyFault, status };
  return {
    ...fault(classify(facts), facts.message || `The server answered ${status}.`),
    status,
    ...refusedCall(facts),
  };
}

/** Reads an error object inside a stream or a 200 answer. */
export function streamFault(error: unknown): { readonly fault: Fault; readonly retryable: boolean } {
  const read = readError(error, 0);
  const status = statusOf(read.code);
  const facts = status === undefined ? read : { ...read, status };
  const code = classify(facts);
  const made = fault(
    code,
    facts.message || facts.type || facts.code || 'The provider reported an error without saying which.',
  );
  return {
    fault: { ...made, ...(status === undefined ? {} : { status }), ...refusedCall(facts) },
    retryable: code === 'network' || code === 'rate_limited',
  };
}

/** Source: Groq's documentation of error codes, `tool_use_failed` (read 2026-11). */
function refusedCall({ code, failedGeneration }: ErrorFacts): Pick<Fault, 'refusedCall'> {
  return code === 'tool_use_failed'
    ? { refusedCall: typeof failedGeneration === 'string' ? failedGeneration : '' }
    : {};
}

/** Makes a fault with a message that is safe to show. */
export function fault(code: FaultCode, message: string): Fault {
  const hint = hints[code];
  return { code, message: quoteServer(message, [], maxMessage), ...(hint === undefined ? {} : { hint }) };
}

/** A proxy on the way to the server wants a user name and a password. */
export const proxyFault: Fault = {
  code: 'network',
  message: 'The proxy asks for a user name and a password (407).',
  hint: 'Put them into the address of the proxy: HTTPS_PROXY=http://user:password@host:port.',
};

const hints: { readonly [K in FaultCode]?: string } = {
  auth: 'Check the API key of this provider.',
  quota: 'Add credit at the provider, or choose another model.',
  context_overflow: 'Start a new session, or choose a model with a larger context window.',
};

function readBody(body: string, status: number): ErrorFacts {
  const text = body.trim();
  try {
    return readError(parseJson(text), 0);
  } catch {
    if (!text.startsWith('<')) return { type: '', code: '', message: text };
    const title = /<title[^>]{0,200}>([^<]*)/i.exec(text)?.[1]?.trim() ?? '';
    return {
      type: '',
      code: '',
      message: `The server answered ${status} with a web page${title === '' ? '.' : `: ${title}`}`,
    };
  }
}

/** Reads `{error: {…}}`, `{error: "…"}`, `[{error}]`, `{message}`, `{detail}` and the wrappers of gateways. */
function readError(value: unknown, depth: number): ErrorFacts {
  if (typeof value === 'string') return { type: '', code: '', message: value };
  if (Array.isArray(value)) return readError(value[0], depth + 1);
  if (!isRecord(value) || depth > 4) return { type: '', code: '', message: '' };
  if (isRecord(value.error) || (typeof value.error === 'string' && typeof value.message !== 'string'))
    return readError(value.error, depth + 1);
  return {
    type: word(value.type) || word(value.status) || word(value.error),
    code: word(value.code),
    message: [sentence(value), rawOf(value, depth)].filter((part) => part !== '').join(': '),
    failedGeneration: value.failed_generation,
  };
}

function sentence(value: Readonly<Record<string, unknown>>): string {
  if (typeof value.message === 'string') return value.message;
  if (typeof value.msg === 'string') return value.msg;
  if (value.detail === undefined || value.detail === null) return '';
  return typeof value.detail === 'string' ? value.detail : JSON.stringify(value.detail);
}

/** Returns the upstream's own message, which OpenRouter puts into `metadata.raw`. */
function rawOf(value: Readonly<Record<string, unknown>>, depth: number): string {
  const raw = isRecord(value.metadata) ? value.metadata.raw : undefined;
  if (typeof raw !== 'string') return isRecord(raw) ? readError(raw, depth + 1).message : '';
  try {
    return readError(parseJson(raw), depth + 1).message;
  } catch {
    return raw;
  }
}

function word(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}

function statusOf(code: string): number | undefined {
  return /^[45]\d\d$/.test(code) ? Number(code) : undefined;
}

function classify(facts: ErrorFacts): FaultCode {
  const { status } = facts;
  const text = `${facts.type} ${facts.code} ${facts.message}`;
  if (status === 413 || (status !== 429 && status !== 401 && status !== 402 && isOverflow(text)))
    return 'context_overflow';
  if (status === 402 || (status !== 401 && isQuota(text))) return 'quota';
  return status === undefined ? byWord(text) : byStatus(status);
}

function byStatus(status: number): FaultCode {
  if (status === 401 || status === 403) return 'auth';
  if (status === 429) return 'rate_limited';
  if (status === 408 || status === 409 || status === 425 || status >= 500) return 'network';
  return status >= 400 ? 'bad_request' : 'protocol';
}

/** Classifies an error inside a stream, which has no status, by its type or code. An unknown one counts as a network
 * failure. */
function byWord(text: string): FaultCode {
  if (isRateLimit(text)) return 'rate_limited';
  if (/authentication_error|permission_error|invalid_api_key|unauthori[sz]ed|forbidden/i.test(text)) return 'auth';
  if (/invalid_request|invalid_argument|tool_use_failed|not_found|invalid_prompt|bad_request|unsupported/i.test(text))
    return 'bad_request';
  return 'network';
}

/** How vendors say that a request is longer than the context window, from their error bodies; most have status 400. */
const overflow = new RegExp(
  [
    'context_length_exceeded',
    'context_window_exceeded',
    'exceed_context_size',
    'request_too_large',
    'string_above_max_length',
    'maximum context length',
    'max(?:imum)? context (?:length|size|window)',
    "exceeds? the (?:available |model'?s? )?context",
    'context (?:window|length|limit)[^.]{0,40}exceed',
    'exceed[^.]{0,40}context (?:window|length|limit|size)',
    'prompt is too long',
    'prompt too long',
    'input is too long',
    'input is too large',
    'input (?:token count|length)[^.]{0,40}exceed',
    'input tokens? exceed',
    'maximum prompt length is',
    'exceeded model token limit',
    'too large for model with',
    'reduce the length of',
    'prompt exceeds max length',
    'range of input length should be',
    'exceed max message tokens',
    'greater than the context length',
    'when context the overflows',
    'too[ _]many[ _](?:(?:input|prompt)[ _])?tokens',
    'input token count',
    'max_new_tokens.{0,20}must be <=',
  ].join('|'),
  'i',
);

const quota = new RegExp(
  [
    'insufficient[_ ]quota',
    'exceeded_current_quota',
    'exceeded your current quota',
    'billing_(?:hard_limit|error|not_active)',
    'insufficient (?:balance|credit|fund)',
    'insufficient_(?:balance|credits?|funds)',
    'credit balance is too low',
    'requires more credits',
    'key limit exceeded',
    'out of credits',
    'payment required',
    'spending limit',
  ].join('|'),
  'i',
);

/** A message about a quota that also says when to retry is a rate limit (Google). */
const comesBack = /retry in \d|retrydelay|per[ _-]?minute/i;

function isOverflow(text: string): boolean {
  return overflow.test(text) && !/tokens? per (?:min|day)/i.test(text);
}

function isQuota(text: string): boolean {
  return quota.test(text) && !comesBack.test(text);
}

function isRateLimit(text: string): boolean {
  return /rate[_ -]?limit|too many requests|resource_exhausted|throttl/i.test(text);
}

const mask = '[masked]';

/** How keys look in the answers of servers. The first group, where there is one, stays. */
const keyForms: readonly RegExp[] = [
  /\b(bearer\s+)[^\s"',;]+/gi,
  /\b((?:x-)?api[ _-]?key(?:\s+provided)?["']?\s*[:=]\s*["']?)[^\s"',;)}]+/gi,
  /\b(?:sk|pk|rk|gsk|xai|pplx|hf|ghp|gho|github_pat|r8|nvapi|csk|tgp|fw|fpk)[-_][\w*.-]{6,}/gi,
  /\bAIza[\w-]{10,}/g,
  /\bAKIA[0-9A-Z]{12,}/g,
  /\beyJ[\w-]{10,}\.[\w-]+(?:\.[\w-]*)?/g,
  /\b(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z0-9]{32,}\b/g,
];

/** Replaces the values of `keys`, and everything that looks like a key, with `[masked]`. In doubt it masks. */
export function maskKeys(text: string, keys: readonly (string | null)[] = []): string {
  let masked = text;
  for (const key of keys) if (key !== null && key.length >= 4) masked = masked.replaceAll(key, mask);
  return keyForms.reduce(
    (rest, form) => rest.replace(form, (_whole, kept: unknown) => (typeof kept === 'string' ? kept + mask : mask)),
    masked,
  );
}

/** Makes a server's message safe to show: keys masked, one line, no control or direction characters, well-formed, at
 * most `maxLength` characters. */
export function quoteServer(text: string, keys: readonly (string | null)[], maxLength = 300): string {
  const line = replaceUnseen(maskKeys(text.slice(0, maxLength * 8), keys), () => ' ')
    .replace(/ +/g, ' ')
    .trim();
  return (line.length > maxLength ? `${line.slice(0, maxLength - 1)}…` : line).toWellFormed();
}
