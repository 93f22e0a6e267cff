import { randomUUID } from 'node:crypto';
import type { LeaseHolder } from '../core/store.js';
import type { Connection } from './connection.js';
import { isRunning, type ProcessIdentity } from './process-identity.js';

interface LeaseRow {
  readonly session_id: string;
  readonly token: string;
  readonly pid: number;
  readonly host: string;
  readonly machine: string | null;
  readonly started: string | null;
  readonly since: number;
}

export type Taken = { readonly token: string } | { readonly holder: LeaseHolder };

/** A holder on a machine we cannot look into counts as alive this long after its last sign of life. */
const foreignLeaseMs = 60 * 60 * 1000;

/** Makes `me` the one writer of a session, unless a living process is. Of two processes that ask at once one gets
 * it. */
export function takeLease({ db, sql }: Connection, sessionId: string, me: ProcessIdentity, nowMs: number): Taken {
  const take = db.transaction((): Taken => {
    const row = sql<LeaseRow>('SELECT * FROM leases WHERE session_id = ?').get(sessionId);
    if (row && holds(row, me, lastSignMs({ sql }, row), nowMs))
      return { holder: { pid: row.pid, host: row.host, since: row.since } };
    const token = randomUUID();
    sql('DELETE FROM leases WHERE session_id = ?').run(sessionId);
    enterLease({ sql }, sessionId, token, me, nowMs);
    return { token };
  });
  return take.immediate();
}

/** Enters a lease under its token, as after a repair, which carries none over; one that another process has meanwhile
 * stays. */
export function enterLease(
  { sql }: Pick<Connection, 'sql'>,
  sessionId: string,
  token: string,
  me: ProcessIdentity,
  nowMs: number,
): void {
  sql(
    'INSERT OR IGNORE INTO leases (session_id, token, pid, host, machine, started, since) VALUES (?, ?, ?, ?, ?, ?, ?)',
  ).run(sessionId, token, me.pid, me.host, me.machine, me.started, nowMs);
}

/** Gives a lease back; one that was taken over meanwhile stays with its new holder. */
export function releaseLease({ sql }: Connection, sessionId: string, token: string): void {
  sql('DELETE FROM leases WHERE session_id = ? AND token = ?').run(sessionId, token);
}

/** The living holder of a session other than the one with `ownToken`. */
export function leaseHolder(
  connection: Connection,
  sessionId: string,
  ownToken: string | undefined,
  me: ProcessIdentity,
  nowMs: number,
): LeaseHolder | null {
  const row = connection.sql<LeaseRow>('SELECT * FROM leases WHERE session_id = ?').get(sessionId);
  if (!row || row.token === ownToken || !holds(row, me, lastSignMs(connection, row), nowMs)) return null;
  return { pid: row.pid, host: row.host, since: row.since };
}

function holds(row: LeaseRow, me: ProcessIdentity, signMs: number, nowMs: number): boolean {
  const running = isRunning(row, me);
  return running === 'unknown' ? Math.abs(nowMs - signMs) < foreignLeaseMs : running === 'yes';
}

function lastSignMs({ sql }: Pick<Connection, 'sql'>, row: LeaseRow): number {
  const updated = sql<{ readonly updated_at: number }>('SELECT updated_at FROM sessions WHERE id = ?').get(
    row.session_id,
  );
  return Math.max(row.since, updated?.updated_at ?? 0);
}
