import { isRecord, type Json, type JsonObject } from '../../core/json.js';
import type { ReceivedCall } from '../../core/provider.js';
import { WireAnswer, type Finish, isComplete, messagesUsage, parseData, plainText } from './answer.js';
import { type CallSlot, mergeFields, receivedCall, unknownFields, withoutRepeats } from './call-pieces.js';
import { isFailure } from './fault.js';
import { givenReason } from './finish-reasons.js';
import { keepLayout, type SeenPieces } from './pieces.js';
import type { WireFields, ServerEvent, StreamDecoder, Wire, WireChunk } from './wire.js';

/** Reads a Messages stream, or a whole `message`. A `stop_reason` completes the answer, even without `message_stop`. A
 * second `message_start` starts over, unless text was already shown. Source: Anthropic API reference, "Streaming
 * Messages" (read 2026-11); the recordings named in the tests. */
export const messagesAnswer: Pick<Wire, 'decoder' | 'decodeBody'> = {
  decoder: (maxCalls) => new MessagesStream(maxCalls),
  decodeBody: (body, maxCalls) => new MessagesStream(maxCalls).whole(body),
};

class MessagesStream implements StreamDecoder {
  readonly #answer: WireAnswer;
  #blocks: BlockPieces = blockPieces();
  #usage: WireFields = {};
  #reason: string | null = null;

  constructor(maxCalls: number | undefined) {
    this.#answer = new WireAnswer(maxCalls);
  }

