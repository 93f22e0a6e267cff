import { isRecord, type Json } from '../../core/json.js';
import type { AnsweredCall, AssistantMessage } from '../../core/projection.js';

/** A part of a response in wire order. */
export type Part =
  | { readonly kind: 'item'; readonly item: Json }
  | { readonly kind: 'text'; readonly text: string; readonly phase?: string }
  | { readonly kind: 'call'; readonly call: AnsweredCall };

/** What a decoder saw, in wire order: an item to keep byte for byte, `units` of text, or a call. */
export type Seen =
  | { readonly kind: 'item'; readonly item: Json }
  | { readonly kind: 'text'; readonly units: number; readonly phase?: string }
  | { readonly kind: 'call' };

/** Returns the items to keep as `reasoning`. Where the order was not items, then text, then calls, markers between the
 * items give the places of text and calls (`layout_text` with its UTF-16 units, `layout_call`), because signed
 * reasoning must be returned in its place. */
export function keepLayout(seen: readonly Seen[]): readonly Json[] {
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

function isPlain(seen: readonly Seen[]): boolean {
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
  parts.push(...calls.map((call): Part => ({ kind: 'call', call })));
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
