import { type Endpoint, joinUrl } from '../catalog.js';
import { type Post, userAgent } from '../http/client.js';
import type { Send } from '../http/exchange.js';
import { createAuthorizer, type OnSecret } from './authorizer.js';
import { asServerEvents } from './event-frames.js';

/** A client without an SDK. `renew`: see `Authorizer`. */
export interface SignedClient {
  readonly post: Post;
  readonly renew: () => Promise<boolean>;
}

/** Posts requests that a cloud authorizes. An answer in frames of AWS becomes one of server-sent events. */
export function connectSigned(endpoint: Endpoint, path: string, send: Send, onSecret?: OnSecret): SignedClient {
  const authorizer = createAuthorizer(endpoint, onSecret);
  const url = joinUrl(endpoint.baseUrl, endpoint.path ?? path);
  const own = Object.entries(endpoint.headers).map(([name, value]) => [name.toLowerCase(), value]);
  const headers = {
    accept: 'text/event-stream, application/json',
    'content-type': 'application/json',
    'user-agent': userAgent,
    ...Object.fromEntries(own),
  };
  return {
    async post(body, signal) {
      const request = { method: 'POST', url, headers, body, signal } as const;
      const authorized = await authorizer.headers(request);
      return asServerEvents(await send({ ...request, headers: { ...headers, ...authorized } }), new URL(url).host);
    },
    renew: () => authorizer.renew(),
  };
}
