import { isRecord, type Json } from '../../core/json.js';
import type { ReceivedCall } from '../../core/provider.js';
import { Answer, chatUsage, type Finish, parseData, type Reported } from './answer.js';
import type { Fields, ServerEvent, StreamDecoder, Wire, WireChunk } from './wire.js';

/** Reads a Chat Completions stream as servers really send it, or a whole `chat.completion`. `finish_reason` ends an
 * answer, and so does `[DONE]` after a usage report where a server gives no reason at all (Snowflake). Source: OpenAI
 * API reference, "The chat completion chunk object" (read 2026-11); the recordings named in the tests. */
export const chatAnswer: Pick<Wire, 'decoder' | 'decodeBody'> = {
  decoder: (maxCalls) => new ChatStream(maxCalls),
  decodeBody: (body, maxCalls) => new ChatStream(maxCalls).whole(body),
};

class ChatStream implements StreamDecoder {
  readonly #answer: Answer;
  readonly #calls = callPieces();
  readonly #reasoning = reasoningPieces();
  #usage: Reported | null = null;
  #reason: string | null = null;
  #refused = false;
  #seen = false;

  constructor(maxCalls: number | undefined) {
    this.#answer = new Answer(maxCalls);
  }

  push({ event, data }: ServerEvent): readonly WireChunk[] {
    if (this.#answer.ended || data === '') return [];
    if (data === '[DONE]') return this.#done();
    const value = parseData(data);
    if (event === 'error') this.#answer.failWith(value ?? data);
    else if (isRecord(value)) this.#chunk(value, 'delta');
    else if (value === undefined && this.#reason === null) this.#answer.incomplete('an event of the stream is broken');
    return this.#answer.take();
  }

  end(): readonly WireChunk[] {
    if (this.#reason === null) this.#answer.incomplete('the stream ended without a finish reason');
    else this.#finish(this.#reason);
    return this.#answer.take();
  }

  whole(body: Json): readonly WireChunk[] {
    if (isRecord(body)) this.#chunk(body, 'message');
    if (!this.#answer.ended && this.#seen) this.#finish(this.#reason ?? 'stop');
    else this.#answer.fail('protocol', 'The server answered with JSON that is not a chat completion.', false);
    return this.#answer.take();
  }

  #done(): readonly WireChunk[] {
    return this.#reason === null && this.#usage !== null ? this.#complete('stop') : this.end();
  }

  #complete(reason: string): readonly WireChunk[] {
    this.#finish(reason);
    return this.#answer.take();
  }

  #chunk(value: Fields, field: 'delta' | 'message'): void {
    if (isFailure(value)) {
      this.#answer.failWith(value);
      return;
    }
    if (value.usage) this.#usage = chatUsage(value.usage) ?? this.#usage;
    else if (isRecord(value.x_groq)) this.#usage = chatUsage(value.x_groq.usage) ?? this.#usage;
    if (!Array.isArray(value.choices)) return;
    for (const choice of value.choices as readonly unknown[]) {
      if (isRecord(choice) && (choice.index === undefined || choice.index === null || choice.index === 0))
        this.#choice(choice, field);
    }
  }

  #choice(choice: Fields, field: 'delta' | 'message'): void {
    this.#seen = true;
    if (isRecord(choice.error)) {
      this.#answer.failWith(choice.error);
      return;
    }
    const delta = choice[field];
    if (isRecord(delta)) this.#delta(delta);
    if (choice.usage) this.#usage = chatUsage(choice.usage) ?? this.#usage;
    if (typeof choice.finish_reason === 'string' && choice.finish_reason !== '') this.#reason = choice.finish_reason;
    if (this.#reason === 'error') this.#answer.failWith({ message: 'The provider broke the answer off.' });
  }

  #delta(delta: Fields): void {
    const thought = this.#reasoning.add(delta);
    if (thought !== '') this.#answer.say('reasoning', thought);
    if (typeof delta.content === 'string') this.#answer.say('text', delta.content);
    else if (Array.isArray(delta.content)) for (const part of delta.content as readonly unknown[]) this.#part(part);
    if (typeof delta.refusal === 'string' && delta.refusal !== '') {
      this.#refused = true;
      this.#answer.say('text', delta.refusal);
    }
    this.#called(delta);
  }

  #called({ tool_calls: pieces, function_call: old }: Fields): void {
    if (Array.isArray(pieces))
      for (const piece of pieces as readonly unknown[]) this.#answer.countArguments(this.#calls.add(piece));
    // Some servers send an empty one beside `tool_calls` (Snowflake).
    if (isRecord(old) && (old.name || old.arguments))
      this.#answer.countArguments(this.#calls.add({ index: 0, function: old }));
    if (this.#answer.isOverCalled(() => this.#calls.count())) this.#finish('tool_calls');
  }

  /** Reads a part of the content (Mistral): text, or thinking that itself has parts. */
  #part(part: unknown): void {
    if (!isRecord(part)) return;
    if (part.type === 'text' && typeof part.text === 'string') this.#answer.say('text', part.text);
    else if (part.type === 'thinking' && Array.isArray(part.thinking)) {
      const text = (part.thinking as readonly unknown[])
        .map((inner) => (isRecord(inner) && typeof inner.text === 'string' ? inner.text : ''))
        .join('');
      this.#answer.say('reasoning', this.#reasoning.add({ reasoning_content: text }));
    }
  }

  #finish(reason: string): void {
    if (reason.toLowerCase() === 'insufficient_system_resource') {
      this.#answer.fail('network', 'The provider ran out of resources in the middle of the answer.', true);
      return;
    }
    const stop = this.#refused ? 'refusal' : (stops.get(reason.toLowerCase()) ?? 'unknown');
    this.#answer.finish({
      stop,
      reason,
      calls: this.#calls.calls(),
      usage: this.#usage,
      reasoning: this.#reasoning.items(),
    });
  }
}

