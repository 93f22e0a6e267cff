import { hostname } from 'node:os';
import type { Event } from '../core/event.js';
import type { QueuedMessage } from '../core/session.js';
import type { Lease, SearchHit, SessionChange, SessionRow, SessionSummary, Store } from '../core/store.js';
import { wellFormed, wellFormedDeep } from '../core/text.js';
import { dataJson, noSession, seqTaken } from './event-rows.js';
import { matchesSearch, parseSearch, type SearchQuery, snippetOf } from './search-index.js';
import { findSession, promptLine, sessionExists, type SessionIndex } from './session-rows.js';

interface Kept {
  row: SessionRow;
  readonly events: Event[];
  /** Grows with every event of the store; 0 where there is none. */ lastWrite: number;
}

/** A store that ends with the process, with the semantics of the database. */
export function openMemoryStore({ now }: { readonly now: () => number }): Store {
  const sessions = new Map<string, Kept>();
  const leases = new Map<string, { readonly since: number }>();
  const contents = new Map<string, Uint8Array>();
  const queues = new Map<string, readonly QueuedMessage[]>();
  let writes = 0;

  const kept = (id: string): Kept => {
    const found = sessions.get(id);
    if (!found) throw noSession(id);
    return found;
  };
  const newestFirst = (cwd?: string): Kept[] =>
    [...sessions.values()]
      .filter((item) => cwd === undefined || item.row.cwd === cwd)
      .sort((a, b) => b.lastWrite - a.lastWrite || b.row.updatedAt - a.row.updatedAt || (b.row.id > a.row.id ? 1 : -1));
  const add = (row: SessionRow, events: readonly Event[]): void => {
    if (sessions.has(row.id)) throw sessionExists(row.id);
    writes += events.length;
    sessions.set(row.id, {
      row: { ...row, title: row.title === null ? null : wellFormed(row.title) },
      events: [...events],
      lastWrite: events.length > 0 ? writes : 0,
    });
  };

  return {
    createSession: async (row) => {
      const same = sessions.get(row.id);
      if (!same || same.events.length > 0 || JSON.stringify(same.row) !== JSON.stringify(row)) add(row, []);
    },
    sync: () => Promise.resolve(),
    append: async (sessionId, event, blobs = []) => {
      const item = kept(sessionId);
      for (const { sha256, bytes } of blobs) contents.set(sha256, bytes);
      const clean = cleanEvent(event);
      const isNext = event.seq > (item.events.at(-1)?.seq ?? 0);
      const taken = isNext ? undefined : item.events.find((other) => other.seq === event.seq);
      if (taken && JSON.stringify(taken) === JSON.stringify(clean)) return;
      if (taken) throw seqTaken(sessionId, event.seq);
      item.events.push(clean);
      if (!isNext) item.events.sort((a, b) => a.seq - b.seq);
      item.lastWrite = ++writes;
      item.row = { ...item.row, updatedAt: event.createdAt };
    },
    queue: async (sessionId) => queues.get(sessionId) ?? [],
    setQueue: async (sessionId, messages) => {
      if (sessions.has(sessionId)) queues.set(sessionId, messages);
    },
    blob: async (sha256) => contents.get(sha256) ?? null,
    load: async (sessionId) => [...(sessions.get(sessionId)?.events ?? [])],
    session: async (id) => sessions.get(id)?.row ?? null,
    find: async (text) => findSession(sessionIndex(newestFirst().map((item) => item.row)), text),
    newest: async (cwd) => newestFirst(cwd)[0]?.row ?? null,
    newestOfDirectory: async (directoryId) =>
      newestFirst().find((item) => item.row.directoryId === directoryId)?.row ?? null,
    relocate: async (...move) => {
      relocate(sessions.values(), ...move);
    },
    list: async (limit, cwd) => newestFirst(cwd).slice(0, limit).map(summary),
    count: async (cwd) => newestFirst(cwd).length,
    search: async (text, limit, cwd) => searchKept(newestFirst(cwd), text).slice(0, limit),
    update: async (id, change) => {
      changeRow(kept(id), change);
    },
    remove: async (id) => {
      for (const map of [sessions, queues]) map.delete(id);
    },
    fork: async (parentId, row, uptoSeq = Number.MAX_SAFE_INTEGER) => {
      add(
        { ...row, parentId },
        kept(parentId).events.filter((event) => event.seq <= uptoSeq),
      );
    },
    adopt: async (row, events) => {
      add(row, events.map(cleanEvent));
    },
    acquire: async (sessionId) => acquireIn(leases, sessionId, now()),
    close: async () => {
      leases.clear();
    },
  };
}

