import searchServices from '../../../config/search-services.json' with { type: 'json' };
import type { SearchRequest } from '../../kernel/core/provider.js';
import { isThisMachine } from '../../kernel/network/proxies.js';
import { type DefinedTool, defineTool } from '../../kernel/tools/define-tool.js';
import type { SearchChoice, SearchServiceName, WebSearchOptions } from './search-engines.js';
import { searchOutcome } from './search-engines.js';

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
      return await searchOutcome(request, options, ctx);
    },
  });
}

const maxQuery = 400;
const maxDomains = 20;

/** Checks arguments here rather than in the schema, which every request would have to send. */
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
  const problem = `${JSON.stringify(wrong)} is not a domain`;
  return wrong === undefined ? null : { argument, problem, expected: 'names such as "example.com"' };
}

/** Returns the host that a domain means, in the form of URLs; null where it means none. */
function hostOf(domain: string): string | null {
  const name = domain.trim().replace(/^\*?\./, '');
  if (!/^[^\s/?#@:\\]{1,253}$/.test(name) || !URL.canParse(`https://${name}/`)) return null;
  return new URL(`https://${name}/`).hostname.replace(/^www\./, '');
}

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
  const keyless = names.filter(
    (name) => searchServices[name].key_env === null && searchServices[name].base_url !== null,
  );
  return {
    problem:
      `no search is set up: set ${keys.join(', ')} or web.search.base_url (SearXNG), ` +
      `or web.search.provider to ${keyless.join(' or ')}, which needs no key`,
  };
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
  if (!/^[\u0021-\u007e]+$/.test(key)) return `${keyEnv} contains a character that no key has`;
  return protocol === 'http:' && !isThisMachine(hostname)
    ? 'a key goes to web.search.base_url, so it must be https'
    : null;
}
