import type { Json, JsonObject } from './json.js';
import type { Conversation, ModelRef } from './projection.js';
import type { Stop, TokenUsage } from './event.js';

/** The kinds of errors of a provider. Source: contracts 8, `error.code`. */
export type FaultCode =
  | 'auth'
  | 'quota'
  | 'rate_limited'
  | 'bad_request'
  | 'context_overflow'
  | 'network'
  | 'protocol'
  | 'stream_incomplete'
  | 'max_cost'
  | 'hook'
  | 'schema'
  | 'goal'
  | 'internal';

export interface Fault {
  readonly code: FaultCode;
  /** One sentence for the reader: what, with which value. Keys are masked in it. */
  readonly message: string;
  /** The next step for the user. */
  readonly hint?: string;
  /** HTTP status, where there was one. */
  readonly status?: number;
  /** Unix milliseconds: a usage limit is reached, and this is when it ends. The same request is not worth sending
   * before. */
  readonly retryAt?: number;
  /** The model's text that the server could not read as a call, or ''. */
  readonly refusedCall?: string;
}

export interface ModelRequest {
  readonly conversation: Conversation;
  readonly ref: ModelRef;
  /** `none`: the tools are sent (the cached prefix stays), calling them is forbidden. */
  readonly toolChoice: 'auto' | 'none';
  readonly signal: AbortSignal;
  /** Most calls of one answer that are read; the rest of the answer is not. Absent: all. */
  readonly maxCalls?: number;
  /** Asked once for each body that a provider sends over HTTP. Absent: nobody is. */
  readonly beforeSend?: BeforeSend;
}

/** Asks about the bytes of a request before they leave. `fault`: it is not sent. Never rejects. */
export type BeforeSend = (
  body: Uint8Array,
) => Promise<{ readonly headers: Readonly<Record<string, string>>; readonly fault: Fault | null }>;

/** One item of a stream. A stream ends with exactly one `end` or `fault` and never throws; an abort ends it without
 * either. Calls arrive whole and only after the provider said that the response is complete; fragments stay inside the
 * provider. */
export type ModelChunk =
  /** `isLast`: the end of the answer arrived with it, so no text follows. */
  | { readonly type: 'text' | 'reasoning'; readonly text: string; readonly isLast?: true }
  | { readonly type: 'tool_call'; readonly call: ReceivedCall }
  | { readonly type: 'usage'; readonly usage: TokenUsage; readonly costUsd: number | null }
  /** The request failed and is sent again after `delayMs`; `attempt` counts from 1. All text of this request so far is
   * void. */
  | {
      readonly type: 'retry';
      readonly attempt: number;
      readonly maxRetries: number;
      readonly delayMs: number;
      readonly reason: string;
    }
  /** Without a level: `info`. */
  | { readonly type: 'notice'; readonly level?: 'info' | 'warn'; readonly code: string; readonly message: string }
  | { readonly type: 'end'; readonly stop: Exclude<Stop, 'interrupted'>; readonly reasoning?: readonly Json[] }
  | { readonly type: 'fault'; readonly fault: Fault };

/** A call as the provider sent it. `id` may be empty or repeated; the loop makes it unique. */
export interface ReceivedCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
  /** Fields of the call that its protocol does not describe, as the server named them. The server wants them back. */
  readonly fields?: JsonObject;
  /** The text that the call was read from, where its arguments were repaired or put together. */
  readonly received?: string;
  /** The reason why the server did not accept this call of the model; it must not run. */
  readonly refused?: string;
}

export interface Provider {
  stream(request: ModelRequest): AsyncIterable<ModelChunk>;
  /** Searches the web in a request of its own, outside of the conversation. Never throws. Absent where the provider
   * has no search. */
  search?(request: SearchRequest, ref: ModelRef): Promise<PaidSearch>;
}

/** A search of the web, by a search service or by a provider. */
export interface SearchRequest {
  readonly query: string;
  /** From 1. An answer may hold more or fewer. */
  readonly count: number;
  /** Hosts; each includes those below it. At most one of the two lists is not empty. */
  readonly allowedDomains: readonly string[];
  readonly blockedDomains: readonly string[];
  readonly recency: 'day' | 'week' | 'month' | 'year' | null;
  readonly signal: AbortSignal;
}

/** A page as a search describes it; nothing of it is checked. */
export interface FoundPage {
  readonly title: string;
  readonly url: string;
  readonly snippet: string;
}

/** No pages: the search itself said so. `message` holds no key; `waitMs` is the wait that was asked for. */
export type SearchAnswer =
  | { readonly ok: true; readonly pages: readonly FoundPage[] }
  | {
      readonly ok: false;
      readonly reason: 'failed' | 'rate_limited';
      readonly message: string;
      readonly waitMs?: number;
    };

/** A provider's search, and what its requests used. */
export interface PaidSearch {
  readonly answer: SearchAnswer;
  readonly usage: TokenUsage | null;
  readonly costUsd: number | null;
}

/** One entry of `config/models.json`, or of `models` in the user's configuration. Tokens, and USD per million
 * tokens. */
export interface ModelEntry {
  readonly context_window?: number;
  readonly max_output_tokens?: number;
  readonly input_usd?: number;
  readonly cache_read_usd?: number;
  readonly cache_write_usd?: number;
  /** Written to the cache for an hour. */
  readonly cache_write_1h_usd?: number;
  readonly output_usd?: number;
  /** USD of one web search that the provider makes. */
  readonly web_search_usd?: number;
  /** The prices of a whole request whose prompt is longer than `above_tokens`. */
  readonly long_prompt?: {
    readonly above_tokens: number;
    readonly input_usd: number;
    readonly cache_read_usd?: number;
    readonly cache_write_usd?: number;
    readonly output_usd: number;
  };
  /** True: it takes images. */
  readonly vision?: boolean;
  readonly reasoning?: boolean;
  /** The levels that the model takes as an effort setting, `none` included where it can do without reasoning. Absent:
   * not known. */
  readonly efforts?: readonly string[];
  /** No longer offered; listed for old sessions. */
  readonly retired?: boolean;
}

/** USD per million tokens. The cache's prices fall back to `input`. */
export interface Price extends Rates {
  /** The rates of a whole request whose prompt (cached or not) is longer than `aboveTokens`. */
  readonly long?: Rates & { readonly aboveTokens: number };
}

export interface Rates {
  readonly input: number;
  readonly cacheRead?: number;
  readonly cacheWrite?: number;
  readonly output: number;
}
