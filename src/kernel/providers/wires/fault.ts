import { parseJson } from '../../core/json.js';
import { isRecord } from '../../core/json.js';
import type { Fault, FaultCode } from '../../core/provider.js';
import { replaceUnseen } from '../../core/text.js';
import { isOverflow } from './overflow.js';
import { namesUsageLimit } from './usage-limits.js';
import { waitInText } from './waits.js';

const maxMessage = 300;
/** The most characters of an error that are searched for a wait. */
const maxSaid = 65_536;
/** Gateways wrap errors in errors, some of them as texts. */
const maxNested = 8;

/** Facts of an error body, from any vendor's shape. */
interface ErrorFacts {
  readonly status?: number;
  readonly type: string;
  readonly code: string;
  readonly message: string;
  /** The call of the model that the server could not read (Groq). */
  readonly failedGeneration?: unknown;
  /** True where it says when to try again. */
  readonly comesBack?: boolean;
  /** True for a usage limit of a plan or a day, whatever words and status the vendor uses for it. */
  readonly isUsageLimit?: boolean;
}

/** Reads the body of an answer that is not 2xx, or of a 200 without an answer. The message is the vendor's own sentence
 * in one line of at most 300 characters, with keys masked. Source: contracts 5 and 8. */
export function httpFault(status: number, body: string): Fault {
  const isUsageLimit = namesUsageLimit(status, body);
  const facts = { ...readBody(body, status), status, comesBack: waitInText(body, 0) !== undefined, isUsageLimit };
  if (status === 407) return { ...proxyFault, status };
  return {
    ...fault(classify(facts), facts.message || `The server answered ${status}.`),
    status,
    ...refusedCall(facts),
  };
}

/** Reads what a server says inside a stream or a 200 answer instead of an answer. `said` is its text, which may name a
 * wait. */
export function streamFault(error: unknown): {
  readonly fault: Fault;
  readonly retryable: boolean;
  readonly said: string;
} {
  const said = (typeof error === 'string' ? error : JSON.stringify(error ?? null)).slice(0, maxSaid);
  const read = readError(error, 0);
  const status = statusOf(read.code);
  const comesBack = waitInText(said, 0) !== undefined;
  const isUsageLimit = namesUsageLimit(status, said);
  const facts = { ...read, comesBack, isUsageLimit, ...(status === undefined ? {} : { status }) };
  const code = classify(facts);
  const made = fault(
    code,
    facts.message || facts.type || facts.code || 'The provider reported an error without a message.',
  );
  return {
    fault: { ...made, ...(status === undefined ? {} : { status }), ...refusedCall(facts) },
    retryable: code === 'network' || code === 'rate_limited',
    said,
  };
}

/** Reads the call that the server could not read. Source: Groq's documentation of error codes, `tool_use_failed` (read
 * 2026-11). */
function refusedCall({ code, failedGeneration }: ErrorFacts): Pick<Fault, 'refusedCall'> {
  return code === 'tool_use_failed'
    ? { refusedCall: typeof failedGeneration === 'string' ? failedGeneration : '' }
    : {};
}

/** Returns true for a fault that says that the key itself is wrong or has expired, rather than that it may not do this.
 * Google says so with the status 400. */
export function refusesKey({ code, status, message }: Fault): boolean {
  if (code === 'auth') return status !== 403 || /api.?key/i.test(message);
  return code === 'bad_request' && /api.?key (?:not valid|is invalid|expired|not found)/i.test(message);
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
  const facts = readText(body, 0);
  if (!body.trim().startsWith('<')) return facts;
  return { ...facts, message: facts.message.replace('answered with', `answered ${status} with`) };
}

/** The fields in which servers and gateways put what went wrong, most exact first. */
const failureFields = [
  'message',
  'msg',
  'detail',
  'error_message',
  'errorMessage',
  'error_msg',
  'error_description',
  'status_msg',
  'faultstring',
] as const;

/** Beside an error object these are a sentence too; alone they can mean anything. */
const sentenceFields = [...failureFields, 'description', 'reason', 'title'] as const;

/** The fields that hold the error of an answer. */
const errorFields = ['error', 'errors', 'err', 'fault', 'base_resp', 'exception'] as const;

/** The fields that hold a part of an answer. */
const answerFields = ['choices', 'content', 'output', 'response', 'delta', 'item'] as const;

/** Reads what a server says about a failure, in any vendor's shape: `{error: {…}}`, `{error: "…"}`, `[{error}]`,
 * `{errors: […]}`, `{message}`, `{detail}`, a text, and the wrappers of gateways. */
function readError(value: unknown, depth: number): ErrorFacts {
  if (typeof value === 'string') return readText(value, depth);
  if (Array.isArray(value)) return readError(value[0], depth + 1);
  if (!isRecord(value) || depth > maxNested) return nothing;
  const inner = innerError(value);
  if (inner !== undefined) {
    const facts = readError(inner, depth + 1);
    if (facts.message !== '' || facts.type !== '' || facts.code !== '') return facts;
  }
  return {
    type: word(value.type) || word(value.status) || word(value.error),
    code: word(value.code) || word(value.status_code),
    message: [sentence(value), rawOf(value, depth)].filter((part) => part !== '').join(': '),
    failedGeneration: value.failed_generation,
  };
}

const nothing: ErrorFacts = { type: '', code: '', message: '' };

