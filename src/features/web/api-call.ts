import { isRecord } from '../../kernel/core/json.js';
import { headBytes } from '../../kernel/core/text.js';
import type { ArgumentProblem, Judged, ToolContext, ToolOutcome } from '../../kernel/core/tool.js';
import {
  type DefinedTool,
  defineTool,
  failed,
  type FromSchema,
  outOfBounds,
  succeeded,
} from '../../kernel/tools/define-tool.js';
import { maxUrlChars, siteOf, targetOf } from './addresses.js';
import { addressProblem, defaultTimeoutMs, inTime, refused } from './fetch-tool.js';
import type { Requester, WebAnswer, WebRequest } from './guarded-request.js';
import { clean, decoded } from './fetch-page.js';

/** An entry of `web.api.allow`: which requests need no yes, and the secret that they are sent with. */
export interface ApiRule {
  /** An address in which `*` matches part of a segment of the path and `**` any rest. */
  readonly url: string;
  readonly methods?: readonly string[];
  readonly auth?: {
    readonly header: string;
    /** The variable that holds the secret. */
    readonly env: string;
    readonly prefix?: string;
  };
}

export interface ApiCallOptions {
  readonly request: Requester;
  readonly rules: readonly ApiRule[];
  /** `web.allow_local`. */
  readonly allowLocal: readonly string[];
  readonly modelOutputBytes: number;
  readonly env: Readonly<Record<string, string | undefined>>;
}

const schema = {
  type: 'object',
  properties: {
    url: { type: 'string' },
    method: { enum: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] },
    headers: { type: 'object', additionalProperties: { type: 'string' } },
    body: { type: ['object', 'string'] },
  },
  required: ['url'],
  additionalProperties: false,
} as const;

type ApiArgs = FromSchema<typeof schema>;

const maxHeaders = 32;
const maxAnswerBytes = 5_000_000;
const maxBodyBytes = 1024 * 1024;

export function apiCallTool(options: ApiCallOptions): DefinedTool {
  return defineTool({
    name: 'api_call',
    effect: 'network',
    untrusted: true,
    limits: { timeout_ms: defaultTimeoutMs, rate_per_min: 30 },
    description: 'Make HTTP API request. Credentials are added.',
    schema,
    check: (args) =>
      outOfBounds(args, { url: [1, maxUrlChars] }) ??
      addressProblem(args.url) ??
      headerProblem(args, options.rules) ??
      bodyProblem(args),
    judge: (args) => judgeCall(args, options),
    run: (args, ctx) => call(args, ctx, options),
  });
}

function judgeCall({ url: text, method = 'GET' }: ApiArgs, { rules, allowLocal }: ApiCallOptions): Judged {
  const url = new URL(text);
  const target = targetOf(url, allowLocal);
  if (target.kind === 'local') return { risk: 'dangerous', reasons: [target.reason], everyMode: true };
  if (target.kind !== 'public') return { risk: 'dangerous', reasons: [target.reason] };
  if (ruleFor(url, method, rules) === undefined)
    return { risk: 'dangerous', reasons: [`${method} ${siteOf(url)} is not in web.api.allow`] };
  const reads = method === 'GET' || method === 'HEAD';
  return { risk: reads ? 'mutating' : 'dangerous', reasons: [`api_call sends ${method} to ${siteOf(url)}`] };
}

async function call(args: ApiArgs, ctx: ToolContext, options: ApiCallOptions): Promise<ToolOutcome> {
  const { method = 'GET' } = args;
  const url = new URL(args.url);
  const { auth } = ruleFor(url, method, options.rules) ?? {};
  const secret = auth === undefined ? '' : (options.env[auth.env] ?? '').trim();
  if (auth && secret === '')
    return failed('execution_failed', `The variable ${auth.env} is not set; the user must set it.`);
  const signature = auth ? { [auth.header.toLowerCase()]: `${auth.prefix ?? ''}${secret}` } : {};
  try {
    const allowsLocal = options.allowLocal.includes(siteOf(url)) || targetOf(url).kind === 'local';
    const request = { ...requestOf(args), maxBytes: maxAnswerBytes, allowsLocal };
    const headers = { ...request.headers, ...signature };
    const answer = await inTime(ctx, url, (signal) => options.request(url, { ...request, headers, signal }));
    return await answerOutcome(`${method} ${url.host}: ${answer.status}`, answer, ctx, options);
  } catch (error) {
    return await refused(error, ctx, url);
  }
}

function requestOf({ method = 'GET', headers = {}, body }: ApiArgs): Pick<WebRequest, 'method' | 'headers' | 'body'> {
  const given = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value] as const);
  const own = {
    accept: 'application/json, */*;q=0.5',
    'accept-encoding': 'gzip, deflate, br',
    'user-agent': 'agent-shell',
    ...(isRecord(body) ? { 'content-type': 'application/json' } : {}),
  };
  const sent = typeof body === 'string' ? body : JSON.stringify(body);
  return { method, headers: { ...own, ...Object.fromEntries(given) }, ...(sent === undefined ? {} : { body: sent }) };
}

