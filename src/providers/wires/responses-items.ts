import { isRecord, type Json } from '../../core/json.js';
import type { ReceivedCall } from '../../core/provider.js';
import { keepLayout, type Seen } from './wire-layout.js';
import type { Fields } from './wire.js';

/** Puts the output items of a Responses stream together. */
export interface ItemPieces {
  /** An item that began, or came whole (`done`). Returns text of it that no delta gave. */
  item(item: unknown, event: Fields, done: boolean): string;
  /** Text of a message came. */
  text(event: Fields, piece: string): void;
  /** True where text of this message came before. */
  hasText(event: Fields): boolean;
  arguments(event: Fields, piece: string, whole: boolean): void;
  calls(): readonly ReceivedCall[];
  /** Every item but messages and calls, byte for byte, with where those stood. */
  layout(): readonly Json[];
  readonly empty: boolean;
}

interface Item {
  item: Fields;
  done: boolean;
  units: number;
  arguments: string;
}

/** Items that ask the client for something other than a function call: left out of the history, since nobody answers
 * them. */
const foreignCalls = new Set([
  'local_shell_call',
  'shell_call',
  'apply_patch_call',
  'computer_call',
  'custom_tool_call',
  'mcp_approval_request',
  'tool_search_call',
]);

/** Items belong together by id, else by `output_index`; servers leave out either. */
export function itemPieces(): ItemPieces {
  const items: Item[] = [];
  const byKey = new Map<unknown, Item>();
  const find = (event: Fields): Item | undefined =>
    byKey.get(event.item_id) ?? (typeof event.output_index === 'number' ? byKey.get(event.output_index) : undefined);
  const add = (item: Fields, event: Fields): Item => {
    const made: Item = { item, done: false, units: 0, arguments: '' };
    items.push(made);
    if (typeof item.id === 'string' && item.id !== '') byKey.set(item.id, made);
    if (typeof event.output_index === 'number') byKey.set(event.output_index, made);
    return made;
  };
  return {
    item(value, event, done) {
      if (!isRecord(value)) return '';
      const found =
        (typeof value.id === 'string' && value.id !== '' ? byKey.get(value.id) : undefined) ??
        find(event) ??
        add(value, event);
      if (!done) return '';
      found.item = value;
      found.done = true;
      if (value.type === 'function_call' && typeof value.arguments === 'string' && value.arguments !== '')
        found.arguments = value.arguments;
      if (value.type !== 'message' || found.units > 0) return '';
      const text = textOf(value.content);
      found.units = text.length;
      return text;
    },
    text(event, piece) {
      const found = find(event) ?? add({ type: 'message', id: event.item_id }, event);
      found.units += piece.length;
    },
    hasText: (event) => (find(event)?.units ?? 0) > 0,
    arguments(event, piece, whole) {
      const found = find(event);
      if (found) found.arguments = whole && piece !== '' ? piece : whole ? found.arguments : found.arguments + piece;
    },
    calls: () => items.filter(({ item }) => item.type === 'function_call').map(call),
    layout: () => keepLayout(items.flatMap(seen)),
    get empty() {
      return items.length === 0;
    },
  };
}

function call({ item, arguments: text }: Item): ReceivedCall {
  return { id: word(item.call_id) || word(item.id), name: word(item.name), arguments: text };
}

function word(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function seen({ item, done, units }: Item): readonly Seen[] {
  if (item.type === 'message')
    return units === 0
      ? []
      : [{ kind: 'text', units, ...(typeof item.phase === 'string' ? { phase: item.phase } : {}) }];
  if (item.type === 'function_call') return [{ kind: 'call' }];
  return done && typeof item.type === 'string' && !foreignCalls.has(item.type)
    ? [{ kind: 'item', item: item as Json }]
    : [];
}

function textOf(content: unknown): string {
  if (!Array.isArray(content)) return '';
  return (content as readonly unknown[])
    .map((part) => (isRecord(part) ? word(part.type === 'refusal' ? part.refusal : part.text) : ''))
    .join('');
}
