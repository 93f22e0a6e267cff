import { isRecord, type Json } from '../../core/json.js';
import type { ReceivedCall } from '../../core/provider.js';
import { Answer, parseData, type Finish } from './wire-answer.js';
import { blockPieces, type BlockPieces } from './messages-blocks.js';
import { messagesUsage } from './wire-usage.js';
import type { Fields, ServerEvent, StreamDecoder, WireChunk } from './wire.js';

/** Reads a Messages stream. A `stop_reason` completes the answer, also where `message_stop` never comes. A second
 * `message_start` starts over, unless text was shown already. Source: Anthropic API reference, "Streaming Messages"
 * (read 2026-11); the recordings named in the tests. */
export function messagesDecoder(maxCalls?: number): StreamDecoder {
  return new MessagesStream(maxCalls);
}

/** Reads a whole `message`. */
export function messagesBody(body: Json, maxCalls?: number): readonly WireChunk[] {
  return new MessagesStream(maxCalls).whole(body);
}

class MessagesStream implements StreamDecoder {
  readonly #answer: Answer;
  #blocks: BlockPieces = blockPieces();
  #usage: Fields = {};
  #reason: string | null = null;

  constructor(maxCalls: number | undefined) {
    this.#answer = new Answer(maxCalls);
  }

  push({ event, data }: ServerEvent): readonly WireChunk[] {
    if (this.#answer.ended || data === '') return [];
    const value = parseData(data);
    // In an error event `type` may be the error's own (llama-server).
    if (isRecord(value)) this.#event(event !== 'error' && typeof value.type === 'string' ? value.type : event, value);
    else if (value === undefined && this.#reason === null && data !== '[DONE]')
      this.#answer.incomplete('an event of the stream is broken');
    return this.#answer.take();
  }

  end(): readonly WireChunk[] {
    if (this.#reason === null) this.#answer.incomplete('the stream ended without a stop reason');
    else this.#finish(this.#reason);
    return this.#answer.take();
  }

  whole(body: Json): readonly WireChunk[] {
    if (!isRecord(body) || !Array.isArray(body.content)) {
      if (isRecord(body) && body.error !== undefined) this.#answer.failWith(body);
      else this.#answer.fail('protocol', 'The server answered with JSON that is not a message.', false);
      return this.#answer.take();
    }
    this.#report(body.usage);
    (body.content as readonly unknown[]).forEach((block, index) => {
      this.#event('content_block_start', { index, content_block: block });
      this.#event('content_block_stop', { index });
    });
    this.#finish(typeof body.stop_reason === 'string' ? body.stop_reason : 'end_turn');
    return this.#answer.take();
  }

  #event(type: string, value: Fields): void {
    switch (type) {
      case 'message_start':
        this.#start(value.message);
        break;
      case 'content_block_start':
        this.#begin(value.index, value.content_block);
        break;
      case 'content_block_delta':
        this.#delta(value.index, value.delta);
        break;
      case 'content_block_stop':
        this.#blocks.stop(value.index);
        break;
      case 'message_delta':
        this.#messageDelta(value);
        break;
      case 'message_stop':
        this.#finish(this.#reason ?? 'end_turn');
        break;
      case 'error':
        this.#answer.failWith(value);
        break;
      default:
        if (value.error !== undefined && value.error !== null) this.#answer.failWith(value);
    }
  }

  #start(message: unknown): void {
    if (this.#answer.spoke && !this.#blocks.onlyThought) {
      this.#answer.incomplete('the provider started a second answer in the middle of the first');
      return;
    }
    this.#blocks = blockPieces();
    this.#reason = null;
    this.#usage = {};
    if (isRecord(message)) this.#report(message.usage);
  }

  #begin(index: unknown, block: unknown): void {
    this.#show(this.#blocks.start(index, block));
    if (isRecord(block) && block.type === 'tool_use' && this.#answer.isOverCalled(() => this.#blocks.calls().length))
      this.#finish('tool_use');
  }

  #delta(index: unknown, delta: unknown): void {
    if (!isRecord(delta)) return;
    if (typeof delta.partial_json === 'string') this.#answer.countArguments(delta.partial_json);
    this.#show(this.#blocks.delta(index, delta));
  }

  #show(said: { readonly type: 'text' | 'reasoning'; readonly text: string } | null): void {
    if (said !== null) this.#answer.say(said.type, said.text);
  }

  #messageDelta(value: Fields): void {
    this.#report(value.usage);
    if (isRecord(value.delta) && typeof value.delta.stop_reason === 'string') this.#reason = value.delta.stop_reason;
  }

  /** Counts are cumulative: a later number replaces an earlier one, a null does not. */
  #report(usage: unknown): void {
    if (!isRecord(usage)) return;
    this.#usage = {
      ...this.#usage,
      ...Object.fromEntries(Object.entries(usage).filter(([, value]) => value !== null)),
    };
  }

  #finish(reason: string): void {
    const paused = reason === 'pause_turn';
    const calls: readonly ReceivedCall[] = paused ? [] : this.#blocks.calls();
    const reasoning: readonly Json[] = this.#blocks.layout();
    this.#answer.finish({
      stop: stops.get(reason) ?? 'unknown',
      reason,
      calls,
      usage: messagesUsage(this.#usage),
      reasoning,
    });
  }
}

const stops: ReadonlyMap<string, Finish['stop']> = new Map<string, Finish['stop']>([
  ['end_turn', 'stop'],
  ['stop_sequence', 'stop'],
  ['pause_turn', 'pause'],
  ['compaction', 'stop'],
  ['tool_use', 'tool'],
  ['max_tokens', 'length'],
  ['model_context_window_exceeded', 'length'],
  ['refusal', 'refusal'],
]);
