import { isRecord, type Json, type JsonObject } from '../../core/json.js';
import type { ReceivedCall } from '../../core/provider.js';
import { Answer, type Finish, messagesUsage, parseData } from './answer.js';
import { keepLayout, type Seen } from './pieces.js';
import type { Fields, ServerEvent, StreamDecoder, Wire, WireChunk } from './wire.js';

/** Reads a Messages stream, or a whole `message`. A `stop_reason` completes the answer, even without `message_stop`. A
 * second `message_start` starts over, unless text was already shown. Source: Anthropic API reference, "Streaming
 * Messages" (read 2026-11); the recordings named in the tests. */
export const messagesAnswer: Pick<Wire, 'decoder' | 'decodeBody'> = {
  decoder: (maxCalls) => new MessagesStream(maxCalls),
  decodeBody: (body, maxCalls) => new MessagesStream(maxCalls).whole(body),
};

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

type Said = { readonly type: 'text' | 'reasoning'; readonly text: string } | null;

/** Joins the content blocks of a Messages stream. */
interface BlockPieces {
  /** Returns the part of the block that is shown at once. */
  start(index: unknown, block: unknown): Said;
  delta(index: unknown, delta: Fields): Said;
  stop(index: unknown): void;
  /** The `tool_use` blocks in order. */
  calls(): readonly ReceivedCall[];
  /** The blocks other than text and calls, byte for byte, with the places of text and calls. */
  layout(): readonly Json[];
  /** True while only thinking and calls have begun. */
  readonly onlyThought: boolean;
}

interface Block {
  readonly start: JsonObject;
  readonly joined: Map<string, string>;
  units: number;
  stopped: boolean;
}

/** Deltas for a block that never started are ignored. */
function blockPieces(): BlockPieces {
  const blocks = new Map<unknown, Block>();
  return {
    start(index, block) {
      if (!isRecord(block) || typeof block.type !== 'string') return null;
      const made: Block = { start: block as JsonObject, joined: new Map(), units: 0, stopped: false };
      blocks.set(index, made);
      return shown(made, block, 'text', 'thinking');
    },
    delta(index, delta) {
      const block = blocks.get(index);
      if (!block) return null;
      for (const field of ['thinking', 'signature', 'partial_json', 'content'] as const) {
        const piece = delta[field];
        if (typeof piece === 'string') block.joined.set(field, (block.joined.get(field) ?? '') + piece);
      }
      return shown(block, delta, 'text', 'thinking');
    },
    stop(index) {
      const block = blocks.get(index);
      if (block) block.stopped = true;
    },
    calls: () => [...blocks.values()].filter(({ start }) => start.type === 'tool_use').map(call),
    layout: () => keepLayout([...blocks.values()].flatMap(seen)),
    get onlyThought() {
      return [...blocks.values()].every(
        ({ start }) => start.type === 'thinking' || start.type === 'redacted_thinking' || start.type === 'tool_use',
      );
    },
  };
}

function shown(block: Block, fields: Fields, text: string, thinking: string): Said {
  if (block.start.type === 'text' && typeof fields[text] === 'string') {
    block.units += fields[text].length;
    return { type: 'text', text: fields[text] };
  }
  return block.start.type === 'thinking' && typeof fields[thinking] === 'string'
    ? { type: 'reasoning', text: fields[thinking] }
    : null;
}

function call({ start, joined }: Block): ReceivedCall {
  const pieces = joined.get('partial_json') ?? '';
  const whole = isRecord(start.input) ? JSON.stringify(start.input) : '';
  return { id: word(start.id), name: word(start.name), arguments: pieces === '' ? whole : pieces };
}

function word(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function seen(block: Block): readonly Seen[] {
  const { start } = block;
  if (start.type === 'text') return block.units === 0 ? [] : [{ kind: 'text', units: block.units }];
  if (start.type === 'tool_use') return [{ kind: 'call' }];
  const item = block.stopped ? whole(block) : null;
  return item === null ? [] : [{ kind: 'item', item }];
}

/** Returns the block as a whole message holds it; null for a server tool whose input is broken. */
function whole({ start, joined }: Block): Json | null {
  const input = joined.get('partial_json');
  const parsed = input === undefined || input === '' ? undefined : parseData(input);
  if (parsed === undefined && input !== undefined && input !== '') return null;
  const fields = [...joined]
    .filter(([name]) => name !== 'partial_json')
    .map(([name, text]) => [name, word(start[name]) + text] as const);
  return { ...start, ...Object.fromEntries(fields), ...(parsed === undefined ? {} : { input: parsed as Json }) };
}
