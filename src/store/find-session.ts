import { nearest } from '../core/text.js';
import type { SessionMatch, SessionRow } from '../core/store.js';

/** What a store must be able to look up so that a session can be found by what a person types. */
export interface SessionIndex {
  byId(id: string): SessionRow | null;
  byPrefix(prefix: string, max: number): readonly SessionRow[];
  /** Capital letters do not count. */
  byTitle(title: string): readonly SessionRow[];
  /** Newest first. */
  recent(max: number): readonly SessionRow[];
}

export const maxMatches = 20;
const maxCompared = 500;

/** An id wins over a prefix, a prefix over a title; among titles one in the very same letters wins. */
export function findSession(index: SessionIndex, text: string): SessionMatch {
  const wanted = text.trim();
  if (wanted === '') return { found: 'none', nearest: [] };
  const exact = index.byId(wanted);
  if (exact) return { found: 'one', session: exact };
  return (
    match(byStart(index, wanted)) ??
    match(byTitle(index, wanted)) ?? { found: 'none', nearest: suggestions(index, wanted) }
  );
}

/** Ids are in capitals; those of earlier versions and of other programs need not be. */
function byStart(index: SessionIndex, text: string): readonly SessionRow[] {
  for (const start of [text.toUpperCase(), text.toLowerCase(), text]) {
    const found = index.byPrefix(start, maxMatches);
    if (found.length > 0) return found;
  }
  return [];
}

function match(sessions: readonly SessionRow[]): SessionMatch | null {
  const [session] = sessions;
  if (!session) return null;
  return sessions.length === 1 ? { found: 'one', session } : { found: 'many', sessions };
}

function byTitle(index: SessionIndex, title: string): readonly SessionRow[] {
  const found = index.byTitle(title);
  const same = found.filter((session) => session.title === title);
  return same.length > 0 ? same : found;
}

/** Titles that contain the text first, then titles and ids that are a slip away. */
function suggestions(index: SessionIndex, text: string): readonly string[] {
  const recent = index.recent(maxCompared);
  const titles = recent.flatMap((session) => (session.title === null ? [] : [session.title]));
  const containing = titles.filter((title) => title.toLowerCase().includes(text.toLowerCase()));
  const idByStart = new Map(recent.map((session) => [session.id.slice(0, text.length).toLowerCase(), session.id]));
  const ids = nearest(text.toLowerCase(), [...idByStart.keys()]).flatMap((start) => idByStart.get(start) ?? []);
  return [...new Set([...containing, ...nearest(text, titles), ...ids])].slice(0, 3);
}