/** An answer of any status is a result, as exit codes are. */
async function answerOutcome(
  summary: string,
  { status, headers, body, cut }: WebAnswer,
  ctx: ToolContext,
  { modelOutputBytes }: ApiCallOptions,
): Promise<ToolOutcome> {
  const type = clean(headers['content-type'] ?? '').slice(0, 100);
  const { location } = headers;
  const text = clean(await decoded(body, type, 'text'));
  const output = headBytes(text, Math.min(ctx.limits.maxOutputBytes, Math.floor((modelOutputBytes * 15) / 16)));
  return succeeded(summary, {
    output,
    status,
    content_type: type,
    bytes: body.length,
    ...(location === undefined ? {} : { location: clean(location).slice(0, maxUrlChars) }),
    ...(output.length < text.length || cut ? { truncated: true, total_chars: text.length } : {}),
    untrusted: true,
  });
}

/** Returns the first entry that names this address and method; entries without methods are for GET. */
function ruleFor(url: URL, method: string, rules: readonly ApiRule[]): ApiRule | undefined {
  return rules.find(({ url: pattern, methods = ['GET'] }) => methods.includes(method) && isNamed(url, pattern));
}

/** An entry names whole hosts: its stars stand for parts of a path alone. A path that hides a slash is in no entry. */
function isNamed(url: URL, pattern: string): boolean {
  const [, origin = '', path = ''] = /^(https?:\/\/[^/?#*]+)(\/.*)?$/i.exec(pattern) ?? [];
  if (origin === '' || !URL.canParse(origin) || new URL(origin).origin !== url.origin) return false;
  if (/%(?:2f|5c|2e|00)/i.test(url.pathname)) return false;
  const asked = path.includes('?') ? `${url.pathname}${url.search}` : url.pathname;
  return matches(asked, path === '' ? '/' : path);
}

/** Linear in the length of both: after a star only the nearest place counts. */
function matches(text: string, pattern: string): boolean {
  const [head = '', ...parts] = pattern.split(/(\*+)/);
  if (!text.startsWith(head)) return false;
  let at = head.length;
  for (let index = 0; index < parts.length; index += 2) {
    const crosses = (parts[index] ?? '').length > 1;
    const literal = parts[index + 1] ?? '';
    const isLast = index + 2 >= parts.length;
    const found = isLast ? text.length - literal.length : text.indexOf(literal, at);
    if (found < at || !text.startsWith(literal, found)) return false;
    if (!crosses && text.slice(at, found).includes('/')) return false;
    at = found + literal.length;
  }
  return at === text.length;
}

const ownHeaders = new Set([
  'authorization',
  'cookie',
  'host',
  'connection',
  'content-length',
  'transfer-encoding',
  'upgrade',
  'expect',
  'te',
  'trailer',
  'keep-alive',
]);

function headerProblem({ url, headers }: ApiArgs, rules: readonly ApiRule[]): ArgumentProblem | null {
  const signed = rules.filter((rule) => isNamed(new URL(url), rule.url)).flatMap(({ auth }) => auth?.header ?? []);
  const kept = new Set([...ownHeaders, ...signed.map((name) => name.toLowerCase())]);
  if (Object.keys(headers ?? {}).length > maxHeaders)
    return { argument: 'headers', problem: 'too many', expected: `at most ${maxHeaders}` };
  for (const [name, value] of Object.entries(headers ?? {})) {
    const argument = `headers/${name.slice(0, 60)}`;
    if (kept.has(name.toLowerCase()) || /^proxy-/i.test(name))
      return {
        argument,
        problem: 'is set by the program',
        expected: 'no such header; credentials belong in the settings',
      };
    if (!/^[\w!#$%&'*+.^`|~-]{1,100}$/.test(name))
      return { argument, problem: 'is not a valid header name', expected: 'letters, digits and -' };
    if (!/^[\t\u0020-\u007e]{0,4096}$/.test(value))
      return { argument, problem: 'is not a valid value', expected: 'at most 4,096 characters of ASCII on one line' };
  }
  return null;
}

function bodyProblem({ method = 'GET', body }: ApiArgs): ArgumentProblem | null {
  if (body === undefined) return null;
  if (method === 'GET' || method === 'HEAD')
    return { argument: 'body', problem: `is not sent with ${method}`, expected: 'another method, or no body' };
  const bytes = Buffer.byteLength(typeof body === 'string' ? body : JSON.stringify(body));
  return bytes > maxBodyBytes
    ? { argument: 'body', problem: `${bytes} bytes`, expected: `at most ${maxBodyBytes} bytes` }
    : null;
}
