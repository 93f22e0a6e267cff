import type { OutputEnvelope } from '../../core/envelope.js';
import { replaceUnseen } from '../../core/text.js';
import type { ToolContext, ToolOutcome } from '../../core/tool.js';
import type { FoundPage, SearchAnswer, SearchRequest } from '../../core/provider.js';
import { counted, type DefinedTool, defineTool, failed, succeeded } from '../../tools/define-tool.js';
import { type EngineRequest, type SearchChoice, type SearchEngine, searchEngines } from './search-engines.js';

/** Sends one request, follows no redirect, and rejects where there is no answer. */
export type SendRequest = (request: {
  readonly method: 'GET' | 'POST';
  readonly url: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal: AbortSignal;
}) => Promise<Response>;

export interface WebSearchOptions {
  readonly choice: SearchChoice;
  readonly send: SendRequest;
  /** Unix milliseconds. */
  readonly now: () => number;
}

const usualCount = 5;
const domains = { type: 'array', items: { type: 'string' } } as const;

export function webSearchTool(options: WebSearchOptions): DefinedTool {
  return defineTool({
    name: 'web_search',
    description: 'Search the web for information. Returns relevant results with titles, URLs, and snippets.',
    effect: 'network',
    untrusted: true,
    otherNames: ['search_web'],
    limits: {
      // A model that searches takes longer than a service.
      timeout_ms: options.choice.service === 'native' ? 60_000 : 15_000,
      rate_per_min: 30,
      max_output_bytes: 12_288,
    },
    schema: {
      type: 'object',
      properties: {
        query: { type: 'string' },
        num_results: {
          type: 'integer',
          description: 'Number of results to return (default: 5, max: 10)',
        },
        allowed_domains: domains,
        blocked_domains: domains,
        recency: { enum: ['day', 'week', 'month', 'year'] },
      },
      required: ['query'],
      additionalProperties: false,
    },
    check: (args) => queryProblem(args) ?? domainProblem(args),
    run: async (args, ctx) => {
      const request: SearchRequest = {
        query: args.query,
        count: args.num_results ?? usualCount,
        allowedDomains: (args.allowed_domains ?? []).flatMap((name) => hostOf(name) ?? []),
        blockedDomains: (args.blocked_domains ?? []).flatMap((name) => hostOf(name) ?? []),
        recency: args.recency ?? null,
        signal: ctx.signal,
      };
      const answer = await search(request, options, ctx);
      if (ctx.signal.aborted) return failed('cancelled', 'The search was cancelled before it finished.');
      return answer.ok ? found(answer.pages, request, options.choice.service) : refused(answer);
    },
  });
}

const maxQuery = 400;
const maxDomains = 20;

/** What the schema could say too; here it costs no request anything. */
function queryProblem({ query, num_results: count = 1 }: { readonly query: string; readonly num_results?: number }) {
  const { length } = query.trim();
  if (length === 0 || length > maxQuery)
    return { argument: 'query', problem: `${length} characters`, expected: `1 to ${maxQuery} characters` };
  return count >= 1 && count <= 10
    ? null
    : { argument: 'num_results', problem: 'out of range', expected: 'a value from 1 to 10' };
}

function domainProblem({
  allowed_domains: allowed = [],
  blocked_domains: blocked = [],
}: {
  readonly allowed_domains?: readonly string[];
  readonly blocked_domains?: readonly string[];
}) {
  const given = allowed.length > 0 ? allowed : blocked;
  const argument = allowed.length > 0 ? 'allowed_domains' : 'blocked_domains';
  if (allowed.length > 0 && blocked.length > 0)
    return { argument: 'blocked_domains', problem: 'given with allowed_domains', expected: 'one of the two' };
  if (given.length > maxDomains)
    return { argument, problem: `${given.length} domains`, expected: `at most ${maxDomains}` };
  const wrong = given.find((name) => hostOf(name) === null);
  const problem = `${JSON.stringify(wrong)} is no domain`;
  return wrong === undefined ? null : { argument, problem, expected: 'names such as "example.com"' };
}

