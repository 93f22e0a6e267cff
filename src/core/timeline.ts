import type { KnownEvent } from './event.js';

/** Which events of a log the conversation is made of. A `rewind` makes it again what it was right after event `to_seq`,
 * whatever happened there, other rewinds included: so a rewind to the event before a rewind takes that one back. A
 * `compaction_undone` takes out the compaction before it that it names. */
export interface Timeline {
  /** True where this changes what the events before it mean, so that the conversation is to be made anew from
   * `events`. */
  add(event: KnownEvent): boolean;
  /** Those that count now, in order, without rewinds and without compactions that were undone. */
  events(): readonly KnownEvent[];
}

export function createTimeline(): Timeline {
  const added: KnownEvent[] = [];
  /** The index of the event each one follows; -1 for the beginning. */
  const before: number[] = [];
  let head = -1;

  const lastUpTo = (seq: number): number => {
    let low = 0;
    let high = added.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((added[middle]?.seq ?? 0) <= seq) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  };

  return {
    add(event) {
      const isRewind = event.kind === 'rewind' && Number.isInteger(event.data.to_seq);
      before.push(isRewind ? lastUpTo(event.data.to_seq) : head);
      added.push(event);
      head = added.length - 1;
      return isRewind || event.kind === 'compaction_undone';
    },
    events() {
      const chain: KnownEvent[] = [];
      for (let index = head; index >= 0; index = before[index] ?? -1) {
        const event = added[index];
        if (event && event.kind !== 'rewind') chain.push(event);
      }
      const undone = new Set(
        chain.flatMap((event) =>
          event.kind === 'compaction_undone' && event.data.compaction_seq < event.seq
            ? [event.data.compaction_seq]
            : [],
        ),
      );
      return chain.toReversed().filter((event) => event.kind !== 'compaction' || !undone.has(event.seq));
    },
  };
}