  push({ event, data }: ServerEvent): readonly WireChunk[] {
    if (this.#answer.ended || data === '') return [];
    const value = parseData(data);
    // In an error event `type` may be the error's own (llama-server).
    if (event === 'error') this.#answer.failWith(value ?? data);
    else if (isRecord(value)) this.#event(typeof value.type === 'string' ? value.type : event, value);
    else if (isFailure(value)) this.#answer.failWith(value);
    else if (value === undefined && this.#reason === null && data.trim() !== '[DONE]')
      this.#answer.unreadable(plainText(data));
    return this.#answer.take();
  }

  end(): readonly WireChunk[] {
    if (this.#reason === null)
      this.#answer.unfinished('the stream ended without a stop reason', this.#rest('tool_use'));
    else this.#finish(this.#reason);
    return this.#answer.take();
  }

  whole(body: Json): readonly WireChunk[] {
    if (!isRecord(body) || !Array.isArray(body.content)) {
      this.#answer.notAnAnswer(body, 'a message');
      return this.#answer.take();
    }
    this.#report(body.usage);
    (body.content as readonly unknown[]).forEach((block, index) => {
      this.#event('content_block_start', { index, content_block: block });
      this.#event('content_block_stop', { index });
    });
    this.#finish(givenReason(body.stop_reason) ?? 'end_turn');
    return this.#answer.take();
  }

  #event(type: string, value: WireFields): void {
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
        if (isFailure(value)) this.#answer.failWith(value);
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
    if (!this.#blocks.takes(index, delta)) this.#answer.incomplete('a part of it arrived before its start');
    else this.#show(this.#blocks.delta(index, delta));
  }

  #show(said: { readonly type: 'text' | 'reasoning'; readonly text: string } | null): void {
    if (said !== null) this.#answer.say(said.type, said.text);
  }

  #messageDelta(value: WireFields): void {
    this.#report(value.usage);
    if (isRecord(value.delta)) this.#reason = givenReason(value.delta.stop_reason) ?? this.#reason;
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
    this.#answer.finish(this.#rest(reason));
  }

  #rest(reason: string): Finish {
    const calls = reason === 'pause_turn' ? [] : this.#blocks.calls();
    return { reason, calls, usage: messagesUsage(this.#usage), reasoning: this.#blocks.layout() };
  }
}

type Said = { readonly type: 'text' | 'reasoning'; readonly text: string } | null;

/** Joins the content blocks of a Messages stream. Servers put several blocks under one index, or give none, and send a
 * block again. */
interface BlockPieces {
  /** Returns the part of the block that is shown at once. */
  start(index: unknown, block: unknown): Said;
  /** False for a part of a block where none has started: something of the answer is missing. */
  takes(index: unknown, delta: WireFields): boolean;
  delta(index: unknown, delta: WireFields): Said;
  stop(index: unknown): void;
  /** The `tool_use` blocks in order, without repeats. */
  calls(): readonly ReceivedCall[];
  /** The blocks other than text and calls, byte for byte, with the places of text and calls. */
  layout(): readonly Json[];
  /** True while only thinking and calls have begun. */
  readonly onlyThought: boolean;
}

interface Block {
  readonly index: unknown;
  readonly start: JsonObject;
  readonly joined: Map<string, string>;
  /** Of a call: what its deltas add to the fields that the protocol does not describe. */
  fields: JsonObject;
  /** A call whose id changes from piece to piece. */
  hasManyIds: boolean;
  units: number;
  stopped: boolean;
}

function blockPieces(): BlockPieces {
  const blocks: Block[] = [];
  /** Returns the latest block of a kind under this index, or the latest that is open where there is no index. */
  const find = (index: unknown, kind: RegExp): Block | undefined => {
    const fits = ({ start }: Block): boolean => typeof start.type === 'string' && kind.test(start.type);
    if (typeof index === 'number') return blocks.findLast((block) => block.index === index && fits(block));
    return blocks.findLast((block) => !block.stopped && fits(block)) ?? blocks.findLast(fits);
  };
  const add = (index: unknown, start: JsonObject): Block => {
    const made = { index, start, joined: new Map(), fields: {}, hasManyIds: false, units: 0, stopped: false };
    blocks.push(made);
    return made;
  };
  const target = (index: unknown, delta: WireFields): Block | undefined => {
    const kind = delta.type === 'text_delta' ? 'text' : delta.type === 'thinking_delta' ? 'thinking' : null;
    if (kind === null) return find(index, typeof delta.partial_json === 'string' ? /tool_use$/ : /./);
    // Another block of the answer may have the same index.
    const other = find(index, /^text$|^thinking$|tool_use$/);
    return find(index, kind === 'text' ? /^text$/ : /^thinking$/) ?? (other && add(index, { type: kind, [kind]: '' }));
  };
  return {
    start(index, block) {
      if (!isRecord(block) || typeof block.type !== 'string') return null;
      const begun = block.type === 'tool_use' ? continued(find(index, /^tool_use$/), block) : null;
      if (begun !== null) return null;
      return takeShownPart(add(index, block as JsonObject), block);
    },
    takes: (index, delta) => target(index, delta) !== undefined || find(index, /./) !== undefined || !holdsPart(delta),
    delta(index, delta) {
      const block = target(index, delta);
      // The pieces of a call that is whole and over came again.
      if (!block || (block.stopped && isCall(block) && isComplete(block.joined.get('partial_json') ?? ''))) return null;
      for (const field of ['thinking', 'signature', 'partial_json', 'content'] as const) {
        const piece = delta[field];
        if (typeof piece === 'string') block.joined.set(field, (block.joined.get(field) ?? '') + piece);
      }
      if (block.start.type === 'tool_use') block.fields = mergeFields(block.fields, unknownFields(delta, deltaFields));
      return takeShownPart(block, delta);
    },
    stop(index) {
      const block = blocks.findLast((one) => one.index === index && !one.stopped);
      if (block) block.stopped = true;
    },
    calls: () => withoutRepeats(blocks.filter(isCall).map(callSlot)).map(receivedCall),
    layout() {
      const slots = blocks.filter(isCall).map(callSlot);
      const kept = withoutRepeats(slots).length;
      let calls = 0;
      return keepLayout(blocks.flatMap(describeBlock).filter((part) => part.kind !== 'call' || calls++ < kept));
    },
    get onlyThought() {
      return blocks.every(
        ({ start }) => start.type === 'thinking' || start.type === 'redacted_thinking' || start.type === 'tool_use',
      );
    },
  };
}

/** Returns the call of which this start is one more piece, or null: it has begun, its arguments are not whole, and this
 * start brings no name, id or input of another call. */
function continued(open: Block | undefined, start: WireFields): Block | null {
  if (open === undefined || open.stopped || open.start.name !== start.name) return null;
  if (isRecord(start.input) && Object.keys(start.input).length > 0) return null;
  const pieces = open.joined.get('partial_json') ?? '';
  const isSameId = open.start.id === start.id;
  if (isComplete(pieces) || (pieces.trim() === '' && !isSameId)) return null;
  open.hasManyIds ||= !isSameId;
  open.fields = mergeFields(open.fields, unknownFields(start, callFields));
  return open;
}

function takeShownPart(block: Block, fields: WireFields): Said {
  if (block.start.type === 'text' && typeof fields.text === 'string') {
    block.units += fields.text.length;
    return { type: 'text', text: fields.text };
  }
  return block.start.type === 'thinking' && typeof fields.thinking === 'string'
    ? { type: 'reasoning', text: fields.thinking }
    : null;
}

function holdsPart(delta: WireFields): boolean {
  return [delta.text, delta.thinking, delta.partial_json].some((part) => typeof part === 'string' && part !== '');
}

const callFields = new Set(['type', 'id', 'name', 'input']);
const deltaFields = new Set(['type', 'partial_json', 'text', 'thinking', 'content']);

function isCall({ start }: Block): boolean {
  return start.type === 'tool_use';
}

function callSlot({ index, start, joined, fields, hasManyIds }: Block): CallSlot {
  const pieces = joined.get('partial_json') ?? '';
  const whole = isRecord(start.input) ? JSON.stringify(start.input) : word(start.input);
  return {
    place: typeof index === 'number' ? index : null,
    id: word(start.id),
    name: word(start.name),
    arguments: pieces === '' ? whole : pieces,
    fields: mergeFields(unknownFields(start, callFields), fields),
    hasManyIds,
  };
}

function word(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function describeBlock(block: Block): readonly SeenPieces[] {
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
