import type { Answer, Send } from './exchange.js';

/** Posts a body that is already serialised and gives back the answer, whatever its status. Rejects like `Send`. */
export type Post = (url: string, body: Uint8Array, signal: AbortSignal) => Promise<Answer>;

/** For an SDK's `fetch` option. The SDK sees an empty 200 for every answer: statuses, bodies and retries are not judged
 * there. */
export type SdkFetch = (input: string | URL | Request, init?: RequestInit) => Promise<Response>;

/** One request through an SDK. */
export type SdkRequest = (url: string, body: Uint8Array, signal: AbortSignal) => Promise<Response>;

/** Headers that an SDK may add of its own: what the protocols need. What it would say about this machine stays here,
 * and so do headers that it reads from the environment, which belong to its vendor's host. */
const wanted = new Set(['accept', 'content-type', 'authorization', 'x-api-key', 'anthropic-version', 'user-agent']);

/** Posts through the SDK whose client `connect` makes, to `send`. `extra` are the names (lower case) of further headers
 * that may leave. The SDK makes the headers of the first request, which are those of every other one to the same
 * endpoint: these are sent without it. */
export function createSdkPost(send: Send, extra: readonly string[], connect: (fetch: SdkFetch) => SdkRequest): Post {
  const allowed = new Set([...wanted, ...extra]);
  const answers = new WeakMap<Response, Answer>();
  let made: Readonly<Record<string, string>> | null = null;
  const request = connect(async (input, init) => {
    const headers: Record<string, string> = {};
    for (const [name, value] of new Headers(init?.headers)) if (allowed.has(name)) headers[name] = value;
    const url = typeof input === 'string' ? input : 'url' in input ? input.url : input.href;
    const body = init?.body instanceof Uint8Array ? { body: init.body } : {};
    const answer = await send({
      method: 'POST',
      url,
      headers,
      ...body,
      signal: init?.signal ?? new AbortController().signal,
    });
    made = headers;
    const response = new Response(null);
    answers.set(response, answer);
    return response;
  });
  return async (url, body, signal) => {
    if (made) return await send({ method: 'POST', url, headers: made, body, signal });
    const answer = answers.get(await request(url, body, signal));
    if (answer === undefined) throw new Error('a response that did not come from this fetch');
    return answer;
  };
}

/** The name under which requests are made. */
export function userAgent(): string {
  return 'agent-shell';
}
