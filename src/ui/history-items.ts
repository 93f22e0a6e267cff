import { createTimeline, type Event, knownEvent } from '../core/event.js';
import { isRecord } from '../core/json.js';
import { emptyView, type Item, reduce } from './view.js';

/** No more events than this are shown of a long exchange, besides the request it began with. */
const mostEvents = 60;

/** The last exchange of a session as finished items, the middle of a long one left out, and how many messages and calls
 * are not shown. What was rewound counts for neither. */
export function lastExchange(log: readonly Event[]): { readonly items: readonly Item[]; readonly earlier: number } {
  const events = countingNow(log);
  const start = events.findLastIndex((event) => event.kind === 'user' && !isNote(event));
  if (start < 0) return { items: [], earlier: 0 };
  const from = tailStart(events, start);
  const shown = [events.slice(start, start + 1), events.slice(from)].flat();
  const view = shown.reduce((before, event) => reduce(before, { type: 'event', event }, 0), emptyView);
  const hidden = [...events.slice(0, start), ...events.slice(start + 1, from)];
  return {
    items: view.items,
    earlier: hidden.filter((event) => event.kind === 'user' || event.kind === 'assistant' || event.kind === 'tool_call')
      .length,
  };
}

function countingNow(log: readonly Event[]): readonly Event[] {
  if (!log.some((event) => event.kind === 'rewind')) return log;
  const timeline = createTimeline();
  for (const event of log) {
    const known = knownEvent(event);
    if (known) timeline.add(known);
  }
  return timeline.events();
}

/** True for a user-side event that the program wrote, not the person. */
export function isNote(event: Event): boolean {
  return event.kind === 'user' && isRecord(event.data) && event.data.note === true;
}

/** Where the end of the exchange begins, at the start of a response. */
function tailStart(events: readonly Event[], start: number): number {
  if (events.length - start - 1 <= mostEvents) return start + 1;
  const earliest = events.length - mostEvents;
  const at = events.findIndex(
    (event, index) => index >= earliest && (event.kind === 'assistant' || event.kind === 'tool_call'),
  );
  return at < 0 ? earliest : at;
}
