import { isRecord, type Json, type JsonObject } from '../../core/json.js';
import type { ReceivedCall } from '../../core/provider.js';
import { parseData } from './wire-answer.js';
import { keepLayout, type Seen } from './wire-layout.js';
import type { Fields } from './wire.js';

type Said = { readonly type: 'text' | 'reasoning'; readonly text: string } | null;

/** Puts the content blocks of a Messages stream together. */
export interface BlockPieces {
  /** Returns what of the block is to be shown at once. */
  start(index: unknown, block: unknown): Said;
  delta(index: unknown, delta: Fields): Said;
  stop(index: unknown): void;
  /** The `tool_use` blocks in order. */
  calls(): readonly ReceivedCall[];
  /** Every other block but text, byte for byte, with where text and calls stood. */
  layout(): readonly Json[];
  /** True while no block but thinking and calls was started. */
  readonly onlyThought: boolean;
}

interface Block {
  readonly start: JsonObject;
  readonly joined: Map<string, string>;
  units: number;
  stopped: boolean;
}

/** Deltas for a block that never started are ignored. */
export function blockPieces(): BlockPieces {
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

/** The block as it would stand in a whole message; null for a server tool whose input is broken. */
function whole({ start, joined }: Block): Json | null {
  const input = joined.get('partial_json');
  const parsed = input === undefined || input === '' ? undefined : parseData(input);
  if (parsed === undefined && input !== undefined && input !== '') return null;
  const fields = [...joined]
    .filter(([name]) => name !== 'partial_json')
    .map(([name, text]) => [name, word(start[name]) + text] as const);
  return { ...start, ...Object.fromEntries(fields), ...(parsed === undefined ? {} : { input: parsed as Json }) };
}
