import { parseJson } from '../../core/json.js';
import { addAll } from '../../core/lists.js';
import { createHash } from 'node:crypto';
import { isRecord, type Json, jsonDepth, type JsonObject } from '../../core/json.js';
import type { AnsweredCall, AssistantMessage, Message, SentFile } from '../../core/projection.js';
import { wellFormed, wellFormedDeep } from '../../core/text.js';
import type { WireOptions } from './wire.js';

/** One element of a request's list of messages: its value, in the vendor's type, and its JSON text, written once. */
export interface WireItem<T> {
  readonly value: T;
  readonly text: string;
}

export function item<T>(value: T, text = JSON.stringify(value)): WireItem<T> {
  return { value, text };
}

/** Pieces of a message on a wire: the model's text and calls, the results of the calls, and the user's text. */
export interface Pieces<A, R, U> {
  readonly assistant: readonly WireItem<A>[];
  readonly results: readonly WireItem<R>[];
  readonly user: WireItem<U> | null;
}

/** Caches what a message became as long as the message object lives. `variant` names everything else that the pieces
 * depend on; a message keeps only its latest variant. A finished message keeps its identity in the projection, so a
 * long conversation is serialised once. */
export function pieceCache<P>(): (message: Message, variant: string, make: () => P) => P {
  const kept = new WeakMap<Message, { readonly variant: string; readonly pieces: P }>();
  return (message, variant, make) => {
    const known = kept.get(message);
    if (known?.variant === variant) return known.pieces;
    const pieces = make();
    kept.set(message, { variant, pieces });
    return pieces;
  };
}

/** Caches the text of an object other than a message (the tools), by its identity. */
export function textCache(): (key: object, make: () => string) => string {
  const kept = new WeakMap<object, string>();
  return (key, make) => {
    const known = kept.get(key);
    if (known !== undefined) return known;
    const text = make();
    kept.set(key, text);
    return text;
  };
}

/** Items that strict alternation adds to those of a wire. */
export interface Fillers<A, U> {
  /** A user item that says "Continue.". */
  readonly go: WireItem<U>;
  /** The model's item between a result and the next user item. Absent: none is needed. */
  readonly noted?: WireItem<A>;
  /** Joins two items of the user. */
  join(first: U, second: U): U;
}

/** Orders the items as strict chat templates demand (Mistral, Gemma): the user begins, two items of the user are
 * joined, and between two responses the user says something. */
export function alternating<A, R, U>(said: readonly Pieces<A, R, U>[], fillers: Fillers<A, U>): WireItem<A | R | U>[] {
  const items: WireItem<A | R | U>[] = [];
  let last: 'user' | 'result' | 'assistant' | null = null;
  let lastUser = fillers.go;
  const addUser = (user: WireItem<U>): void => {
    if (last === 'user') {
      items.pop();
      lastUser = item(fillers.join(lastUser.value, user.value));
    } else {
      if (last === 'result' && fillers.noted !== undefined) items.push(fillers.noted);
      lastUser = user;
    }
    items.push(lastUser);
    last = 'user';
  };
  for (const { assistant, results, user } of said) {
    if (assistant.length > 0) {
      if (last === null || last === 'assistant') items.push(fillers.go);
      last = 'assistant';
    }
    // A long conversation has thousands of items at each turn, so they are pushed one by one.
    for (const own of assistant) items.push(own);
    for (const result of results) items.push(result);
    if (results.length > 0) last = 'result';
    if (user !== null) addUser(user);
  }
  return items.length > 0 ? items : [fillers.go];
}

/** Returns the text of a message that carries the files of the results before it. */
export function filesOfResults(files: readonly SentFile[]): string {
  return `From the results above: ${files.map(({ name }) => name).join(', ')}`;
}

/** Marks the last item of the last two turns that are not the model's, so that the next request still hits the cache up
 * to the older mark. `isOwn`: the model's; `mark` gets no other item. */
