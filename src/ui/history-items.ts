import type { Event } from '../core/event.js';
import { emptyView, reduce, type Item } from './view.js';

/** The last exchange of a session as finished items, and how many events came before it. */
export function lastExchange(events: readonly Event[]): { readonly items: readonly Item[]; readonly earlier: number } {
  const start = Math.max(0, events.findLastIndex((event) => event.kind === 'user'));
  const view = events.slice(start).reduce((before, event) => reduce(before, { type: 'event', event }, 0), emptyView);
  const earlier = events.slice(0, start).filter((event) => event.kind === 'user' || event.kind === 'assistant' || event.kind === 'tool_call').length;
  return { items: events.some((event) => event.kind === 'user') ? view.items : [], earlier };
}
