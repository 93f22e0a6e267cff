import type { Message } from '../../core/conversation.js';
import type { JsonObject } from '../../core/json.js';
import { wellFormedDeep } from '../../core/text.js';

/** What a message becomes on a wire: JSON texts of the assistant's side, then of the user's side (results, or what the user wrote). */
export interface Pieces { readonly assistant: readonly string[]; readonly user: readonly string[] }

/** Neighbouring pieces of one side. */
export interface Side { readonly side: keyof Pieces; readonly items: string[] }

/** Remembers what a message became for as long as the message object lives. `variant` names everything else the pieces depend on; a message keeps
 *  only its latest variant. A finished message keeps its identity in the projection, so a long conversation is serialised once. */
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

/** Marks the last item of the last two user sides, so that the next request still hits the cache up to the older mark. */
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

/** A body from its fields in order, as parts whose concatenation is its JSON text; a field without a value is left out. The fields of `extra` replace
 *  those of the same name and come last otherwise. What two requests have in common is the same parts in both. */
export function bodyParts(fields: readonly (readonly [name: string, value: Value])[], extra: JsonObject = {}): string[] {
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
