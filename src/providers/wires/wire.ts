import type { Stop, Usage } from '../../core/event.js';
import type { Json, JsonObject } from '../../core/json.js';
import type { Conversation } from '../../core/projection.js';
import type { Fault, ReceivedCall } from '../../core/provider.js';
import type { Quirks } from '../quirks.js';
import { fault, httpFault } from './fault.js';

/** One provider protocol as a pure pair: canonical → request body, stream → canonical. No HTTP in here. */
export interface Wire {
  /** Its name in the table of wires. */
  readonly api: string;
  /** Appended to the base URL, for example `/chat/completions`. */
  readonly path: string;
  /** The SDK that carries its requests. */
  readonly client: 'openai' | 'anthropic';
  /** The body of the next request as parts of a JSON text; the same input gives the same text. What was made of a
   * message is kept for as long as that message object lives, so that a long conversation is not serialised again. */
  requestParts(conversation: Conversation, options: WireOptions): readonly string[];
  /** The same body as an object, to show it. Always `JSON.parse` of those parts. */
  request(conversation: Conversation, options: WireOptions): JsonObject;
  /** Reads one streamed answer. Once more than `maxCalls` calls have begun, it is complete with so many. */
  decoder(maxCalls?: number): StreamDecoder;
  /** Reads an answer that came whole (`application/json`) although a stream was asked for. */
  decodeBody(body: Json, maxCalls?: number): readonly WireChunk[];
  /** Reads an error body of a non-2xx answer. `retryAfterMs` is not its business. */
  fault(status: number, body: string): Fault;
}

export interface WireOptions {
  readonly provider: string;
  readonly model: string;
  readonly toolChoice: 'auto' | 'none';
  readonly quirks: Quirks;
  /** What the model table knows of the model; absent: nothing. */
  readonly facts?: WireFacts;
  /** Its fields replace those of the body (`extra_body` in the configuration). */
  readonly extraBody?: JsonObject;
}

/** `efforts`: the levels that the model takes. Null: not known. */
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
  /** What this event means. Unknown events mean nothing; broken JSON before the answer is complete is a
   * `stream_incomplete` fault. Never throws. */
  push(event: ServerEvent): readonly WireChunk[];
  /** The connection has ended. Yields calls, usage and `end` where the answer was complete, else a `stream_incomplete`
   * fault. Yields nothing when an `end` or `fault` was already given. */
  end(): readonly WireChunk[];
}

/** A JSON object that a server sent; nothing of it is checked. */
export type Fields = Readonly<Record<string, unknown>>;

/** Text is well-formed in every chunk: a surrogate pair that a server split is given whole. Calls are given only right
 * before `end`, whole, and never with a refusal. `retryable` faults may be tried again by the caller. */
export type WireChunk =
  | { readonly type: 'text' | 'reasoning'; readonly text: string }
  | { readonly type: 'tool_call'; readonly call: ReceivedCall }
  | {
      readonly type: 'usage';
      readonly usage: Usage;
      /** What the provider says it cost, in USD (OpenRouter). */ readonly costUsd?: number;
    }
  | { readonly type: 'end'; readonly stop: Exclude<Stop, 'interrupted'>; readonly reasoning?: readonly Json[] }
  | { readonly type: 'fault'; readonly fault: Fault; readonly retryable: boolean };

/** A wire from its parts: what is shown is what is sent, and errors read alike on all of them. */
export function buildWire(
  parts: Pick<Wire, 'api' | 'path' | 'client' | 'requestParts' | 'decoder' | 'decodeBody'>,
): Wire {
  return {
    ...parts,
    request: (conversation, options) => JSON.parse(parts.requestParts(conversation, options).join('')) as JsonObject,
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

/** What was parsed may be nested deeper than can be written again. */
function isWritable(body: Json): boolean {
  try {
    return JSON.stringify(body) !== '';
  } catch {
    return false;
  }
}
