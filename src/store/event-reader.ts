import { setImmediate as turn, setTimeout as wait } from 'node:timers/promises';
import type { Event } from '../core/event.js';
import type { Connection } from './connection.js';
import { eventChecksum } from './event-hash.js';
import { StoreError } from './store-error.js';
import { fullUsage } from './usage-data.js';

interface EventRow {
  readonly seq: number;
  readonly kind: string;
  readonly content: string | null;
  readonly data_json: string | null;
  readonly created_at: number;
  readonly crc32: number | null;
  readonly redacted: string | null;
}
interface Page {
  readonly text: string | null;
  readonly last: number | null;
  readonly bytes: number;
}

export interface ReadEvents {
  readonly events: readonly Event[];
  /** Events that are not what was written, by `seq`. */
  readonly altered: readonly number[];
  /** The last event whose checksum was looked at, null where that is all of them. */
  readonly checkedTo: number | null;
}

/** So many events are checked while they are read; of a longer session the others are checked behind the reader's back
 * (`checkRest`). */
const checkedAtOnce = 4000;
/** By then the session is on the screen. */
const checkedAfterMs = 1000;
const pageRows = 500;
/** A page of rows larger than this is not made into one text. */
const maxPageBytes = 16 * 1024 * 1024;
const selectRows =
  'SELECT seq, kind, content, data_json, created_at, crc32, redacted FROM events WHERE session_id = ? AND seq > ? ORDER BY seq LIMIT ?';

/** All events of a session in order of `seq`. Throws a StoreError `damaged` for data that is not JSON. */
export function readEvents(connection: Connection, sessionId: string): ReadEvents {
  const rows = connection.sql<EventRow>(selectRows).all(sessionId, Number.MIN_SAFE_INTEGER, checkedAtOnce);
  const events = rows.map(eventOfRow);
  const altered = rows.filter(isAltered).map((row) => row.seq);
  if (rows.length < checkedAtOnce) return { events, altered, checkedTo: null };
  const checkedTo = events.at(-1)?.seq ?? 0;
  for (
    let last = checkedTo, page = readPage(connection, sessionId, last);
    page.length > 0;
    page = readPage(connection, sessionId, last)
  ) {
    for (const event of page) events.push(event);
    last = page.at(-1)?.seq ?? Number.MAX_SAFE_INTEGER;
  }
  return { events, altered, checkedTo };
}

/** Looks at the checksums of the events behind `from`, a slice at a time, so that the thread is never held. Ends early
 * where `connection()` gives null. Gives the events that are not what was written. */
export async function checkRest(
  connection: () => Connection | null,
  sessionId: string,
  from: number,
): Promise<readonly number[]> {
  const altered: number[] = [];
  await wait(checkedAfterMs, undefined, { ref: false });
  for (let last = from; ;) {
    await turn();
    const rows = connection()?.sql<EventRow>(selectRows).all(sessionId, last, pageRows) ?? [];
    for (const row of rows) if (isAltered(row)) altered.push(row.seq);
    if (rows.length < pageRows) return altered;
    last = rows.at(-1)?.seq ?? last;
  }
}

/** One text of many rows costs half of what the rows cost one by one: SQLite writes them as JSON, and V8 reads that at
 * once. */
function readPage({ sql }: Connection, sessionId: string, after: number): readonly Event[] {
  const rows = () => sql<EventRow>(selectRows).all(sessionId, after, pageRows).map(eventOfRow);
  const { bytes } =
    sql<Page>(`SELECT coalesce(sum(octet_length(data_json)), 0) + coalesce(sum(octet_length(content)), 0) AS bytes
    FROM (SELECT data_json, content FROM events WHERE session_id = ? AND seq > ? ORDER BY seq LIMIT ${pageRows})`).get(
      sessionId,
      after,
    ) ?? { bytes: 0 };
  if (bytes > maxPageBytes) return rows();
  const page =
    sql<Page>(`SELECT group_concat('{"seq":' || seq || ',"kind":' || json_quote(kind) || ',"content":' || json_quote(content)
      || ',"data":' || coalesce(data_json, 'null') || ',"createdAt":' || created_at || '}', ',') AS text
    FROM (SELECT seq, kind, content, data_json, created_at FROM events WHERE session_id = ? AND seq > ? ORDER BY seq LIMIT ${pageRows})`).get(
      sessionId,
      after,
    );
  try {
    return (JSON.parse(`[${page?.text ?? ''}]`) as readonly Event[]).map(whole);
  } catch {
    return rows();
  }
}

function eventOfRow(row: EventRow): Event {
  return whole({
    seq: row.seq,
    kind: row.kind,
    content: row.content,
    data: parseData(row.data_json),
    createdAt: row.created_at,
  });
}

function whole(event: Event): Event {
  return event.kind === 'usage' ? { ...event, data: fullUsage(event.seq, event.data) } : event;
}

/** A redacted event has no checksum of its own any more; one from before there were checksums has none either. */
function isAltered(row: EventRow): boolean {
  return row.crc32 !== null && row.redacted === null && row.crc32 !== eventChecksum(row);
}

function parseData(text: string | null): unknown {
  if (text === null) return null;
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    throw new StoreError(
      'damaged',
      'An event holds data that is not JSON',
      'Start the program again: it moves the file aside and saves what can be read.',
      error,
    );
  }
}

/** What to tell the reader of altered events. */
export function alteredNotice(sessionId: string, altered: readonly number[]): string {
  const shown = altered.slice(0, 5).join(', ') + (altered.length > 5 ? ', …' : '');
  return `${altered.length === 1 ? `Event ${shown}` : `Events ${shown}`} of session ${sessionId} ${altered.length === 1 ? 'is' : 'are'} not as written: the checksum does not match. Run: agent audit verify`;
}
