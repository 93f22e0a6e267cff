import { isRecord, type Json } from '../../core/json.js';
import { parseData } from './answer.js';
import { messagesAnswer } from './messages-stream.js';
import type { ServerEvent, StreamDecoder, Wire, WireChunk, WireFields } from './wire.js';

/** Reads a Converse stream, whose frames are events here, or a whole answer. Its events are those of Messages under
 * other names, so they are read as such: reasoning is kept as `thinking` blocks. Usage follows the reason of the end, so
 * the answer is complete with `metadata`, or at the end of the stream. Source: Amazon Bedrock API Reference,
 * "ConverseStreamOutput" (read 2026-11). */
export const converseAnswer: Pick<Wire, 'decoder' | 'decodeBody'> = {
  decoder: (maxCalls) => new ConverseStream(messagesAnswer.decoder(maxCalls)),
  decodeBody: (body, maxCalls) => messagesAnswer.decodeBody(wholeMessage(body), maxCalls),
};

class ConverseStream implements StreamDecoder {
  readonly #messages: StreamDecoder;
  /** The kinds of the blocks that have begun, by their index: a start names only calls. */
  readonly #kinds = new Map<unknown, string>();

  constructor(messages: StreamDecoder) {
    this.#messages = messages;
  }

  push({ event, data }: ServerEvent): readonly WireChunk[] {
    const value = parseData(data);
    if (!isRecord(value)) return this.#messages.push({ event, data });
    return this.#events(event, value).flatMap((one) =>
      this.#messages.push({ event: String(one['type']), data: JSON.stringify(one) }),
    );
  }

  end(): readonly WireChunk[] {
    return this.#messages.end();
  }

  #events(event: string, value: WireFields): readonly WireFields[] {
    const index = value['contentBlockIndex'];
    switch (event) {
      case 'messageStart':
        return [{ type: 'message_start', message: {} }];
      case 'contentBlockStart':
        return this.#start(index, value['start']);
      case 'contentBlockDelta':
        return isRecord(value['delta']) ? this.#delta(index, value['delta']) : [];
      case 'contentBlockStop':
        return [{ type: 'content_block_stop', index }];
      case 'messageStop':
        return [{ type: 'message_delta', delta: { stop_reason: value['stopReason'] } }];
      case 'metadata':
        return [{ type: 'message_delta', usage: usageOf(value['usage']) }, { type: 'message_stop' }];
      default:
        return /(?:Exception|Error)$/i.test(event) ? [failure(event, value)] : [];
    }
  }

  #start(index: unknown, start: unknown): readonly WireFields[] {
    const call = isRecord(start) ? start['toolUse'] : undefined;
    if (!isRecord(call)) return [];
    const block = { type: 'tool_use', id: call['toolUseId'], name: call['name'], input: {} };
    return this.#begin(index, block);
  }

  #begin(index: unknown, block: WireFields & { readonly type: string }): readonly WireFields[] {
    this.#kinds.set(index, block.type);
    return [{ type: 'content_block_start', index, content_block: block }];
  }

  #delta(index: unknown, delta: WireFields): readonly WireFields[] {
    const { text, toolUse, reasoningContent } = delta;
    if (typeof text === 'string') return this.#piece(index, { type: 'text', text: '' }, { type: 'text_delta', text });
    if (isRecord(toolUse))
      return [
        { type: 'content_block_delta', index, delta: { type: 'input_json_delta', partial_json: toolUse['input'] } },
      ];
    return isRecord(reasoningContent) ? this.#reasoning(index, reasoningContent) : [];
  }

  #reasoning(index: unknown, { text, signature, redactedContent }: WireFields): readonly WireFields[] {
    if (typeof redactedContent === 'string')
      return this.#begin(index, { type: 'redacted_thinking', data: redactedContent });
    const start = { type: 'thinking', thinking: '', signature: '' };
    return typeof signature === 'string'
      ? this.#piece(index, start, { type: 'signature_delta', signature })
      : this.#piece(index, start, { type: 'thinking_delta', thinking: text });
  }

  /** Starts the block where it has none yet. */
  #piece(index: unknown, start: WireFields & { readonly type: string }, delta: WireFields): readonly WireFields[] {
    const begun = this.#kinds.get(index) === start.type ? [] : this.#begin(index, start);
    return [...begun, { type: 'content_block_delta', index, delta }];
  }
}

/** The statuses of the exceptions that a stream may end with; a broken model stream (424) may succeed again. Source:
 * "ConverseStreamOutput", the status of each. */
const statuses: Readonly<Record<string, string>> = {
  validationException: '400',
  accessDeniedException: '403',
  modelTimeoutException: '408',
  modelStreamErrorException: '500',
  throttlingException: '429',
  internalServerException: '500',
  serviceUnavailableException: '503',
};

function failure(event: string, value: WireFields): WireFields {
  const name = event.charAt(0).toLowerCase() + event.slice(1);
  const message = value['message'] ?? value['originalMessage'] ?? event;
  return { type: 'error', error: { type: name, code: statuses[name] ?? '500', message } };
}

/** Returns the counts under the names of Messages: those of the cache are not part of `inputTokens`. */
function usageOf(usage: unknown): WireFields {
  if (!isRecord(usage)) return {};
  return {
    input_tokens: usage['inputTokens'],
    output_tokens: usage['outputTokens'],
    cache_read_input_tokens: usage['cacheReadInputTokens'],
    cache_creation_input_tokens: usage['cacheWriteInputTokens'],
  };
}

/** Returns a whole answer as a whole message; anything else as it is. */
function wholeMessage(body: Json): Json {
  const message = isRecord(body) && isRecord(body['output']) ? body['output']['message'] : undefined;
  if (!isRecord(body) || !isRecord(message) || !Array.isArray(message['content'])) return body;
  const content = (message['content'] as readonly Json[]).flatMap(wholeBlock);
  return { content, stop_reason: body['stopReason'] ?? null, usage: usageOf(body['usage']) as Json };
}

function wholeBlock(block: Json): readonly Json[] {
  if (!isRecord(block)) return [];
  const { text, toolUse, reasoningContent } = block;
  if (typeof text === 'string') return [{ type: 'text', text }];
  if (isRecord(toolUse))
    return [
      { type: 'tool_use', id: toolUse['toolUseId'] ?? '', name: toolUse['name'] ?? '', input: toolUse['input'] ?? {} },
    ];
  if (!isRecord(reasoningContent)) return [];
  const { reasoningText, redactedContent } = reasoningContent;
  if (typeof redactedContent === 'string') return [{ type: 'redacted_thinking', data: redactedContent }];
  return isRecord(reasoningText)
    ? [{ type: 'thinking', thinking: reasoningText['text'] ?? '', signature: reasoningText['signature'] ?? '' }]
    : [];
}
