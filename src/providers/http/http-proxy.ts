import type { Transport } from './http-answer.js';
import { createBody } from './http-body.js';
import { networkFailure } from './http-failure.js';
import type { ProxySettings } from './http-proxy-env.js';

/** Sends requests through the proxies of the environment. undici is loaded only here: it costs as much as everything
 * else in this folder. */
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
        const headers: Record<string, string> = {};
        for (const [name, value] of Object.entries(answer.headers))
          if (value !== undefined) headers[name] = Array.isArray(value) ? value.join(', ') : value;
        return { status: answer.statusCode, headers, body: createBody(answer.body, headers['content-encoding'], host) };
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