export function markTurns<T>(
  items: readonly WireItem<T>[],
  isOwn: (value: T) => boolean,
  mark: (one: WireItem<T>) => WireItem<T>,
): readonly WireItem<T>[] {
  const ends = items.flatMap(({ value }, index) => {
    const next = items[index + 1];
    return isOwn(value) || (next !== undefined && !isOwn(next.value)) ? [] : [index];
  });
  const marked = new Set(ends.slice(-2));
  return items.map((one, index) => (marked.has(index) ? mark(one) : one));
}

/** Writes `value` as JSON without lone surrogates, so that a strict parser accepts it. */
export function jsonText(value: unknown): string {
  return JSON.stringify(wellFormedDeep(value));
}

/** A value of type `T` that is JSON text already: the parts of that text. */
export class Written<T> {
  declare readonly type: T;
  readonly parts: readonly string[];
  constructor(parts: readonly string[]) {
    this.parts = parts;
  }
}

/** Writes a list, with commas between the items. */
export function writtenList<T>(items: readonly WireItem<T>[]): Written<T[]> {
  const parts = ['['];
  for (const { text } of items) {
    if (parts.length > 1) parts.push(',');
    parts.push(text);
  }
  parts.push(']');
  return new Written(parts);
}

/** The body of a request in the vendor's type `P`, where any field may be written already. */
export type Body<P> = { readonly [K in keyof P]: P[K] | Written<P[K]> | undefined };

/** Writes a body as parts whose concatenation is its JSON text: its fields in order, without those that have no value
 * and those that the server refuses. A field of `extraBody` replaces the one of the same name, else it comes last. Two
 * requests share the parts that they have in common. */
export function bodyParts(
  fields: Readonly<Record<string, unknown>>,
  { extraBody, quirks }: Pick<WireOptions, 'extraBody' | 'quirks'>,
): string[] {
  const refused = new Set(quirks.refused_fields ?? []);
  const parts: string[] = [];
  for (const [name, value] of Object.entries({ ...fields, ...extraBody })) {
    if (value === undefined || refused.has(name)) continue;
    parts.push(`${parts.length === 0 ? '{' : ','}${JSON.stringify(name)}:`);
    if (value instanceof Written) for (const part of value.parts) parts.push(part);
    else parts.push(jsonText(value));
  }
  parts.push(parts.length === 0 ? '{}' : '}');
  return parts;
}

const maxDepth = 64;

/** Returns the arguments of a call as text that every server accepts: as received where they are a JSON object, else
 * `{}`. Source: contracts 2. */
export function argumentsText(received: string): string {
  if (jsonDepth(received, maxDepth) > maxDepth) return '{}';
  try {
    const value: unknown = parseJson(received);
    if (!isRecord(value)) return '{}';
    const sound = wellFormedDeep(value);
    return sound === value ? received : JSON.stringify(sound);
  } catch {
    return '{}';
  }
}

/** Returns a tool's name as vendors allow it. A model may have called a tool that does not exist, by any name. */
export function toolName(name: string): string {
  return name.replace(/[^\w-]/g, '_').slice(0, 64) || 'unknown';
}

/** Returns a call's id as a vendor allows it: unchanged where it fits `form`, else a digest. Ids are unique in a
 * conversation, and so are their digests. */
export function callId(id: string, form: RegExp, length = 24): string {
  if (form.test(id)) return id;
  return `call${createHash('sha256').update(wellFormed(id)).digest('hex')}`.slice(0, length);
}

/** Fields and id that go back with a call to the provider, wire and model that made it. */
export interface OwnExtra {
  /** Put into the call beside what the protocol describes. */
  readonly fields: JsonObject;
  /** The id as the server gave it; null where the plain one is sent. */
  readonly id: string | null;
}

/** Returns what the same provider, wire and model gave a call beyond its protocol; nothing for another, which would
 * refuse it. */
export function ownExtra({ extra }: AnsweredCall, api: string, options: WireOptions): OwnExtra {
  const isOwn = extra?.provider === options.provider && extra.api === api && extra.model === options.model;
  if (!isOwn || options.quirks.call_extras === false) return { fields: {}, id: null };
  const { fields, signed_id: id } = extra;
  return { fields: isRecord(fields) ? fields : {}, id: typeof id === 'string' ? id : null };
}

