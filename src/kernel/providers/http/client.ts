import { isRecord } from '../../core/json.js';
import { longestTimerMs } from '../../core/runtime.js';
import { type Endpoint, joinUrl } from '../catalog.js';
import type { Send } from './exchange.js';

/** Posts a body that is already serialised, with these headers beside those of the endpoint. Resolves with any answer, as
 * `Send` does, and rejects like it. */
export type Post = (
  body: Uint8Array,
  signal: AbortSignal,
  headers?: Readonly<Record<string, string>>,
) => Promise<Response>;

/** Loads a vendor's SDK and makes its client for one path of an endpoint. */
export type Connect = (endpoint: Endpoint, path: string, send: Send) => Promise<Post>;

/** Carries an answer that is not a success, or the reason why there is none, from our `fetch` through an SDK, which keeps
 * it as a cause. The text is neutral because the SDKs search it for words such as "timed out". */
class NoSuccess extends Error {
  readonly reason: unknown;
  constructor(reason: unknown) {
    super('no success');
    this.reason = reason;
  }
}

/** The headers that an SDK may send: those that the protocols need. Headers that describe this machine are dropped, and
 * so are those that the SDK reads from the environment, which are meant for its vendor's host. */
const wanted = ['accept', 'content-type', 'authorization', 'x-api-key', 'anthropic-version', 'user-agent'];

/** The name under which requests are made. */
export const userAgent = 'agent-shell';

/** Returns the options that both SDKs' clients share. The SDK neither judges an answer nor retries: the wire reads a
 * vendor's error, and `retry.ts` decides what follows. */
function clientOptions(endpoint: Endpoint, path: string, send: Send) {
  const url = new URL(joinUrl(endpoint.baseUrl, path));
  return {
    baseURL: url.origin + url.pathname.slice(0, -path.length),
    defaultQuery: Object.fromEntries(url.searchParams),
    apiKey: endpoint.key ?? 'none',
    defaultHeaders: {
      'User-Agent': userAgent,
      Accept: 'text/event-stream, application/json',
      'Content-Type': 'application/json',
      ...endpoint.headers,
    },
    maxRetries: 0,
    // The time limits are ours, not the SDK's.
    timeout: longestTimerMs,
    logLevel: 'off',
    fetch: sdkFetch(endpoint, send),
  } as const;
}

/** Returns the names of the headers that a request has, in lower case. */
export function takenHeaders({ headers }: Pick<Endpoint, 'headers'>): readonly string[] {
  return [...wanted, ...Object.keys(headers).map((name) => name.toLowerCase())];
}

/** Headers that a hook adds go through the SDK under names that it does not use itself. */
const addedPrefix = 'x-agent-added-';

function addedHeaders(headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [`${addedPrefix}${name}`, value]));
}

function sentHeaders(given: Headers, named: ReadonlySet<string>): Readonly<Record<string, string>> {
  const sent: [string, string][] = [];
  for (const [name, value] of given) {
    if (name.startsWith(addedPrefix)) sent.push([name.slice(addedPrefix.length), value]);
    else if (named.has(name)) sent.push([name, value]);
  }
  return Object.fromEntries(sent);
}

type SdkFetch = (input: string | URL | Request, init?: RequestInit) => Promise<Response>;

function sdkFetch(endpoint: Endpoint, send: Send): SdkFetch {
  const named = new Set(takenHeaders(endpoint));
  // With the first use of its headers Node loads all of `fetch`. So that happens here, before there is a request.
  void new Headers();
  return async (input, init) => {
    const request = {
      method: 'POST' as const,
      url: input instanceof Request ? input.url : String(input),
      headers: sentHeaders(new Headers(init?.headers), named),
      ...(init?.body instanceof Uint8Array ? { body: init.body } : {}),
      signal: init?.signal ?? new AbortController().signal,
    };
    const response = await send(request).catch((error: unknown) => {
      throw new NoSuccess(error);
    });
    if (!response.ok) throw new NoSuccess(response);
    return response;
  };
}

/** Resolves with the answer to an SDK's request, whatever its status, or rejects with what `send` rejected with. */
async function answerOf(request: Promise<Response>): Promise<Response> {
  try {
    return await request;
  } catch (error) {
    const reason = reasonOf(error);
    if (reason instanceof Response) return reason;
    throw reason;
  }
}

function reasonOf(error: unknown): unknown {
  let current: unknown = error;
  for (let depth = 0; depth < 6 && isRecord(current); depth++) {
    if (current instanceof NoSuccess) return current.reason;
    current = current.cause;
  }
  return error;
}

/** Posts through `@anthropic-ai/sdk`. `BaseAnthropic` is the client without the resource classes, which are most of the
 * package. It reads no key and no address from the environment. The SDK's default is the API version 2026-10-21, which
 * sends the key as a bearer token; the preset asks for 2023-06-01, which every gateway and every model knows and which
 * sends it as `x-api-key`. Source: platform.claude.com, API overview, "Authentication" and "Versions". */
export const connectAnthropic: Connect = async (endpoint, path, send) => {
  const { BaseAnthropic } = await import('@anthropic-ai/sdk/client');
  const options = clientOptions(endpoint, path, send);
  const client = new BaseAnthropic({
    ...options,
    webhookKey: null,
    openTelemetry: false,
    defaultHeaders: { ...options.defaultHeaders, 'X-Api-Key': endpoint.key, Authorization: null },
  });
  return (body, signal, headers = {}) =>
    answerOf(client.post(path, { body, signal, stream: true, headers: addedHeaders(headers) }).asResponse());
};

/** Posts through the `openai` package, which makes the URL, the authorization and the protocol's headers. It serves
 * every OpenAI-compatible server. It reads no key and no address from the environment. */
export const connectOpenAi: Connect = async (endpoint, path, send) => {
  const { OpenAI } = await import('openai/client');
  const options = clientOptions(endpoint, path, send);
  const client = new OpenAI({
    ...options,
    adminAPIKey: null,
    organization: null,
    project: null,
    webhookSecret: null,
    defaultHeaders: { ...options.defaultHeaders, ...(endpoint.key === null ? { Authorization: null } : {}) },
  });
  return (body, signal, headers = {}) =>
    answerOf(client.post(path, { body, signal, stream: true, headers: addedHeaders(headers) }).asResponse());
};
