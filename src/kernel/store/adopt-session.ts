import type { Event } from '../core/event.js';
import type { SessionRow, Synced } from '../core/store.js';
import type { Connection } from './connection.js';
import { type Contents, insertBlobs, insertEvent } from './event-rows.js';
import type { TakenLease } from './lease.js';
import { insertSession, inUse, readSession, sessionExists } from './session-rows.js';

/** A slice ends with so many characters: another process waits no longer than for one. */
const sliceLength = 256 * 1024;

interface Slice {
  readonly events: readonly Event[];
  readonly isFirst: boolean;
  readonly isLast: boolean;
}

interface Adopting {
  readonly row: SessionRow;
  readonly events: Iterable<Event>;
  readonly contents: Contents;
  /** Runs `work` once nobody else writes. */
  readonly write: (work: (connection: Connection) => void, synced: Synced) => Promise<void>;
  readonly lease: (connection: Connection) => TakenLease;
}

/** Stores a session from elsewhere in slices, a commit each, so that others write in between. Its row comes with the
 * last one: until then nobody sees the session, and what a kill leaves behind makes room for the next try. Rejects
 * with `exists` when the id is taken, `in_use` while another process stores the same; where making an event throws,
 * nothing stays. */
export async function adoptSession(adopting: Adopting): Promise<void> {
  const { row, write } = adopting;
  let isBegun = false;
  try {
    for (const slice of slicesOf(adopting.events)) {
      await write(
        (connection) => {
          adoptSlice(connection, adopting, slice);
        },
        slice.isLast ? 'now' : 'later',
      );
      isBegun = true;
    }
  } catch (error) {
    if (isBegun) await write((connection) => connection.transact(() => dropEvents(connection, row.id)), 'later');
    throw error;
  }
}

/** The events in slices, of which one is in memory. */
function* slicesOf(events: Iterable<Event>): Generator<Slice> {
  let [slice, length, isFirst]: [Event[], number, boolean] = [[], 0, true];
  for (const event of events) {
    if (length >= sliceLength) {
      yield { events: slice, isFirst, isLast: false };
      [slice, length, isFirst] = [[], 0, false];
    }
    slice.push(event);
    length += (event.content?.length ?? 0) + JSON.stringify(event.data ?? null).length;
  }
  yield { events: slice, isFirst, isLast: true };
}

function adoptSlice(connection: Connection, { row, contents, lease }: Adopting, slice: Slice): void {
  const { db, sql } = connection;
  // Events without the row of their session: the rule counts again with the end of the slice.
  db.pragma(`foreign_keys = ${slice.isLast ? 'ON' : 'OFF'}`);
  try {
    connection.transact(() => {
      if (slice.isFirst) {
        if (readSession(connection, row.id) !== null) throw sessionExists(row.id);
        const taken = lease(connection);
        if ('holder' in taken) throw inUse(row.id, taken.holder);
        sql('DELETE FROM events WHERE session_id = ?').run(row.id);
      }
      if (slice.isLast) {
        insertSession(connection, row);
        insertBlobs(connection, contents);
      }
      for (const event of slice.events) insertEvent(connection, row.id, event, 'now');
      if (!slice.isLast) return;
      sql('UPDATE sessions SET updated_at = ? WHERE id = ?').run(row.updatedAt, row.id);
      sql('DELETE FROM leases WHERE session_id = ?').run(row.id);
    });
  } finally {
    db.pragma('foreign_keys = ON');
  }
}

function dropEvents({ sql }: Connection, id: string): void {
  for (const table of ['events', 'leases'])
    sql(`DELETE FROM ${table} WHERE session_id = ? AND session_id NOT IN (SELECT id FROM sessions)`).run(id);
}