/** True for `{error}` and vLLM's `{object: "error", message}`. */
function isFailure(value: Fields): boolean {
  return (value.error !== undefined && value.error !== null) || value.object === 'error';
}

const stops: ReadonlyMap<string, Finish['stop']> = new Map<string, Finish['stop']>([
  ['stop', 'stop'],
  ['end_turn', 'stop'],
  ['eos', 'stop'],
  ['eos_token', 'stop'],
  ['stop_sequence', 'stop'],
  ['complete', 'stop'],
  ['completed', 'stop'],
  ['tool_calls', 'tool'],
  ['tool_call', 'tool'],
  ['function_call', 'tool'],
  ['tool_use', 'tool'],
  ['length', 'length'],
  ['max_tokens', 'length'],
  ['max_output_tokens', 'length'],
  ['max_length', 'length'],
  ['model_length', 'length'],
  ['model_context_window_exceeded', 'length'],
  ['content_filter', 'content_filter'],
  ['safety', 'content_filter'],
  ['recitation', 'content_filter'],
  ['prohibited_content', 'content_filter'],
  ['sensitive', 'content_filter'],
  ['refusal', 'refusal'],
]);

interface Slot {
  id: string;
  name: string;
  arguments: string;
}

/** Joins the calls of a Chat Completions stream from their pieces. */
interface CallPieces {
  /** Takes one entry of `delta.tool_calls`. Returns its arguments. */
  add(piece: unknown): string;
  /** The calls so far, in order of their first piece. */
  calls(): readonly ReceivedCall[];
  /** How many calls have begun. */
  count(): number;
}

/** Joins pieces by `index`; where a server leaves it out, by `id`, else to the latest call. A new id, or a name after
 * complete arguments, starts a second call under the same index. */
function callPieces(): CallPieces {
  const slots: Slot[] = [];
  const byIndex = new Map<number, Slot>();
  return {
    add(piece) {
      if (!isRecord(piece)) return '';
      const made = isRecord(piece.function) ? piece.function : piece;
      const part: Slot = { id: word(piece.id), name: word(made.name), arguments: argumentsOf(made.arguments) };
      const index = typeof piece.index === 'number' ? piece.index : null;
      const found = index === null ? byId(slots, part.id) : byIndex.get(index);
      if (found === undefined || startsAnother(found, part)) {
        slots.push(part);
        if (index !== null) byIndex.set(index, part);
      } else append(found, part);
      return part.arguments;
    },
    calls: () => slots.map(({ id, name, arguments: text }) => ({ id, name, arguments: text })),
    count: () => slots.length,
  };
}

/** Returns the call of that id, or the latest where the piece has no id. */
function byId(slots: readonly Slot[], id: string): Slot | undefined {
  return id === '' ? slots.at(-1) : slots.findLast((slot) => slot.id === id);
}

function startsAnother(slot: Slot, part: Slot): boolean {
  if (part.id !== '' && slot.id !== '' && part.id !== slot.id) return true;
  return part.name !== '' && slot.name !== '' && part.arguments !== '' && isRecord(parseData(slot.arguments));
}

/** A name may be repeated in every piece, or be split into pieces before the arguments. */
function append(slot: Slot, part: Slot): void {
  if (slot.id === '') slot.id = part.id;
  if (slot.name === '') slot.name = part.name;
  else if (part.name !== slot.name && slot.arguments === '') slot.name += part.name;
  slot.arguments += part.arguments;
}

function argumentsOf(value: unknown): string {
  if (typeof value === 'string') return value;
  return isRecord(value) ? JSON.stringify(value) : '';
}

function word(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

type Item = Readonly<Record<string, Json>>;

/** The reasoning of a Chat Completions answer, as the items that are sent back. */
interface ReasoningPieces {
  /** Takes a delta or a whole message. Returns the part that is shown. */
  add(delta: Readonly<Record<string, unknown>>): string;
  /** Returns `{type: "reasoning_content", text}` for plain text, else the `reasoning_details` with the pieces of one
   * item joined. */
  items(): readonly Json[];
}

/** Reads `reasoning_content` (DeepSeek, Moonshot and others), `reasoning` (Groq, Ollama) or `reasoning_details`
 * (OpenRouter). */
function reasoningPieces(): ReasoningPieces {
  const details: Item[] = [];
  let plain = '';
  return {
    add(delta) {
      const found = Array.isArray(delta.reasoning_details)
        ? ((delta.reasoning_details as readonly unknown[]).filter(isRecord) as readonly Item[])
        : [];
      for (const detail of found) addDetail(details, detail);
      const said = text(delta.reasoning_content) || text(delta.reasoning);
      plain += said;
      return said === '' ? found.map((detail) => text(detail.text) || text(detail.summary)).join('') : said;
    },
    items() {
      if (details.length > 0) return details;
      return plain === '' ? [] : [{ type: 'reasoning_content', text: plain }];
    },
  };
}

/** The pieces of one item have the same `index`; its signature may come with any of them. Encrypted items are never
 * split. */
function addDetail(details: Item[], piece: Item): void {
  const last = details.at(-1);
  const field = piece.type === 'reasoning.text' ? 'text' : 'summary';
  if (
    last === undefined ||
    last.type !== piece.type ||
    last.index !== piece.index ||
    piece.type === 'reasoning.encrypted'
  ) {
    details.push(piece);
    return;
  }
  const given = Object.fromEntries(Object.entries(piece).filter(([, value]) => value !== null && value !== ''));
  details[details.length - 1] = { ...last, ...given, [field]: text(last[field]) + text(piece[field]) };
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
