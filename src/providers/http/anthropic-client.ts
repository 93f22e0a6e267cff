import { BaseAnthropic } from '@anthropic-ai/sdk/client';
import type { Endpoint } from '../catalog.js';
import type { Send } from './exchange.js';
import { createSdkPost, type Post, userAgent } from './sdk-fetch.js';

/** Longest delay of a Node timer; the time limits are kept by the caller. */
const neverMs = 2_147_483_647;

/** Posts through `@anthropic-ai/sdk`. `BaseAnthropic` is the client without the resource classes, which are most of the
 * package. Nothing is read from the environment but what `endpoint` holds. The SDK's default is the API version
 * 2026-10-21, whose key goes as a bearer token; the preset asks for 2023-06-01, which every gateway and every model
 * knows, and there the key is `x-api-key`.
 * Source: platform.claude.com, API overview, "Authentication" and "Versions". */
export function createAnthropicPost(endpoint: Endpoint, send: Send): Post {
  return createSdkPost(
    send,
    Object.keys(endpoint.headers).map((name) => name.toLowerCase()),
    (fetch) => {
      const client = new BaseAnthropic({
        baseURL: endpoint.baseUrl,
        apiKey: endpoint.key ?? 'none',
        webhookKey: null,
        maxRetries: 0,
        timeout: neverMs,
        logLevel: 'off',
        fetch,
        defaultHeaders: {
          'User-Agent': userAgent(),
          Accept: 'text/event-stream, application/json',
          ...endpoint.headers,
          'X-Api-Key': endpoint.key,
          Authorization: null,
        },
      });
      const options = { headers: { 'Content-Type': 'application/json' }, stream: true } as const;
      return (url, body, signal) => client.post(url, { ...options, body, signal }).asResponse();
    },
  );
}
