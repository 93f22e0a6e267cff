import { isRecord, type Json, type JsonObject } from '../../core/json.js';
import { WireAnswer, chatUsage, type Finish, parseData, plainText, type Reported } from './answer.js';
import { type CallPiece, createCallPieces, hasOthers, mergeFields, unknownFields } from './call-pieces.js';
import { isFailure } from './fault.js';
import { givenReason } from './finish-reasons.js';
import type { WireFields, ServerEvent, StreamDecoder, Wire, WireChunk } from './wire.js';

/** Reads a Chat Completions stream as servers really send it, or a whole `chat.completion`. `finish_reason` ends an
 * answer, and so does `[DONE]` after a usage report where a server gives no reason at all (Snowflake). Source: OpenAI
 * API reference, "The chat completion chunk object" (read 2026-11); the recordings named in the tests. */
export const chatAnswer: Pick<Wire, 'decoder' | 'decodeBody'> = {
  decoder: (maxCalls) => new ChatStream(maxCalls),
  decodeBody: (body, maxCalls) => new ChatStream(maxCalls).whole(body),
};

class ChatStream implements StreamDecoder {
  readonly #answer: WireAnswer;
  readonly #calls = createCallPieces();
  readonly #reasoning = reasoningPieces();
  #fields: JsonObject = {};
  #usage: Reported | null = null;
  #reason: string | null = null;
  #isRefused = false;
  #hasCalls = false;
  #seen = false;

  constructor(maxCalls: number | undefined) {
    this.#answer = new WireAnswer(maxCalls);
  }