function changeRow(item: Kept, change: SessionChange): void {
  const { api, baseUrl, ...row } = {
    ...item.row,
    ...change,
    ...(change.title === undefined ? {} : { title: wellFormed(change.title) }),
  };
  item.row = { ...row, ...(api ? { api } : {}), ...(baseUrl ? { baseUrl } : {}) };
}

function relocate(kept: Iterable<Kept>, directoryId: string, from: string, to: string): void {
  for (const item of kept) {
    if (item.row.directoryId !== directoryId || item.row.cwd !== from) continue;
    const moves = [...(item.row.moves ?? []), { from, to, lastSeq: item.events.at(-1)?.seq ?? 0 }];
    item.row = { ...item.row, cwd: to, moves };
  }
}

function acquireIn(leases: Map<string, { readonly since: number }>, sessionId: string, since: number): Lease {
  const other = leases.get(sessionId);
  if (other) return { held: false, holder: { pid: process.pid, host: hostname(), since: other.since } };
  const mine = { since };
  leases.set(sessionId, mine);
  return {
    held: true,
    release: async () => {
      if (leases.get(sessionId) === mine) leases.delete(sessionId);
    },
  };
}

function sessionIndex(recent: readonly SessionRow[]): SessionIndex {
  const byId = [...recent].sort((a, b) => (a.id < b.id ? 1 : -1));
  return {
    byId: (id) => recent.find((row) => row.id === id) ?? null,
    byPrefix: (prefix, max) => byId.filter((row) => row.id.startsWith(prefix)).slice(0, max),
    byTitle: (title) => byId.filter((row) => row.title?.toLowerCase() === title.toLowerCase()),
    recent: (max) => recent.slice(0, max),
  };
}

/** A copy as the database would give it back. */
function cleanEvent(event: Event): Event {
  const text = dataJson(event.data);
  return {
    ...wellFormedDeep({ seq: event.seq, kind: event.kind, content: event.content }),
    data: text === null ? null : (JSON.parse(text) as unknown),
    createdAt: event.createdAt,
  };
}

function searchKept(kept: readonly Kept[], text: string): readonly SearchHit[] {
  const query = parseSearch(text);
  return query === null ? [] : kept.flatMap((item) => hitsIn(item, query));
}

/** Newest first. What a call or its result holds is looked at as the JSON text that it is. */
function hitsIn({ row, events }: Kept, query: SearchQuery): readonly SearchHit[] {
  return events
    .filter((event) => ['user', 'assistant', 'tool_call', 'tool_result', 'shell'].includes(event.kind))
    .toReversed()
    .flatMap((event) => {
      const text = `${event.content ?? ''} ${event.kind === 'user' || event.kind === 'assistant' ? '' : (dataJson(event.data) ?? '')}`;
      if (!matchesSearch(query, text)) return [];
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

function summary({ row, events }: Kept): SessionSummary {
  const prompt = events.find((event) => event.kind === 'user')?.content ?? null;
  const costs = events
    .filter((event) => event.kind === 'usage')
    .map((event) => (event.data as { readonly cost_usd?: unknown } | null)?.cost_usd)
    .filter((cost) => typeof cost === 'number');
  return {
    ...row,
    prompt: promptLine(prompt),
    events: events.length,
    costUsd: costs.length === 0 ? null : costs.reduce((sum, cost) => sum + cost, 0),
  };
}
