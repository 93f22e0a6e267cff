import type { Event } from '../core/event.js';
import {
  aboutOf,
  type Filtered,
  letsThrough,
  searchedKinds,
  type SearchFilters,
} from '../core/files/search-filters.js';
import { isRecord } from '../core/json.js';
import type { SearchHit, SessionRow } from '../core/store.js';
import { dataJson } from './event-rows.js';
import { matchesSearch, searchOf, type SearchQuery, snippetOf } from './search-query.js';

interface SearchedSession {
  readonly row: SessionRow;
  readonly events: readonly Event[];
}

/** Returns the hits in sessions that are in memory, in the order of the sessions. */
export function searchIn(
  sessions: readonly SearchedSession[],
  text: string,
  filters: SearchFilters,
): readonly SearchHit[] {
  const query = searchOf(text, filters);
  return query === null ? [] : sessions.flatMap((item) => hitsIn(item, query, filters));
}

/** Returns the facts of an event that filters check. */
function filteredOf({ row }: SearchedSession, { kind, createdAt, data }: Event, from: string): Filtered {
  const fields = isRecord(data) ? data : {};
  const call = isRecord(fields['function']) ? fields['function'] : {};
  const tool = kind === 'tool_call' ? call['name'] : kind === 'tool_result' ? fields['name'] : null;
  const { id: sessionId, title, cwd } = row;
  return {
    ...{
      sessionId,
      title,
      cwd,
      kind,
      createdAt,
      from,
    },
    tool: typeof tool === 'string' ? tool : null,
    about: aboutOf(kind, fields),
  };
}

function broughtFrom(events: readonly Event[]): string {
  const data = events.find(({ kind }) => kind === 'import')?.data;
  return isRecord(data) ? String(data['tool']) : 'agent';
}

/** Newest first. Calls and results are searched as JSON text. */
function hitsIn(item: SearchedSession, query: SearchQuery, filters: SearchFilters): readonly SearchHit[] {
  const { row, events } = item;
  const from = broughtFrom(events);
  return events
    .filter((event) => searchedKinds.has(event.kind))
    .toReversed()
    .flatMap((event) => {
      const isMessage = event.kind === 'user' || event.kind === 'assistant';
      const text = `${event.content ?? ''} ${isMessage ? '' : (dataJson(event.data) ?? '')}`;
      if (!matchesSearch(query, text) || !letsThrough(filters, filteredOf(item, event, from))) return [];
      return [
        {
          sessionId: row.id,
          seq: event.seq,
          kind: event.kind,
          createdAt: event.createdAt,
          cwd: row.cwd,
          title: row.title,
          ...snippetOf(query, text),
        },
      ];
    });
}
