import { type LoadedOnce, loadOnce } from '../core/runtime.js';
import type { Synced } from '../core/store.js';
import type { Connection } from './connection.js';
import type { ProcessIdentity } from './lease.js';

/** The access of a feature to the database of the SQLite store. */
interface SqlitePlace {
  readonly kind: 'sqlite';
  readonly read: <T>(work: (connection: Connection) => T) => Promise<T>;
  readonly write: <T>(work: (connection: Connection) => T, synced?: Synced) => Promise<T>;
  readonly me: () => ProcessIdentity;
  /** Unix ms. */
  readonly now: () => number;
  /** Forgets where a session ended: it may end earlier from now on. */
  readonly forgetEnd: (sessionId: string) => Promise<void>;
}

/** Sends one statement to a PostgreSQL server and returns its rows. */
export type ServerRows = <Row>(text: string, values?: readonly unknown[]) => Promise<readonly Row[]>;

/** The PostgreSQL server that a team shares. */
export interface ServerPlace {
  readonly kind: 'server';
  readonly connection: {
    readonly rows: ServerRows;
    /** Runs several statements in one transaction. */
    readonly transact: <T>(work: (rows: ServerRows) => Promise<T>) => Promise<T>;
  };
  /** The role whose members share what is written; null: nobody does. */
  readonly team: string | null;
  /** The name of this machine among those that share; null: its host name. */
  readonly machine: string | null;
  readonly host: string;
  readonly now: () => number;
}

/** Nothing is kept: the tables end with the process. */
interface MemoryPlace {
  readonly kind: 'memory';
  readonly now: () => number;
}

export type TablePlace = SqlitePlace | ServerPlace | MemoryPlace;

/** Tables that belong to one feature. `open` loads the code for the place where the store lies. */
export interface TableSet<T> {
  readonly name: string;
  /** A local store may keep them on the server of the team instead (`tasks.machine`). */
  readonly mayBeShared?: true;
  open(place: TablePlace): Promise<T>;
}

/** Opens the tables of a feature; the same set is opened once. */
export type Tables = <T>(set: TableSet<T>) => Promise<T>;

export function tablesAt(place: TablePlace): Tables {
  const opened = new Map<TableSet<unknown>, LoadedOnce<unknown>>();
  return async <T>(set: TableSet<T>): Promise<T> => {
    const tables = opened.get(set) ?? loadOnce(() => set.open(place));
    opened.set(set, tables);
    return (await tables.get()) as T;
  };
}

/** A lease on a server that was not renewed for this long is free. */
export const leaseStaleMs = 60_000;
/** Milliseconds between two renewals of a lease on a server. */
export const leaseBeatMs = 20_000;
