import { isLoopback } from '../catalog.js';
import { createResponse } from './body.js';
import { networkFailure, type Transport } from './exchange.js';

/** Sends requests through the proxies of the environment. undici is loaded only here, because it costs as much as
 * everything else in this folder. */
export async function createProxyTransport(settings: ProxySettings): Promise<Transport> {
  const { EnvHttpProxyAgent, request: undiciRequest } = await import('undici');
  const dispatcher = new EnvHttpProxyAgent({ ...settings, allowH2: false, headersTimeout: 0, bodyTimeout: 0 });
  return {
    async send(request) {
      const { host } = new URL(request.url);
      try {
        const answer = await undiciRequest(request.url, {
          dispatcher,
          method: request.method,
          headers: request.headers,
          body: request.body ?? null,
          signal: request.signal,
        });
        return createResponse(answer.statusCode, answer.headers, answer.body, host);
      } catch (error) {
        throw networkFailure(error, `${host} (through the proxy)`, 'connect');
      }
    },
    warm() {
      /* the proxy's connection opens with the first request */
    },
    close() {
      void dispatcher.close();
    },
  };
}

interface ProxySettings {
  readonly httpProxy?: string;
  readonly httpsProxy?: string;
  readonly noProxy?: string;
}

/** Reads the proxies for requests to `baseUrl` from `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`, in either
 * case. Null where there is none for its scheme, and for this machine, which no proxy can reach. */
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
