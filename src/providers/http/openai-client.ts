import { OpenAI } from 'openai';
import type { Endpoint } from '../catalog.js';
import type { Send } from './exchange.js';
import { createSdkPost, type Post, userAgent } from './sdk-fetch.js';

/** Longest delay of a Node timer; the time limits are kept by the caller. */
const neverMs = 2_147_483_647;

/** Posts through the `openai` package: it makes the client, the authorization and the protocol's headers. Everything
 * OpenAI-compatible goes this way. Nothing is read from the environment but what `endpoint` holds. */
export function createOpenAiPost(endpoint: Endpoint, send: Send): Post {
  return createSdkPost(
    send,
    Object.keys(endpoint.headers).map((name) => name.toLowerCase()),
    (fetch) => {
      const client = new OpenAI({
        baseURL: endpoint.baseUrl,
        apiKey: endpoint.key ?? 'none',
        adminAPIKey: null,
        organization: null,
        project: null,
        webhookSecret: null,
        maxRetries: 0,
        timeout: neverMs,
        logLevel: 'off',
        fetch,
        defaultHeaders: {
          'User-Agent': userAgent(),
          Accept: 'text/event-stream, application/json',
          'Content-Type': 'application/json',
          ...endpoint.headers,
          ...(endpoint.key === null ? { Authorization: null } : {}),
        },
      });
      const options = { headers: { 'Content-Type': 'application/json' }, stream: true } as const;
      return (url, body, signal) => client.post(url, { ...options, body, signal }).asResponse();
    },
  );
}
