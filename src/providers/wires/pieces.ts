import { createHash } from 'node:crypto';
import { isRecord, type Json, jsonDepth, type JsonObject } from '../../core/json.js';
import type { AssistantMessage, Message } from '../../core/projection.js';
import { wellFormed, wellFormedDeep } from '../../core/text.js';
import type { WireOptions } from './wire.js';

/** What a message becomes on a wire: JSON texts of the assistant's side, then of the user's side (results, or what the
 * user wrote). */
export interface Pieces {
  readonly assistant: readonly string[];
  readonly user: readonly string[];
}

/** Neighbouring pieces of one side. */
export interface Side {
  readonly side: keyof Pieces;
  readonly items: string[];
}

/** Remembers what a message became for as long as the message object lives. `variant` names everything else the pieces
 * depend on; a message keeps only its latest variant. A finished message keeps its identity in the projection, so a
 * long conversation is serialised once. */
export function pieceCache(): (message: Message, variant: string, make: () => Pieces) => Pieces {
  const kept = new WeakMap<Message, { readonly variant: string; readonly pieces: Pieces }>();
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

/** The pieces with neighbours of one side merged. */
export function mergeSides(pieces: readonly Pieces[]): Side[] {
  const sides: Side[] = [];
  const add = (side: keyof Pieces, items: readonly string[]): void => {
    if (items.length === 0) return;
    const last = sides.at(-1);
    if (last?.side === side) last.items.push(...items);
    else sides.push({ side, items: [...items] });
  };
  for (const piece of pieces) {
    add('assistant', piece.assistant);
    add('user', piece.user);
  }
  return sides;
}

/** What a wire's items are to strict alternation. */
export interface ItemForms {
  /** Says "Continue." for the user. */
  readonly go: string;
  /** Stands for the model between a result and what the user says next; absent where nobody needs it. */
  readonly noted?: string;
  isResult(item: string): boolean;
  /** Two items of the user as one. */
  join(first: string, second: string): string;
}

type Spoke = 'user' | 'result' | 'assistant' | null;

/** The items in order, as chat templates demand that let the sides take turns (Mistral, Gemma): the user begins, two
 * items of the user are one, and between two responses the user says something. */
export function alternating(said: readonly Pieces[], forms: ItemForms): string[] {
  const items: string[] = [];
  let last: Spoke = null;
  for (const { assistant, user } of said) {
    if (assistant.length > 0) {
      if (last === null || last === 'assistant') items.push(forms.go);
      for (const item of assistant) items.push(item);
      last = 'assistant';
    }
    for (const item of user) last = addAnswer(items, item, last, forms);
  }
  return items;
}

/** Adds what stands on the user's side: a result, or what the user says. Returns which it is. */
function addAnswer(items: string[], item: string, last: Spoke, forms: ItemForms): Spoke {
  if (forms.isResult(item)) {
    items.push(item);
    return 'result';
  }
  if (last === 'user') items.push(forms.join(items.pop() ?? '', item));
  else items.push(...(last === 'result' && forms.noted !== undefined ? [forms.noted] : []), item);
  return 'user';
}

/** Two JSON texts that end with a string, each after `head`, as one with both strings, a blank line between them. */
export function joinTexts(first: string, second: string, head: string): string {
  return `${first.slice(0, -2)}\\n\\n${second.slice(head.length + 1)}`;
}

/** Marks the last item of the last two user sides, so that the next request still hits the cache up to the older
 * mark. */
export function markSides(sides: readonly Side[], mark: (item: string) => string): void {
  for (const { items } of sides.filter(({ side }) => side === 'user').slice(-2)) {
    const last = items.pop();
    if (last !== undefined) items.push(mark(last));
  }
}

/** `value` as JSON text without lone surrogates, so that a strict parser takes it. */
export function jsonText(value: unknown): string {
  return JSON.stringify(wellFormedDeep(value));
}

/** A field's value: JSON text, or the parts of one. */
type Value = string | readonly string[] | undefined;

/** A body from its fields in order, as parts whose concatenation is its JSON text; a field without a value is left out.
 * The fields of `extra` replace those of the same name and come last otherwise. What two requests have in common is the
 * same parts in both. */
export function bodyParts(
  fields: readonly (readonly [name: string, value: Value])[],
  extra: JsonObject = {},
): string[] {
  const body = new Map<string, string | readonly string[]>();
  for (const [name, value] of fields) if (value !== undefined) body.set(name, value);
  for (const [name, value] of Object.entries(extra)) body.set(name, jsonText(value));
  const parts: string[] = [];
  for (const [name, value] of body) {
    parts.push(`${parts.length === 0 ? '{' : ','}${JSON.stringify(name)}:`);
    if (typeof value === 'string') parts.push(value);
    else for (const part of value) parts.push(part);
  }
  parts.push(parts.length === 0 ? '{}' : '}');
  return parts;
}

/** The elements of a JSON array as parts, commas between them. */
export function listParts(items: readonly string[]): string[] {
  const parts = ['['];
  for (const item of items) {
    if (parts.length > 1) parts.push(',');
    parts.push(item);
  }
  parts.push(']');
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
