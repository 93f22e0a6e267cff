import type { AgentEvent } from '../core/session.js';
import type { Clock, Schedule } from './ports.js';
import { createThoughts } from './thoughts.js';
import { emptyView, reduce, type Item, type Totals, type View } from './view.js';

/** What happens after a pause (a message, its answer, the end of the turn) is told of as it happens; so many times,
 * then once a frame. */
const burstFrames = 3;

/** Folds events as they come and tells of it at most once a frame, but for the first few after a pause. */
export interface ViewStore {
  view(): View;
  apply(event: AgentEvent): void;
  /** Finished items since the last call; each is given out once. */
  takeItems(): readonly Item[];
  /** Starts over for another session, its past totals given. */
  reset(totals: Totals): void;
  close(): void;
}

interface Parts {
  readonly clock: Clock;
  readonly schedule: Schedule;
  /** The time between two calls of `onFrame`, in the long run. */
  readonly frameMs: number;
  readonly onFrame: () => void;
  /** What of reasoning there is to see: nothing, that there is some, or its text as items. */
  readonly reasoning?: 'hide' | 'line' | 'full';
}

export function createViewStore(d: Parts): ViewStore {
  const thoughts = createThoughts();
  let view: View = emptyView;
  let deltas: string[] = [];
  let cancel: (() => void) | null = null;
  /** When all frames there were would have been told of at one each `frameMs`. Source: GCRA, ITU-T I.371. */
  let dueMs = Number.NEGATIVE_INFINITY;
  const fire = (): void => {
    cancel = null;
    dueMs = Math.max(dueMs, d.clock()) + d.frameMs;
    d.onFrame();
  };
  /** Deltas of text come by the thousand: they are put together until somebody looks. */
  const settle = (): void => {
    if (deltas.length === 0) return;
    view = reduce(view, { type: 'text_delta', text: deltas.join('') }, d.clock());
    deltas = [];
  };
  const think = (text: string): void => {
    if (text !== '') view = { ...view, items: [...view.items, { type: 'reasoning', text }] };
  };
  return {
    view: () => {
      settle();
      return view;
    },
    apply: (event) => {
      if (event.type !== 'reasoning_delta') {
        const rest = thoughts.end();
        // What is asked for again is void.
        if (event.type !== 'retry_scheduled') think(rest);
      }
      if (event.type === 'text_delta') deltas.push(event.text);
      else {
        settle();
        view = reduce(
          view,
          event.type === 'reasoning_delta' && d.reasoning === 'hide' ? { ...event, text: '' } : event,
          d.clock(),
        );
      }
      // Reasoning that comes between pieces of an answer would tear that apart.
      if (event.type === 'reasoning_delta' && d.reasoning === 'full' && view.text === '')
        think(thoughts.take(event.text));
      cancel ??= d.schedule(fire, Math.max(0, dueMs - (burstFrames - 1) * d.frameMs - d.clock()));
    },
    takeItems: () => {
      settle();
      const items = view.items;
      if (items.length > 0) view = { ...view, items: [] };
      return items;
    },
    reset: (totals) => {
      deltas = [];
      thoughts.end();
      view = { ...emptyView, totals };
    },
    close: () => {
      cancel?.();
      cancel = null;
    },
  };
}
