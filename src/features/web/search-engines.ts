import { parseJson } from '../../kernel/core/json.js';
import type searchServices from '../../../config/search-services.json';
import type { OutputEnvelope } from '../../kernel/core/envelope.js';
import { isRecord } from '../../kernel/core/json.js';
import type { FoundPage, SearchAnswer, SearchRequest } from '../../kernel/core/provider.js';
import { replaceUnseen } from '../../kernel/core/text.js';
import type { ToolContext, ToolOutcome } from '../../kernel/core/tool.js';
import { counted, failed, succeeded } from '../../kernel/tools/define-tool.js';

export type SearchServiceName = keyof typeof searchServices;

/** The search engine: a service, or the provider of the model in a separate request. */
export type SearchChoice =
  | {
      readonly service: SearchServiceName;
      /** Without a slash at the end. */
      readonly baseUrl: string;
      readonly key: string | null;
      readonly keyEnv: string | null;
    }
  | { readonly service: 'native' };

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

/** The access to a service. The key goes to `baseUrl` alone. */
interface SearchAccess {
  /** Without a slash at the end. */
  readonly baseUrl: string;
  readonly key: string | null;
  /** Unix milliseconds. */
  readonly now: number;
}

interface EngineRequest {
  /** Path and query. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON, with POST. */
  readonly body?: unknown;
}

/** The content of an answer of status 200: pages, or why it holds none that can be read. No pages means that the
 * service found none. */
type Reading =
  | { readonly pages: readonly FoundPage[] }
  | { readonly problem: string; readonly reason?: 'rate_limited' };

/** A search service's request and answer. */
export interface SearchEngine {
  request(asked: SearchRequest, access: SearchAccess): EngineRequest;
  read(text: string): Reading;
  /** The advice for a 403 that does not mean a wrong key. */
  readonly forbidden?: string;
  /** A status besides 429 that says that it rate limit reached. */
  readonly busyStatus?: number;
}

/** The requests and answers of each service of `config/search-services.json`. */
export const searchEngines: Readonly<Record<SearchServiceName, SearchEngine>> = {
  /** Source: docs.searxng.org, "Search API" (read 2026-11). It takes no number of results. */
  searxng: {
    request: (asked) => ({
      path: `/search?${fields({ q: withSites(asked), format: 'json', time_range: asked.recency })}`,
      headers: { accept: 'application/json' },
    }),
    read: (text) =>
      fromJson(text, (answer) => {
        const silent = Array.isArray(answer.unresponsive_engines) ? answer.unresponsive_engines.length : 0;
        return Array.isArray(answer.results) && answer.results.length === 0 && silent > 0
          ? { problem: `none of its ${silent} search engines answered` }
          : pagesOf(answer.results, 'content');
      }),
    forbidden: 'its JSON output is off: add `json` to `search.formats` in its settings.yml',
  },
  /** Source: api-dashboard.search.brave.com, "Web search" [K]. An answer without results has no `web`. */
  brave: {
    request: (asked, { key }) => ({
      path: `/res/v1/web/search?${fields({
        q: withSites(asked),
        count: String(asked.count),
        freshness: asked.recency && { day: 'pd', week: 'pw', month: 'pm', year: 'py' }[asked.recency],
      })}`,
      headers: { accept: 'application/json', 'x-subscription-token': key ?? '' },
    }),
    read: (text) =>
      fromJson(text, (answer) =>
        answer.type === 'search' && answer.web === undefined
          ? { pages: [] }
          : pagesOf(isRecord(answer.web) ? answer.web.results : undefined, 'description'),
      ),
  },
  /** Source: docs.tavily.com, "Search" [K]. */
  tavily: {
    request: (asked, { key }) => ({
      path: '/search',
      headers: { authorization: `Bearer ${key ?? ''}` },
      body: {
        query: asked.query,
        max_results: asked.count,
        ...(asked.allowedDomains.length > 0 ? { include_domains: asked.allowedDomains } : {}),
        ...(asked.blockedDomains.length > 0 ? { exclude_domains: asked.blockedDomains } : {}),
        ...(asked.recency === null ? {} : { time_range: asked.recency }),
      },
    }),
    read: (text) => fromJson(text, (answer) => pagesOf(answer.results, 'content')),
  },
  /** Source: exa.ai/docs, "Search" (read 2026-11). */
  exa: {
    request: (asked, { key, now }) => ({
      path: '/search',
      headers: { 'x-api-key': key ?? '' },
      body: {
        query: asked.query,
        numResults: asked.count,
        contents: { highlights: true },
        ...(asked.allowedDomains.length > 0 ? { includeDomains: asked.allowedDomains } : {}),
        ...(asked.blockedDomains.length > 0 ? { excludeDomains: asked.blockedDomains } : {}),
        ...(asked.recency === null ? {} : { startPublishedDate: since(asked.recency, now) }),
      },
    }),
    read: (text) => fromJson(text, (answer) => pagesOf(answer.results, 'highlights')),
  },
  /** Source: serpapi.com, "Google search API" [K]. It says in `error` that nothing was found. */
  serpapi: {
    request: (asked, { key }) => ({
      path: `/search.json?${fields({
        engine: 'google',
        q: withSites(asked),
        num: String(asked.count),
        tbs: asked.recency && `qdr:${asked.recency.slice(0, 1)}`,
        api_key: key,
      })}`,
      headers: { accept: 'application/json' },
    }),
    read: (text) =>
      fromJson(text, (answer) => {
        if (typeof answer.error !== 'string') return pagesOf(answer.organic_results, 'snippet', 'link');
        return /hasn't returned any results/i.test(answer.error) ? { pages: [] } : { problem: 'it reports an error' };
      }),
  },
  /** The page for browsers without scripts. Nothing of it is promised. */
  duckduckgo: {
    request: (asked) => ({
      path: `/html/?${fields({ q: withSites(asked), df: asked.recency?.slice(0, 1) ?? null })}`,
      headers: { accept: 'text/html' },
    }),
    read: readDuckDuckGo,
    busyStatus: 202,
  },
};