  push({ event, data }: ServerEvent): readonly WireChunk[] {
    if (this.#answer.ended || data === '') return [];
    if (data.trim() === '[DONE]') return this.#done();
    const value = parseData(data);
    const text = value === undefined ? plainText(data) : null;
    if (event === 'error') this.#answer.failWith(value ?? data);
    else if (isRecord(value)) this.#chunk(value, 'delta');
    else if (isFailure(value)) this.#answer.failWith(value);
    else if (value === undefined && this.#reason === null) this.#answer.unreadable(text);
    return this.#answer.take();
  }

  end(): readonly WireChunk[] {
    if (this.#reason === null)
      this.#answer.unfinished('the stream ended without a finish reason', this.#rest('tool_calls'));
    else this.#answer.finish(this.#rest(this.#reason));
    return this.#answer.take();
  }

  whole(body: Json): readonly WireChunk[] {
    if (isRecord(body)) this.#chunk(body, 'message');
    if (!this.#answer.ended && this.#seen) this.#answer.finish(this.#rest(this.#reason ?? 'stop'));
    else this.#answer.notAnAnswer(body, 'a chat completion');
    return this.#answer.take();
  }

  #done(): readonly WireChunk[] {
    if (this.#reason !== null || this.#usage === null) return this.end();
    this.#answer.finish(this.#rest('stop'));
    return this.#answer.take();
  }

  #chunk(value: WireFields, field: 'delta' | 'message'): void {
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

  #choice(choice: WireFields, field: 'delta' | 'message'): void {
    if (isRecord(choice.error)) {
      this.#answer.failWith(choice.error);
      return;
    }
    // A server that does not stream may send the whole message in its only event.
    const delta = choice[field] ?? (this.#seen ? undefined : choice.message);
    this.#seen = true;
    if (isRecord(delta)) this.#delta(delta);
    if (choice.usage) this.#usage = chatUsage(choice.usage) ?? this.#usage;
    this.#reason = givenReason(choice.finish_reason) ?? this.#reason;
  }

  #delta(delta: WireFields): void {
    const thought = this.#reasoning.add(delta);
    if (thought !== '') this.#answer.say('reasoning', thought);
    if (typeof delta.content === 'string') this.#answer.say('text', delta.content);
    else if (Array.isArray(delta.content)) for (const part of delta.content as readonly unknown[]) this.#part(part);
    if (typeof delta.refusal === 'string' && delta.refusal !== '') {
      this.#isRefused = true;
      this.#answer.say('text', delta.refusal);
    }
    // Nearly all of the thousands of deltas have nothing but known fields.
    if (hasOthers(delta, messageFields)) this.#keep(sealedFields(delta));
    this.#called(delta);
  }

  #keep(fields: JsonObject): void {
    if (Object.keys(fields).length === 0) return;
    this.#answer.countArguments(JSON.stringify(fields));
    this.#fields = mergeFields(this.#fields, fields);
  }

  #called({ tool_calls: pieces, function_call: old }: WireFields): void {
    if (Array.isArray(pieces)) for (const piece of pieces as readonly unknown[]) this.#piece(piece);
    // The older field repeats the call of `tool_calls`, or is empty (Snowflake).
    if (!this.#hasCalls && isRecord(old) && (old.name || old.arguments)) this.#add({ index: 0, function: old });
    if (this.#answer.isOverCalled(() => this.#calls.count())) this.#answer.finish(this.#rest('tool_calls'));
  }

  #piece(piece: unknown): void {
    if (!isRecord(piece)) return;
    this.#hasCalls = true;
    this.#add(piece);
  }

  #add(entry: WireFields): void {
    const piece = callPiece(entry);
    this.#calls.add(piece);
    this.#answer.countArguments(piece.arguments);
    if (Object.keys(piece.fields).length > 0) this.#answer.countArguments(JSON.stringify(piece.fields));
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

  /** Returns the end of the answer with this reason. */
  #rest(reason: string): Finish {
    const fields = Object.keys(this.#fields).length === 0 ? [] : [{ type: 'message_fields', fields: this.#fields }];
    return {
      reason,
      isRefused: this.#isRefused,
      calls: this.#calls.calls(),
      usage: this.#usage,
      reasoning: [...this.#reasoning.items(), ...fields],
    };
  }
}

/** The fields of an entry of `tool_calls`. The name and the arguments may lie beside `function`. */
const callFields = new Set(['index', 'id', 'type', 'function', 'name', 'arguments']);
const functionFields = new Set(['name', 'arguments']);

function callPiece(entry: WireFields): CallPiece {
  const made = isRecord(entry.function) ? entry.function : entry;
  const inFunction = made === entry ? {} : unknownFields(made, functionFields);
  const fields = unknownFields(entry, callFields);
  return {
    place: typeof entry.index === 'number' ? entry.index : null,
    id: word(entry.id),
    name: word(made.name),
    arguments: argumentsOf(made.arguments),
    fields: Object.keys(inFunction).length === 0 ? fields : { ...fields, function: inFunction },
  };
}

/** Returns the fields of a message that carry something signed or encrypted, which the server wants back with the
 * message. Source: Google, "Thought signatures" (OpenAI compatibility); LiteLLM, `provider_specific_fields`,
 * `thinking_blocks`; Vercel AI Gateway, `provider_metadata` (read 2026-11). */
function sealedFields(delta: WireFields): JsonObject {
  const unknown = unknownFields(delta, messageFields);
  return Object.fromEntries(Object.entries(unknown).filter(([name, value]) => isSealed(name, value, 0)));
}

const messageFields = new Set([
  'role',
  'content',
  'tool_calls',
  'function_call',
  'refusal',
  'reasoning',
  'reasoning_content',
  'reasoning_details',
  'annotations',
  'audio',
]);

function isSealed(name: string, value: unknown, depth: number): boolean {
  if (/signature|encrypted|extra_content/i.test(name)) return true;
  if (depth > 6 || typeof value !== 'object' || value === null) return false;
  return Object.entries(value).some(([inner, item]) => isSealed(inner, item, depth + 1));
}

function argumentsOf(value: unknown): string {
  if (typeof value === 'string') return value;
  return isRecord(value) ? JSON.stringify(value) : '';
}

function word(value: unknown): string {
  return typeof value === 'string' ? value : typeof value === 'number' ? String(value) : '';
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

/** Adds a piece of reasoning. The pieces of one item have the same `index`; its signature may come with any of them.
 * Encrypted items are never split. */
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
