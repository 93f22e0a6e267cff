import searchServices from '../../../config/search-services.json' with { type: 'json' };
import { isRecord } from '../../core/json.js';
import type { FoundPage, SearchRequest } from '../../core/provider.js';

export type SearchServiceName = keyof typeof searchServices;

/** Who searches: a service, or the provider of the model in a request of its own. */
export type SearchChoice =
  | {
      readonly service: SearchServiceName;
      /** Without a slash at the end. */
      readonly baseUrl: string;
      readonly key: string | null;
      readonly keyEnv: string | null;
    }
  | { readonly service: 'native' };

/** `web.search` of the settings. */
export interface SearchSettings {
  readonly provider: SearchServiceName | 'auto' | 'native';
  readonly baseUrl: string | null;
}

/** Chooses who searches: the one that is named, else the first with an address or a key, else the provider of the
 * model where it can. Returns what to do where nobody can. */
export function chooseSearch(
  { provider, baseUrl }: SearchSettings,
  env: Readonly<Record<string, string | undefined>>,
  providerSearches: boolean,
): SearchChoice | { readonly problem: string } {
  if (provider === 'native')
    return providerSearches ? { service: 'native' } : { problem: 'the provider of the model has no web search' };
  const names = Object.keys(searchServices) as readonly SearchServiceName[];
  if (provider !== 'auto') return serviceOf(provider, baseUrl, env);
  for (const name of names.filter((known) => searchServices[known].unnamed)) {
    // An address alone means SearXNG: no key goes to it.
    const choice = serviceOf(name, searchServices[name].base_url === null ? baseUrl : null, env);
    if (!('problem' in choice)) return choice;
  }
  if (providerSearches) return { service: 'native' };
  const keys = names.flatMap((name) => searchServices[name].key_env ?? []);
  return { problem: `no search is set up: set ${keys.join(', ')} or web.search.base_url (SearXNG)` };
}

function serviceOf(
  name: SearchServiceName,
  address: string | null,
  env: Readonly<Record<string, string | undefined>>,
): SearchChoice | { readonly problem: string } {
  const { base_url: usual, key_env: keyEnv } = searchServices[name];
  const url = address ?? usual;
  if (url === null) return { problem: `${name} needs its address: set web.search.base_url` };
  if (!isAddress(url)) return { problem: 'web.search.base_url is not an http or https address without a query' };
  const choice = { service: name, baseUrl: url.replace(/\/+$/, ''), keyEnv };
  if (keyEnv === null) return { ...choice, key: null };
  const key = env[keyEnv]?.trim() ?? '';
  const problem = keyProblem(key, keyEnv, new URL(url));
  return problem === null ? { ...choice, key } : { problem: `${name}: ${problem}` };
}

function isAddress(text: string): boolean {
  return /^https?:\/\//.test(text) && URL.canParse(text) && !/[?#@]/.test(text);
}

function keyProblem(key: string, keyEnv: string, { protocol, hostname }: URL): string | null {
  if (key === '') return `set ${keyEnv}`;
  if (!/^[\u0021-\u007e]+$/.test(key)) return `${keyEnv} holds a character that no key has`;
  return protocol === 'http:' && !isLoopback(hostname)
    ? 'a key goes to web.search.base_url, so it must be https'
    : null;
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '[::1]' || /^127(\.\d{1,3}){3}$/.test(host);
}

/** Where a service is asked. The key goes to `baseUrl` alone. */
export interface SearchAccess {
  /** Without a slash at the end. */
  readonly baseUrl: string;
  readonly key: string | null;
  /** Unix milliseconds. */
  readonly now: number;
}

export interface EngineRequest {
  /** Path and query. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON, with POST. */
  readonly body?: unknown;
}

/** What an answer of status 200 holds: pages, or why it holds none that can be read. No pages means that the service
 * said so. */
type Reading =
  | { readonly pages: readonly FoundPage[] }
  | { readonly problem: string; readonly reason?: 'rate_limited' };

/** A search service's request and answer. */
export interface SearchEngine {
  request(asked: SearchRequest, access: SearchAccess): EngineRequest;
  read(text: string): Reading;
  /** What to do about a 403, where that is not the key. */
  readonly forbidden?: string;
  /** A status besides 429 that says that it is asked too often. */
  readonly busyStatus?: number;
}

/** How each service of `config/search-services.json` is asked. */
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
        return /hasn't returned any results/i.test(answer.error)
          ? { pages: [] }
          : { problem: 'it reports an error of its own' };
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
    const answer: unknown = JSON.parse(text);
    return isRecord(answer) ? read(answer) : { problem: 'its answer is not what it documents' };
  } catch {
    return {
      problem: text.trimStart().startsWith('<')
        ? 'it answered with a web page, not with JSON'
        : 'its answer is not JSON',
    };
  }
}

function pagesOf(results: unknown, snippet: string, url = 'url'): Reading {
  if (!Array.isArray(results)) return { problem: 'its answer holds no list of results' };
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
    return { problem: 'it takes this for a robot and asks for a puzzle', reason: 'rate_limited' };
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
    : { problem: 'its page holds no results that can be read' };
}

/** Returns where a link leads; '' for an advertisement, which stays on the service's own host. */
function target(attributes: string): string {
  const link = (/href="([^"]*)"/.exec(attributes)?.[1] ?? '').replaceAll('&amp;', '&');
  if (!URL.canParse(link, 'https://duckduckgo.com')) return '';
  const url = new URL(link, 'https://duckduckgo.com');
  const leads = url.searchParams.get('uddg') ?? url.href;
  return URL.canParse(leads) && !/(?:^|\.)duckduckgo\.com$/.test(new URL(leads).hostname) ? leads : '';
}
