import { isLoopback } from '../catalog-base-url.js';

export interface ProxySettings {
  readonly httpProxy?: string;
  readonly httpsProxy?: string;
  readonly noProxy?: string;
}

/** The proxies that `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY` (either case) name for requests to
 * `baseUrl`; null where there is none for its scheme, and for this machine, which no proxy can reach. */
export function proxySettings(
  baseUrl: string,
  env: Readonly<Record<string, string | undefined>>,
): ProxySettings | null {
  const read = (name: string): string | undefined => env[name.toLowerCase()] || env[name] || undefined;
  const url = new URL(baseUrl);
  if (isLoopback(url.hostname)) return null;
  const proxy = read(url.protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY') ?? read('ALL_PROXY');
  if (proxy === undefined) return null;
  const noProxy = read('NO_PROXY');
  return { httpProxy: proxy, httpsProxy: proxy, ...(noProxy === undefined ? {} : { noProxy }) };
}
