import { randomUUID } from 'node:crypto';
import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import type { LeaseHolder } from '../core/store.js';
import { bootAndMachine, machinePrefix, startedAt } from '../disk/bsd-processes.js';
import type { Connection } from './connection.js';

interface LeaseRow {
  readonly session_id: string;
  readonly token: string;
  readonly pid: number;
  readonly host: string;
  readonly machine: string | null;
  readonly started: string | null;
  readonly since: number;
}

export type TakenLease = { readonly token: string } | { readonly holder: LeaseHolder };

/** A holder on another machine counts as alive this long after its last write. */
const foreignLeaseMs = 60 * 60 * 1000;

/** Makes `me` the only writer of a session, unless a living process is. Of two
 * processes that ask at once one gets the lease. */
export function takeLease({ db, sql }: Connection, sessionId: string, me: ProcessIdentity, nowMs: number): TakenLease {
  const take = db.transaction((): TakenLease => {
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

/** Enters a lease under its token, as after a repair, which drops all leases. A
 * lease that another process has taken meanwhile stays. */
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

/** Releases a lease. A lease that was taken over meanwhile stays with its new
 * holder. */
export function releaseLease({ sql }: Connection, sessionId: string, token: string): void {
  sql('DELETE FROM leases WHERE session_id = ? AND token = ?').run(sessionId, token);
}

/** Returns the living holder of a session other than the one with `ownToken`. */
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

/** A session that is marked as in use. `ended`: nothing holds it, and its next opening takes it over. `unknown`: by a process
 * of another machine or container, which holds it until `heldUntilMs` unless it writes again. */
export interface LeaseFact extends LeaseHolder {
  readonly sessionId: string;
  readonly state: 'running' | 'ended' | 'unknown';
  readonly heldUntilMs: number | null;
}

/** Returns all sessions that are marked as in use, oldest first. */
export function readLeases(connection: Pick<Connection, 'sql'>, me: ProcessIdentity, nowMs: number): LeaseFact[] {
  const rows = connection.sql<LeaseRow>('SELECT * FROM leases ORDER BY since, session_id').all();
  return rows.map((row) => {
    const { session_id: sessionId, pid, host, since } = row;
    const signMs = lastSignMs(connection, row);
    const isUnknown = isRunning(row, me) === 'unknown';
    const state = holds(row, me, signMs, nowMs) ? (isUnknown ? 'unknown' : 'running') : 'ended';
    return { sessionId, pid, host, since, state, heldUntilMs: state === 'unknown' ? signMs + foreignLeaseMs : null };
  });
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

/** Distinguishes a process from a later one with the same number. */
export interface ProcessIdentity {
  readonly pid: number;
  readonly host: string;
  /** On Linux the boot and the process namespace (`<boot id> <namespace>`), on
   * macOS the boot and the machine (`<boot id> mac:<machine>`); elsewhere null. */
  readonly machine: string | null;
  /** On Linux the start time in clock ticks since boot, from /proc/<pid>/stat; on
   * macOS the time to the second, from ps(1); elsewhere null. */
  readonly started: string | null;
}

export function ownIdentity(): ProcessIdentity {
  return { pid: process.pid, host: hostname(), machine: machineId(), started: startTime(process.pid) };
}

/** Says whether `other` still runs. `unknown`: it is on another machine or in
 * another container. */
export function isRunning(other: ProcessIdentity, me: ProcessIdentity): 'yes' | 'no' | 'unknown' {
  if (other.machine !== me.machine) return rebooted(other, me) ? 'no' : 'unknown';
  if (other.host !== me.host && me.machine === null) return 'unknown';
  if (!isAlive(other.pid)) return 'no';
  const started = startTime(other.pid);
  return started === null || other.started === null || started === other.started ? 'yes' : 'no';
}

/** True for the same machine after another boot: its processes are gone. */
function rebooted(other: ProcessIdentity, me: ProcessIdentity): boolean {
  if (other.machine === null || me.machine === null) return false;
  const [[otherBoot, otherPlace = ''], [boot, place = '']] = [other.machine.split(' '), me.machine.split(' ')];
  if (otherBoot === boot) return false;
  // The name of a Mac may change with its network.
  const isSameMac = place === otherPlace && place.startsWith(machinePrefix) && place !== machinePrefix;
  return other.host === me.host || isSameMac;
}

/** True when any process has this number. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && Reflect.get(error, 'code') === 'EPERM';
  }
}

function machineId(): string | null {
  if (process.platform === 'darwin') return bootAndMachine();
  try {
    return `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()} ${readlinkSync('/proc/self/ns/pid')}`;
  } catch {
    return null;
  }
}

/** Field 22 of /proc/<pid>/stat; the command in field 2 may hold spaces and
 * brackets. Source: proc(5). A zombie counts as gone. */
function startTime(pid: number): string | null {
  if (process.platform === 'darwin') return startedAt(pid);
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return fields[0] === 'Z' || fields[0] === 'X' ? 'dead' : (fields[19] ?? null);
  } catch {
    return null;
  }
}
