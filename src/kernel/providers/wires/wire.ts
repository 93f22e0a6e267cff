import { parseJson } from '../../core/json.js';
import type { Stop, TokenUsage } from '../../core/event.js';
import type { Json, JsonObject } from '../../core/json.js';
import type { Conversation } from '../../core/projection.js';
import type { Fault, ReceivedCall } from '../../core/provider.js';
import type { Quirks } from '../quirks.js';
import { fault, httpFault } from './fault.js';

/** One provider protocol as a pure pair: canonical → request body, stream → canonical. It does no HTTP. */
export interface Wire {
  /** Its name in the table of wires. */
  readonly api: string;
  /** Appended to the base URL, for example `/chat/completions`. */
  readonly path: string;
  /** The SDK that carries its requests. */
  readonly client: 'openai' | 'anthropic' | 'none';
  /** Returns the body of the next request as parts of a JSON text; the same input gives the same text. Caches what a
   * message became as long as the message object lives, so that a long conversation is serialised once. */
  requestParts(conversation: Conversation, options: WireOptions): readonly string[];
  /** Returns the same body as an object, to show it: `JSON.parse` of those parts. */
  request(conversation: Conversation, options: WireOptions): JsonObject;
  /** Reads one streamed answer. It is complete with `maxCalls` calls once more have begun. */
  decoder(maxCalls?: number): StreamDecoder;
  /** Reads an answer that is one JSON document although a stream was asked for. */
  decodeBody(body: Json, maxCalls?: number): readonly WireChunk[];
  /** Reads the error body of an answer that is not 2xx. It does not read the wait that the server asks for. */
  fault(status: number, body: string): Fault;
}

export interface WireOptions {
  readonly provider: string;
  readonly model: string;
  readonly toolChoice: 'auto' | 'none';
  readonly quirks: Quirks;
  /** Facts of the model table. Absent: none are known. */
  readonly facts?: WireFacts;
  /** Its fields replace those of the body (`extra_body` in the configuration). */
  readonly extraBody?: JsonObject;
}

/** `efforts`: the effort levels that the model takes; null where not known. */
export interface WireFacts {
  readonly efforts: readonly string[] | null;
  readonly maxOutputTokens: number | null;
}

/** One server-sent event: `event` is its type ('' where none was given), `data` its lines joined with "\n". */
export interface ServerEvent {
  readonly event: string;
  readonly data: string;
}

export interface StreamDecoder {
  /** Decodes an event. Ignores unknown events; broken JSON before the answer is complete is a `stream_incomplete`
   * fault. Never throws. */
  push(event: ServerEvent): readonly WireChunk[];
  /** Ends the connection. Returns calls, usage and `end` where the answer is complete, else a `stream_incomplete`
   * fault; nothing where an `end` or `fault` was already returned. */
  end(): readonly WireChunk[];
}

/** A JSON object that a server sent; nothing of it is checked. */
export type WireFields = Readonly<Record<string, unknown>>;

/** Text is well-formed in every chunk, even where a server splits a surrogate pair. Calls come whole, right before
 * `end`, and never with a refusal. The caller may retry after a `retryable` fault. */
export type WireChunk =
  | { readonly type: 'text' | 'reasoning'; readonly text: string }
  | { readonly type: 'tool_call'; readonly call: ReceivedCall }
  | {
      readonly type: 'usage';
      readonly usage: TokenUsage;
      /** Cost in USD by the provider's own account (OpenRouter). */ readonly costUsd?: number;
    }
  | { readonly type: 'end'; readonly stop: Exclude<Stop, 'interrupted'>; readonly reasoning?: readonly Json[] }
  | {
      readonly type: 'fault';
      readonly fault: Fault;
      readonly retryable: boolean;
      /** Text of the server, where it reported the failure. */ readonly said?: string;
      /** The rest of the answer, where it lacks nothing but a finish reason. */
      readonly unfinished?: readonly WireChunk[];
    };

/** Makes a wire from its parts: it shows what it sends, and all wires read errors the same way. */
export function buildWire(
  parts: Pick<Wire, 'api' | 'path' | 'client' | 'requestParts' | 'decoder' | 'decodeBody'>,
): Wire {
  return {
    ...parts,
    request: (conversation, options) => parseJson(parts.requestParts(conversation, options).join('')) as JsonObject,
    decodeBody: (body, maxCalls) =>
      isWritable(body)
        ? parts.decodeBody(body, maxCalls)
        : [
            {
              type: 'fault',
              fault: fault('protocol', 'The server answered with JSON that is nested too deep.'),
              retryable: false,
            },
          ],
    fault: httpFault,
  };
}

/** Returns false for a parsed value that is nested too deep to be written again. */
function isWritable(body: Json): boolean {
  try {
    return JSON.stringify(body) !== '';
  } catch {
    return false;
  }
}