function fields(values: Readonly<Record<string, string | null>>): string {
  const given = Object.entries(values).flatMap(([name, value]) => (value === null ? [] : [[name, value] as const]));
  return new URLSearchParams(given.map(([name, value]) => [name, value])).toString();
}

/** Adds domains in the words that search engines know; the tool filters once more. */
function withSites({ query, allowedDomains, blockedDomains }: SearchRequest): string {
  const allowed = allowedDomains.map((domain) => `site:${domain}`).join(' OR ');
  return [query, allowed, ...blockedDomains.map((domain) => `-site:${domain}`)].filter((part) => part !== '').join(' ');
}

const days: Readonly<Record<NonNullable<SearchRequest['recency']>, number>> = { day: 1, week: 7, month: 31, year: 366 };

function since(recency: keyof typeof days, now: number): string {
  return new Date(now - days[recency] * 86_400_000).toISOString();
}

function fromJson(text: string, read: (answer: Readonly<Record<string, unknown>>) => Reading): Reading {
  try {
    const answer: unknown = parseJson(text);
    return isRecord(answer) ? read(answer) : { problem: 'its answer does not match its documentation' };
  } catch {
    return {
      problem: text.trimStart().startsWith('<')
        ? 'it answered with a web page, not with JSON'
        : 'its answer is not JSON',
    };
  }
}

function pagesOf(results: unknown, snippet: string, url = 'url'): Reading {
  if (!Array.isArray(results)) return { problem: 'its answer contains no list of results' };
  const texts = (value: unknown): string => (Array.isArray(value) ? value.map(texts).join(' … ') : written(value));
  return {
    pages: results
      .filter(isRecord)
      .map((result) => ({ title: written(result.title), url: written(result[url]), snippet: texts(result[snippet]) })),
  };
}

function written(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** A link of that page, up to its end; no part is longer than the page allows. */
const links = /<a\b([^<>]{0,4000})>/g;

function readDuckDuckGo(html: string): Reading {
  if (html.includes('anomaly-modal') || html.includes('anomaly.js'))
    return { problem: 'it asks for a captcha', reason: 'rate_limited' };
  const pages: FoundPage[] = [];
  for (const link of html.matchAll(links)) {
    const attributes = link[1] ?? '';
    const start = link.index + link[0].length;
    const text = html.slice(start, start + 4000).split('</a>', 1)[0] ?? '';
    if (attributes.includes('result__a')) pages.push({ title: text, url: target(attributes), snippet: '' });
    const last = pages.at(-1);
    if (last && attributes.includes('result__snippet')) pages[pages.length - 1] = { ...last, snippet: text };
  }
  const found = pages.filter(({ url }) => url !== '');
  return found.length > 0 || html.includes('no-results')
    ? { pages: found }
    : { problem: 'its page contains no readable results' };
}

/** Returns where a link leads; '' for an advertisement, which stays on the service's own host. */
function target(attributes: string): string {
  const link = (/href="([^"]*)"/.exec(attributes)?.[1] ?? '').replaceAll('&amp;', '&');
  if (!URL.canParse(link, 'https://duckduckgo.com')) return '';
  const url = new URL(link, 'https://duckduckgo.com');
  const leads = url.searchParams.get('uddg') ?? url.href;
  return URL.canParse(leads) && !/(?:^|\.)duckduckgo\.com$/.test(new URL(leads).hostname) ? leads : '';
}

/** Searches, and says what came of it. */
export async function searchOutcome(
  request: SearchRequest,
  options: WebSearchOptions,
  ctx: ToolContext,
): Promise<ToolOutcome> {
  const answer = await search(request, options, ctx);
  if (ctx.signal.aborted) return failed('cancelled', 'The search was cancelled before it finished.');
  return answer.ok ? pagesOutcome(answer.pages, request, options.choice.service) : refused(answer);
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
    message: "The model provider's search works only in a session; set web.search.provider to another service.",
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
    : { ok: false, reason: 'failed', message: `${service} sent no readable results: ${reading.problem}.` };
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
      message: `${service} rate limit reached.`,
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
  return failed('rate_limited', `${answer.message} Wait ${seconds} s, or continue without it.`, { wait_ms: wait });
}

function pagesOutcome(pages: readonly FoundPage[], request: SearchRequest, provider: string): ToolOutcome {
  const usable = distinct(pages.flatMap((page) => cleaned(page) ?? []));
  const allowed = usable.filter(({ url }) => isWanted(new URL(url).hostname, request));
  if (allowed.length === 0 && pages.length > 0) {
    const why = usable.length === 0 ? 'has an address that can be opened' : 'is in the domains asked for';
    const message = `${counted(pages.length, 'page')} found, none of which ${why}; search with other words or domains.`;
    return failed('not_found', message);
  }
  const shown = allowed.slice(0, request.count);
  const envelope: OutputEnvelope = {
    output: shown.length === 0 ? 'No results.' : shown.map(numbered).join('\n\n'),
    count: shown.length,
    provider,
    untrusted: true,
  };
  return succeeded(counted(shown.length, 'result'), envelope);
}

function numbered({ title, url, snippet }: FoundPage, index: number): string {
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