/** Returns the host that a domain means, in the form of URLs; null where it means none. */
function hostOf(domain: string): string | null {
  const name = domain.trim().replace(/^\*?\./, '');
  if (!/^[^\s/?#@:\\]{1,253}$/.test(name) || !URL.canParse(`https://${name}/`)) return null;
  return new URL(`https://${name}/`).hostname.replace(/^www\./, '');
}

async function search(
  request: SearchRequest,
  { choice, send, now }: WebSearchOptions,
  ctx: ToolContext,
): Promise<SearchAnswer> {
  if (choice.service !== 'native') return await askService(request, choice, send, now);
  if (ctx.session.searchWeb) return await ctx.session.searchWeb(request);
  return {
    ok: false,
    reason: 'failed',
    message: 'The search of the model provider works in a session only; set web.search.provider to another service.',
  };
}

type Service = Exclude<SearchChoice, { readonly service: 'native' }>;

async function askService(
  request: SearchRequest,
  choice: Service,
  send: SendRequest,
  now: () => number,
): Promise<SearchAnswer> {
  const { service, baseUrl, key } = choice;
  const engine = searchEngines[service];
  try {
    const asked = engine.request(request, { baseUrl, key, now: now() });
    const response = await send(toSend(asked, baseUrl, request.signal));
    return await readAnswer(response, engine, choice, now());
  } catch (error) {
    const said = error instanceof Error ? error.message : String(error);
    const message =
      key === null ? said : said.replaceAll(key, '[masked]').replaceAll(encodeURIComponent(key), '[masked]');
    return { ok: false, reason: 'failed', message: `${service} could not be asked: ${message}.` };
  }
}

function toSend(
  { path, headers = {}, body }: EngineRequest,
  baseUrl: string,
  signal: AbortSignal,
): Parameters<SendRequest>[0] {
  const shared = { url: `${baseUrl}${path}`, signal };
  const own = { 'user-agent': 'agent-shell', ...headers };
  return body === undefined
    ? { ...shared, method: 'GET', headers: own }
    : {
        ...shared,
        method: 'POST',
        headers: { ...own, accept: 'application/json', 'content-type': 'application/json' },
        body: JSON.stringify(body),
      };
}

type Refusal = Exclude<SearchAnswer, { readonly ok: true }>;

/** No word of the server is repeated: it may hold the key, or orders for the model. */
async function readAnswer(
  response: Response,
  engine: SearchEngine,
  choice: Service,
  now: number,
): Promise<SearchAnswer> {
  const { service } = choice;
  if (response.status !== 200) {
    await response.body?.cancel();
    return refusalOf(response, engine, choice, now);
  }
  const text = await readText(response);
  const reading = text === null ? { problem: 'its answer is longer than 2 MiB' } : engine.read(text);
  if ('pages' in reading) return { ok: true, pages: reading.pages };
  return reading.reason === 'rate_limited'
    ? { ok: false, reason: 'rate_limited', message: `${service}: ${reading.problem}.` }
    : { ok: false, reason: 'failed', message: `${service} gave no results that can be read: ${reading.problem}.` };
}

function refusalOf(
  { status, headers }: Response,
  engine: SearchEngine,
  { service, keyEnv }: Service,
  now: number,
): Refusal {
  if (status === 429 || status === engine.busyStatus)
    return {
      ok: false,
      reason: 'rate_limited',
      message: `${service} is asked too often.`,
      waitMs: waitMs(headers, now),
    };
  if (status !== 401 && status !== 403)
    return { ok: false, reason: 'failed', message: `${service} answered with the status ${status}.` };
  const advice = (status === 403 ? engine.forbidden : undefined) ?? `check ${keyEnv ?? 'web.search.base_url'}`;
  return { ok: false, reason: 'failed', message: `${service} refused the search (${status}): ${advice}.` };
}

const usualWaitMs = 60_000;
const maxAnswerBytes = 2 * 1024 * 1024;

/** The wait that a service asks for, in seconds or as a date; a minute where it does not say. Source: RFC 9110,
 * 10.2.3. */
function waitMs(headers: Headers, now: number): number {
  const said = headers.get('retry-after')?.trim() ?? '';
  const ms = /^\d+(?:\.\d+)?$/.test(said) ? Number(said) * 1000 : Date.parse(said) - now;
  return ms > 0 ? Math.ceil(ms) : usualWaitMs;
}

/** Null where it is longer than an answer may be. */
async function readText({ body }: Response): Promise<string | null> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of body ?? []) {
    bytes += part.byteLength;
    if (bytes > maxAnswerBytes) return null;
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
}

function refused(answer: Refusal): ToolOutcome {
  if (answer.reason === 'failed') return failed('execution_failed', answer.message);
  const wait = answer.waitMs ?? usualWaitMs;
  const seconds = Math.ceil(wait / 1000);
  return failed('rate_limited', `${answer.message} Wait ${seconds} s, or go on without.`, { wait_ms: wait });
}

function found(pages: readonly FoundPage[], request: SearchRequest, provider: string): ToolOutcome {
  const usable = distinct(pages.flatMap((page) => cleaned(page) ?? []));
  const allowed = usable.filter(({ url }) => isWanted(new URL(url).hostname, request));
  if (allowed.length === 0 && pages.length > 0) {
    const why = usable.length === 0 ? 'has an address that can be opened' : 'is in the domains asked for';
    const message = `${counted(pages.length, 'page')} found, none of which ${why}; search with other words or domains.`;
    return failed('not_found', message);
  }
  const shown = allowed.slice(0, request.count);
  const envelope: OutputEnvelope = {
    output: shown.length === 0 ? 'No results.' : shown.map(written).join('\n\n'),
    count: shown.length,
    provider,
    untrusted: true,
  };
  return succeeded(counted(shown.length, 'result'), envelope);
}

function written({ title, url, snippet }: FoundPage, index: number): string {
  return [`${index + 1}. ${title}`, `   ${url}`, ...(snippet === '' ? [] : [`   ${snippet}`])].join('\n');
}

function isWanted(host: string, { allowedDomains, blockedDomains }: SearchRequest): boolean {
  const within = (domain: string): boolean => host === domain || host.endsWith(`.${domain}`);
  return (allowedDomains.length === 0 || allowedDomains.some(within)) && !blockedDomains.some(within);
}

function distinct(pages: readonly FoundPage[]): readonly FoundPage[] {
  const seen = new Set<string>();
  return pages.filter(({ url }) => {
    const key = url
      .replace(/#.*$/, '')
      .replace(/\/$/, '')
      .replace(/^https?:\/\/(?:www\.)?/, '');
    return !seen.has(key) && seen.add(key);
  });
}

const maxTitle = 150;
const maxSnippet = 300;
const maxUrl = 2048;

/** Returns a page as plain text on single lines; null where its address is none that can be opened. */
function cleaned({ title, url, snippet }: FoundPage): FoundPage | null {
  const address = cleanUrl(url);
  if (address === null) return null;
  return {
    url: address,
    title: plain(title, maxTitle) || new URL(address).hostname,
    snippet: plain(snippet, maxSnippet),
  };
}

/** Parameters that say who clicked where, and nothing about the page; after them, beginnings of such names. */
const tracking = new Set(
  (
    'gclid gclsrc dclid gbraid wbraid fbclid msclkid yclid twclid ttclid igshid igsh mc_cid mc_eid mkt_tok srsltid ' +
    'ref_src ref_url s_cid spm scm _gl _ga'
  ).split(' '),
);
const trackingBeginnings = ['utm_', '_hs', 'hsa_', 'oly_', 'vero_'];

function isTracking(name: string): boolean {
  return tracking.has(name.toLowerCase()) || trackingBeginnings.some((start) => name.startsWith(start));
}

function cleanUrl(text: string): string | null {
  const trimmed = text.trim();
  if (trimmed.length > maxUrl || !URL.canParse(trimmed)) return null;
  const url = new URL(trimmed);
  if (!/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '') return null;
  // Deleting rewrites the query, so it is done only where there is something to delete.
  for (const name of [...url.searchParams.keys()].filter(isTracking)) url.searchParams.delete(name);
  return url.href;
}

/** Without tags, entities, line ends and characters that nobody sees, and at most `max` characters. */
function plain(html: string, max: number): string {
  const text = html.slice(0, max * 20).replaceAll(/<\/?[a-z!][^<>]*>/gi, '');
  const line = replaceUnseen(decoded(text), () => ' ')
    .replaceAll(/\s+/g, ' ')
    .trim()
    .toWellFormed();
  const characters = [...line];
  return characters.length > max
    ? `${characters
        .slice(0, max - 1)
        .join('')
        .trimEnd()}…`
    : line;
}

const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: ' ' };

function decoded(text: string): string {
  return text.replaceAll(
    /&(?:#(\d{1,7})|#x([\da-f]{1,6})|([a-z]{2,6}));/gi,
    (whole, decimal?: string, hex?: string, name?: string) => {
      if (name !== undefined) return entities[name.toLowerCase()] ?? whole;
      const code = decimal === undefined ? Number.parseInt(hex ?? '', 16) : Number(decimal);
      return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : whole;
    },
  );
}
