import { isRecord } from '../../core/json.js';
import type { ReceivedCall } from '../../core/provider.js';
import { parseData } from './wire-answer.js';

interface Slot {
  id: string;
  name: string;
  arguments: string;
}

/** Puts the calls of a Chat Completions stream together from their pieces. */
export interface CallPieces {
  /** Takes one entry of `delta.tool_calls`. Returns the arguments it carried. */
  add(piece: unknown): string;
  /** The calls so far, in order of their first piece. */
  calls(): readonly ReceivedCall[];
  /** How many calls have begun. */
  count(): number;
}

/** Pieces belong together by `index`; where servers leave it out, by `id`, else to the latest call. A second call under
 * a used index is seen by its own id, or by a name after arguments that are whole. */
export function callPieces(): CallPieces {
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

/** Without an index: the call of that id, or the latest where the piece has no id. */
function byId(slots: readonly Slot[], id: string): Slot | undefined {
  return id === '' ? slots.at(-1) : slots.findLast((slot) => slot.id === id);
}

function startsAnother(slot: Slot, part: Slot): boolean {
  if (part.id !== '' && slot.id !== '' && part.id !== slot.id) return true;
  return part.name !== '' && slot.name !== '' && part.arguments !== '' && isRecord(parseData(slot.arguments));
}

/** A name may be repeated in every piece, or come in pieces before the arguments do. */
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
