import type { Answer, Send } from './http-answer.js';

/** Posts a body that is already serialised and gives back the answer, whatever its status. Rejects like `Send`. */
export type Post = (url: string, body: Uint8Array, signal: AbortSignal) => Promise<Answer>;

export interface SdkFetch {
  /** For an SDK's `fetch` option. The SDK sees an empty 200 for every answer: statuses, bodies and retries are not judged there. */
  readonly fetch: (input: string | URL | Request, init?: RequestInit) => Promise<Response>;
  /** The real answer behind a response that `fetch` gave. */
  answerOf(response: Response): Answer;
}

/** Headers that an SDK may add of its own: what the protocols need. What it would say about this machine stays here, and so do headers that
 *  it reads from the environment, which belong to its vendor's host. */
const wanted = new Set(['accept', 'content-type', 'authorization', 'x-api-key', 'anthropic-version', 'user-agent']);

/** A `fetch` for an SDK that sends through `send`. `extra` are the names (lower case) of further headers that may leave. */
export function createSdkFetch(send: Send, extra: readonly string[]): SdkFetch {
  const allowed = new Set([...wanted, ...extra]);
  const answers = new WeakMap<Response, Answer>();
  return {
    async fetch(input, init) {
      const headers: Record<string, string> = {};
      for (const [name, value] of new Headers(init?.headers)) if (allowed.has(name)) headers[name] = value;
      const url = typeof input === 'string' ? input : 'url' in input ? input.url : input.href;
      const body = init?.body instanceof Uint8Array ? { body: init.body } : {};
      const answer = await send({ method: init?.method === 'GET' ? 'GET' : 'POST', url, headers, ...body, signal: init?.signal ?? new AbortController().signal });
      const response = new Response(null);
      answers.set(response, answer);
      return response;
    },
    answerOf(response) {
      const answer = answers.get(response);
      if (answer === undefined) throw new Error('a response that did not come from this fetch');
      return answer;
    },
  };
}

/** The name under which requests are made. */
export function userAgent(): string {
  return 'agent-shell';
}
