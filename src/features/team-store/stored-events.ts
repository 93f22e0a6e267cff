import { parseJson } from '../../kernel/core/json.js';
import type { Event } from '../../kernel/core/event.js';
import type { ChainPoint, StoredEvent } from './team.js';
import {
  chainLink,
  type ChainRow,
  eventChecksum,
  eventDigests,
  type HashedRow,
} from '../../kernel/store/hash-chain.js';
import type { QueryRows } from './server-connection.js';

/** A row of the server's events. */
export interface ServerEventRow {
  readonly seq: number;
  readonly kind: string;
  readonly content: string | null;
  readonly content_json: boolean;
  readonly data_json: string | null;
  readonly created_at: number;
  readonly crc32: number | null;
  readonly hash: Buffer | null;
  readonly redacted: string | null;
}

export function storedEvent(row: ServerEventRow): StoredEvent {
  const { content, content_json: isJson, data_json: dataJson, created_at: createdAt, ...same } = row;
  const text: unknown = isJson ? parseJson(content ?? 'null') : content;
  return { ...same, content: typeof text === 'string' ? text : null, dataJson, createdAt };
}

/** Rows as they are stored behind a place in their session. */
export function chained({ link }: ChainPoint, rows: readonly HashedRow[]): readonly StoredEvent[] {
  let before = link;
  return rows.map((row) => {
    before = chainLink(before, row, eventDigests(row));
    return {
      seq: row.seq,
      kind: row.kind,
      content: row.content,
      dataJson: row.data_json,
      createdAt: row.created_at,
      crc32: eventChecksum(row),
      hash: before,
      redacted: null,
    };
  });
}

/** Returns the end of a session with these events after a place in it. */
export function endOf(after: ChainPoint, events: readonly StoredEvent[]): ChainPoint {
  const last = events.at(-1);
  return last ? { seq: last.seq, link: last.hash } : after;
}

/** A stored event in the form of a row of SQLite. */
export function chainRow(event: StoredEvent): ChainRow {
  const { seq, kind, content, crc32, redacted, hash } = event;
  const link = hash === null ? null : Buffer.from(hash);
  return { seq, kind, content, data_json: event.dataJson, created_at: event.createdAt, crc32, redacted, hash: link };
}

/** Copies the first events of a session, with the contents that they refer to. */
export async function copyEvents(rows: QueryRows, from: string, to: string, uptoSeq: number): Promise<void> {
  await rows(
    `INSERT INTO agent.events (session_id, ${copiedColumns})
     SELECT $2, ${copiedColumns} FROM agent.events WHERE session_id = $1 AND seq <= $3`,
    [from, to, uptoSeq],
  );
  await rows(
    `UPDATE agent.sessions s SET last_seq = e.seq, head = e.hash,
       prompt = (SELECT p.prompt FROM agent.sessions p WHERE p.id = $1)
     FROM (SELECT seq, hash FROM agent.events WHERE session_id = $2 ORDER BY seq DESC LIMIT 1) e WHERE s.id = $2`,
    [from, to],
  );
  await rows(
    `SELECT agent.blobs_missing($2, ARRAY(SELECT h FROM agent.blobs_of($1) h WHERE EXISTS (
       SELECT FROM agent.events e WHERE e.session_id = $2 AND strpos(e.data_json, h) > 0)))`,
    [from, to],
  );
}

const copiedColumns = `seq, kind, content, content_json, data_json,
  created_at, crc32, hash, redacted, tool, call_id, ok, duration_ms,
  code, model, tokens_in, tokens_out, cost_usd, words`;

/** Notifies those who watch sessions. */
export interface News {
  /** Notifies once for events that come close together. */
  soon(sessionId: string, seq: number): void;
  /** Sends the waiting notifications. */
  now(): Promise<void>;
}

const toldAfterMs = 100;

export function createNews(tell: (sessionId: string, seq: number) => Promise<void>): News {
  const ends = new Map<string, number>();
  let timer: NodeJS.Timeout | null = null;
  const now = async (): Promise<void> => {
    if (timer) clearTimeout(timer);
    timer = null;
    const untold = [...ends];
    ends.clear();
    await Promise.all(untold.map(([id, seq]) => tell(id, seq)));
  };
  return {
    soon: (sessionId, seq) => {
      ends.set(sessionId, seq);
      timer ??= setTimeout(() => void now(), toldAfterMs).unref();
    },
    now,
  };
}

/** Notifies those who watch, once a push. This is a separate transaction that waits for no disk: announcements are
 * committed one after the other, and within the transaction of the events they would make all writers of the server
 * wait for each other. */
export async function announceEnd(rows: QueryRows, sessionId: string, seq: number): Promise<void> {
  await rows(announce, [`${sessionId} ${seq}`]).catch(() => null);
}

const announce = "SELECT set_config('synchronous_commit', 'off', true), pg_notify('agent_events', $1)";

/** Events in parts of a size; the last may be smaller. */
export function* partsOf(events: Iterable<Event>, size: number): Generator<readonly Event[]> {
  let part: Event[] = [];
  for (const event of events) {
    part.push(event);
    if (part.length < size) continue;
    yield part;
    part = [];
  }
  if (part.length > 0) yield part;
}