/** Returns the reasoning items of a response where the same provider, wire and model made it; no other can read
 * them. */
export function ownReasoning(message: AssistantMessage, api: string, options: WireOptions): readonly Json[] {
  const { data } = message;
  if (data?.provider !== options.provider || data.api !== api || data.model !== options.model) return [];
  // Chat Completions has fields for it, which its wire chooses.
  return api !== 'openai-chat' && options.quirks.reasoning_return === 'none' ? [] : (data.reasoning ?? []);
}

/** A part of a response in wire order. */
export type Part =
  | { readonly kind: 'item'; readonly item: Json }
  | { readonly kind: 'text'; readonly text: string; readonly phase?: string }
  | { readonly kind: 'call'; readonly call: AnsweredCall };

/** Part of an answer, in wire order: an item to keep byte for byte, `units` of text, or a call. */
export type SeenPieces =
  | { readonly kind: 'item'; readonly item: Json }
  | { readonly kind: 'text'; readonly units: number; readonly phase?: string }
  | { readonly kind: 'call' };

/** Returns the items to keep as `reasoning`. Where the order was not items, then text, then calls, markers between the
 * items give the places of text and calls (`layout_text` with its UTF-16 units, `layout_call`), because signed
 * reasoning must be returned in its place. */
export function keepLayout(seen: readonly SeenPieces[]): readonly Json[] {
  const items = seen.flatMap((part) => (part.kind === 'item' ? [part.item] : []));
  if (items.length === 0 || isPlain(seen)) return items;
  return seen.map((part): Json => {
    switch (part.kind) {
      case 'item':
        return part.item;
      case 'text':
        return { type: 'layout_text', units: part.units, ...(part.phase === undefined ? {} : { phase: part.phase }) };
      case 'call':
        return { type: 'layout_call' };
      default:
        return part satisfies never;
    }
  });
}

const order = { item: 0, text: 1, call: 2 } as const;

function isPlain(seen: readonly SeenPieces[]): boolean {
  return seen.every((part, index) => {
    const before = seen[index - 1];
    return (
      (part.kind !== 'text' || part.phase === undefined) &&
      (before === undefined || order[before.kind] <= order[part.kind])
    );
  });
}

/** Returns the parts of a response in their original order: `kept` is what `keepLayout` returned. Text and calls
 * without a marker come last. */
export function layOut(message: AssistantMessage, kept: readonly Json[]): Part[] {
  const parts: Part[] = [];
  const calls = [...message.calls];
  let at = 0;
  for (const item of kept) {
    const type = isRecord(item) ? item.type : undefined;
    if (type === 'layout_text' && isRecord(item)) {
      const end = at + (typeof item.units === 'number' ? item.units : 0);
      parts.push({
        kind: 'text',
        text: message.text.slice(at, end),
        ...(typeof item.phase === 'string' ? { phase: item.phase } : {}),
      });
      at = end;
    } else if (type === 'layout_call') {
      const call = calls.shift();
      if (call) parts.push({ kind: 'call', call });
    } else parts.push({ kind: 'item', item });
  }
  if (at < message.text.length) parts.push({ kind: 'text', text: message.text.slice(at) });
  addAll(
    parts,
    calls.map((call): Part => ({ kind: 'call', call })),
  );
  return parts;
}

/** Returns the readable text of a response's reasoning items; empty where there is none, or only encrypted text. */
export function reasoningText(items: readonly Json[]): string {
  return items
    .map(itemText)
    .filter((text) => text.trim() !== '')
    .join('\n\n');
}

/** Reads `thinking` (Messages), `content` or else `summary` as lists of texts (Responses), `text` or `summary` (Chat
 * Completions and OpenRouter). */
function itemText(item: Json): string {
  if (!isRecord(item)) return '';
  const { thinking, text, content, summary } = item;
  for (const said of [thinking, text, content, summary]) {
    const whole = Array.isArray(said)
      ? said.map((part) => (isRecord(part) && typeof part.text === 'string' ? part.text : '')).join('\n\n')
      : said;
    if (typeof whole === 'string' && whole.trim() !== '') return whole.trim();
  }
  return '';
}
