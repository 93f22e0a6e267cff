import { createHash } from 'node:crypto';
import { isRecord, type Json, jsonDepth, type JsonObject } from '../../core/json.js';
import type { AssistantMessage, Message } from '../../core/projection.js';
import { wellFormed, wellFormedDeep } from '../../core/text.js';
import type { WireOptions } from './wire.js';

/** One element of a request's list of messages: its value, in the vendor's type, and its JSON text, written once. */
export interface Item<T> {
  readonly value: T;
  readonly text: string;
}

export function item<T>(value: T, text = JSON.stringify(value)): Item<T> {
  return { value, text };
}

/** What a message becomes on a wire: what the model said, the results of its calls, and what the user wrote. */
export interface Pieces<A, R, U> {
  readonly assistant: readonly Item<A>[];
  readonly results: readonly Item<R>[];
  readonly user: Item<U> | null;
}

/** Remembers what a message became for as long as the message object lives. `variant` names everything else the pieces
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

/** The same for what does not belong to a message (the tools): by identity of the object. */
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

/** What strict alternation adds to a wire's items. */
export interface Fillers<A, U> {
  /** Says "Continue." for the user. */
  readonly go: Item<U>;
  /** Stands for the model between a result and what the user says next; absent where nobody needs it. */
  readonly noted?: Item<A>;
  /** Two items of the user as one. */
  join(first: U, second: U): U;
}

/** The items in order, as chat templates demand that let the sides take turns (Mistral, Gemma): the user begins, two
 * items of the user are one, and between two responses the user says something. */
export function alternating<A, R, U>(said: readonly Pieces<A, R, U>[], fillers: Fillers<A, U>): Item<A | R | U>[] {
  const items: Item<A | R | U>[] = [];
  let last: 'user' | 'result' | 'assistant' | null = null;
  let lastUser = fillers.go;
  const addUser = (user: Item<U>): void => {
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
    // One by one: of a long conversation these are thousands, at each turn.
    for (const own of assistant) items.push(own);
    for (const result of results) items.push(result);
    if (results.length > 0) last = 'result';
    if (user !== null) addUser(user);
  }
  return items.length > 0 ? items : [fillers.go];
}

/** Marks the last item of the last two turns that are not the model's, so that the next request still hits the cache up
 * to the older mark. `isOwn`: the model's; `mark` gets no other item. */
export function markTurns<T>(
  items: readonly Item<T>[],
  isOwn: (value: T) => boolean,
  mark: (one: Item<T>) => Item<T>,
): readonly Item<T>[] {
  const ends = items.flatMap(({ value }, index) => {
    const next = items[index + 1];
    return isOwn(value) || (next !== undefined && !isOwn(next.value)) ? [] : [index];
  });
  const marked = new Set(ends.slice(-2));
  return items.map((one, index) => (marked.has(index) ? mark(one) : one));
}

/** `value` as JSON text without lone surrogates, so that a strict parser takes it. */
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

/** The items of a list, commas between them. */
export function writtenList<T>(items: readonly Item<T>[]): Written<T[]> {
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

/** A body as parts whose concatenation is its JSON text: its fields in order, without those that have no value. The
 * fields of `extra` replace those of the same name and come last otherwise. What two requests have in common is the
 * same parts in both. */
export function bodyParts(fields: Readonly<Record<string, unknown>>, extra: JsonObject = {}): string[] {
  const parts: string[] = [];
  for (const [name, value] of Object.entries({ ...fields, ...extra })) {
    if (value === undefined) continue;
    parts.push(`${parts.length === 0 ? '{' : ','}${JSON.stringify(name)}:`);
    if (value instanceof Written) for (const part of value.parts) parts.push(part);
    else parts.push(jsonText(value));
  }
  parts.push(parts.length === 0 ? '{}' : '}');
  return parts;
}

const maxDepth = 64;

/** The arguments of a call as text that every server takes: as received where they are a JSON object, else `{}`.
 * Source: contracts 2. */
export function argumentsText(received: string): string {
  if (jsonDepth(received, maxDepth) > maxDepth) return '{}';
  try {
    const value: unknown = JSON.parse(received);
    if (!isRecord(value)) return '{}';
    const sound = wellFormedDeep(value);
    return sound === value ? received : JSON.stringify(sound);
  } catch {
    return '{}';
  }
}

/** A tool's name as vendors allow it. A model may have called one that does not exist, by any name. */
export function toolName(name: string): string {
  return name.replace(/[^\w-]/g, '_').slice(0, 64) || 'unknown';
}

/** A call's id as a vendor allows it: itself where it fits `form`, else a digest of it. Each id of a conversation is
 * unique, so its digests are. */
export function callId(id: string, form: RegExp, length = 24): string {
  if (form.test(id)) return id;
  return `call${createHash('sha256').update(wellFormed(id)).digest('hex')}`.slice(0, length);
}

/** The reasoning items of a response that this very provider, wire and model made; nobody else can read them. */
export function ownReasoning(message: AssistantMessage, api: string, options: WireOptions): readonly Json[] {
  const { data } = message;
  if (data?.provider !== options.provider || data.api !== api || data.model !== options.model) return [];
  return data.reasoning ?? [];
}