function readText(text: string, depth: number): ErrorFacts {
  const trimmed = text.trim();
  if (/^[[{"]/.test(trimmed) && depth <= maxNested) {
    try {
      return readError(parseJson(trimmed), depth + 1);
    } catch {
      /* It is a text that begins like JSON. */
    }
  }
  if (!trimmed.startsWith('<')) return { ...nothing, message: trimmed };
  const title = /<title[^>]*>([^<]*)/i.exec(trimmed)?.[1]?.trim() ?? '';
  return { ...nothing, message: `The server answered with a web page${title === '' ? '.' : `: ${title}`}` };
}

/** Returns the error that an answer wraps. An error word beside a sentence (`{error: "Bad Request", message: "…"}`) is
 * only the type of the error. */
function innerError(value: Readonly<Record<string, unknown>>): unknown {
  for (const name of errorFields) {
    const inner = value[name];
    if (isRecord(inner) || (Array.isArray(inner) && inner.length > 0)) return inner;
    if (typeof inner === 'string' && inner.trim() !== '' && sentence(value) === '') return inner;
  }
  return undefined;
}

function sentence(value: Readonly<Record<string, unknown>>): string {
  for (const name of sentenceFields) {
    const said = value[name];
    if (typeof said === 'string' && said.trim() !== '') return said;
    if (name === 'detail' && isRecord(said)) return sentence(said) || JSON.stringify(said);
    if (name === 'detail' && Array.isArray(said)) return said.map(detailOf).join('; ');
  }
  return '';
}

/** Returns an entry of `detail` as pydantic writes it: the place of the field, and what is wrong with it. */
function detailOf(entry: unknown): string {
  if (!isRecord(entry)) return typeof entry === 'string' ? entry : JSON.stringify(entry);
  const place = Array.isArray(entry.loc) ? entry.loc.filter((part) => part !== 'body').join('.') : '';
  const said = word(entry.msg) || word(entry.message);
  return said === '' ? JSON.stringify(entry) : [place, said].filter((part) => part !== '').join(': ');
}

/** Returns true for a JSON value in a stream that reports a failure and is no part of an answer. */
export function isFailure(value: unknown): boolean {
  if (typeof value === 'string') return value.trim() !== '';
  if (Array.isArray(value)) return value.length > 0 && isFailure(value[0]);
  if (!isRecord(value)) return false;
  if (hasError(value)) return true;
  if (value.object === 'error' || value.type === 'error' || value.success === false) return true;
  if (hasAnswer(value)) return false;
  return failureFields.some((name) => saysSomething(value[name])) || /^[45]\d\d$/.test(word(value.code));
}

// Both are asked of each of the thousands of objects in a stream.
function hasError(value: Readonly<Record<string, unknown>>): boolean {
  for (const name of errorFields) if (value[name] !== undefined && isError(value[name])) return true;
  return false;
}

function hasAnswer(value: Readonly<Record<string, unknown>>): boolean {
  for (const name of answerFields) if (holdsSomething(value[name])) return true;
  return false;
}

function holdsSomething(value: unknown): boolean {
  return Array.isArray(value) ? value.length > 0 : isRecord(value);
}

function saysSomething(value: unknown): boolean {
  return (typeof value === 'string' && value.trim() !== '') || (Array.isArray(value) && value.length > 0);
}

/** Returns true for the value of an error field that reports one. `base_resp` of a good answer has the status 0
 * (MiniMax). */
function isError(value: unknown): boolean {
  if (isRecord(value)) return !(word(value.status_code) === '0' || Object.keys(value).length === 0);
  return saysSomething(value) || value === true;
}

/** Returns the upstream's own message, which OpenRouter puts into `metadata.raw`. */
function rawOf(value: Readonly<Record<string, unknown>>, depth: number): string {
  const raw = isRecord(value.metadata) ? value.metadata.raw : undefined;
  return typeof raw === 'string' || isRecord(raw) ? readError(raw, depth + 1).message : '';
}

function word(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}

function statusOf(code: string): number | undefined {
  return /^[45]\d\d$/.test(code) ? Number(code) : undefined;
}

function classify(facts: ErrorFacts): FaultCode {
  return facts.isUsageLimit === true ? 'rate_limited' : classifyOther(facts);
}

function classifyOther(facts: ErrorFacts): FaultCode {
  const { status } = facts;
  const text = `${facts.type} ${facts.code} ${facts.message}`;
  if (![401, 402, 429].includes(status ?? 0) && isOverflow(facts)) return 'context_overflow';
  if (status === 413) return isRateLimit(text) ? 'rate_limited' : 'context_overflow';
  if (status === 402 || (status !== 401 && isQuota(text, facts))) return 'quota';
  if (status === undefined) return byWord(text);
  return status >= 500 && isTemplateError(text) ? 'bad_request' : byStatus(status);
}

/** Returns true where the model's chat template refused the conversation: servers answer 500, and the same request
 * would fail again. Source: llama-server, vLLM, LM Studio and MLX servers with templates of Mistral and Gemma. */
function isTemplateError(text: string): boolean {
  return /jinja|chat template|templateerror|roles must alternate|unexpected role|tool call id was/i.test(text);
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

/** Returns true for a used-up quota. A message about a quota that also says when to retry is a rate limit (Google). */
function isQuota(text: string, facts: ErrorFacts): boolean {
  return quota.test(text) && facts.comesBack !== true && !/per[ _-]?minute/i.test(text);
}

function isRateLimit(text: string): boolean {
  return /rate[_ -]?limit|too many requests|resource_exhausted|throttl|tokens? per (?:min|day|hour)|\bTP[MD]\b/i.test(
    text,
  );
}

const mask = '[masked]';

/** Forms of keys in the answers of servers. The first group, where there is one, stays. */
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
