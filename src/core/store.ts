import type { Event } from './event.js';
import type { ModelRef } from './projection.js';
import type { QueuedMessage } from './session.js';

/** A directory that was moved, with all that is in it. What events up to `lastSeq` name below `from` is below `to`. */
export interface DirectoryMove {
  readonly from: string;
  readonly to: string;
  readonly lastSeq: number;
}

export interface SessionRow {
  readonly id: string;
  readonly parentId: string | null;
  /** Absolute. */
  readonly cwd: string;
  /** What tells that directory from others whatever it is called; absent where that is not known. */
  readonly directoryId?: string;
  /** How that directory was moved since the session began, oldest first; absent where it was not. */
  readonly moves?: readonly DirectoryMove[];
  readonly title: string | null;
  readonly provider: string | null;
  readonly model: string | null;
  /** The wire and the base URL that the session's requests go to, with nothing secret in it. Absent: not on record (the
   * embedded provider, a session from before this was kept, an imported one). */
  readonly api?: string;
  readonly baseUrl?: string;
  /** Unix milliseconds. */
  readonly createdAt: number;
  readonly updatedAt: number;
}

/** What a session's row says of the model it goes on with. */
export function placeOf({ provider, model, api, baseUrl }: ModelRef): {
  readonly provider: string;
  readonly model: string;
  readonly api?: string;
  readonly baseUrl?: string;
} {
  return { provider, model, ...(baseUrl === undefined ? {} : { api, baseUrl }) };
}

/** An empty `api` or `baseUrl` takes the one on record away. */
export type SessionChange = Readonly<
  Partial<Record<'title' | 'provider' | 'model' | 'api' | 'baseUrl' | 'directoryId', string>>
>;

/** A session in a listing. `prompt` is the first line of its first user message. */
export interface SessionSummary extends SessionRow {
  readonly prompt: string | null;
  readonly events: number;
  readonly costUsd: number | null;
}

/** Who writes a session. `host` differs where the store is shared between machines. */
export interface LeaseHolder {
  readonly pid: number;
  readonly host: string;
  /** Unix ms. */ readonly since: number;
}

export type Lease =
  | { readonly held: true; release(): Promise<void> }
  | { readonly held: false; readonly holder: LeaseHolder };

export type SessionMatch =
  | { readonly found: 'one'; readonly session: SessionRow }
  | { readonly found: 'none'; /** The nearest ids or titles. */ readonly nearest: readonly string[] }
  | { readonly found: 'many'; readonly sessions: readonly SessionRow[] };

/** The contents of a file at some moment, by their SHA-256 (hex). */
export interface Blob {
  readonly sha256: string;
  readonly bytes: Uint8Array;
}

/** When a commit is on the disk: at once, or together with the next one that is. Those in between keep their order:
 * what is lost is a tail. */
export type Synced = 'now' | 'later';

/** The durable log. Methods may reject (disk full, busy, damaged); the session reports once and goes on in memory. */
export interface Store {
  /** On the disk with the first event that is. */
  createSession(row: SessionRow): Promise<void>;
  /** One event, one commit, with the contents its `data.changes` refers to. Rejects where `seq` is taken. On the disk
   * when it resolves; with `synced: 'later'` a killed process keeps it all the same, and a power cut may take it until
   * the next commit that is synced. */
  append(sessionId: string, event: Event, blobs?: readonly Blob[], synced?: Synced): Promise<void>;
  /** Resolves once all that was appended to a session is on the disk. */
  sync(sessionId: string): Promise<void>;
  /** Contents that an event of any session refers to, or null. They go when the last session that refers to them is
   * removed. */
  blob(sha256: string): Promise<Uint8Array | null>;
  /** What waits in a session to be sent, oldest first. Not part of the record; empty for a session that is not
   * stored. */
  queue(sessionId: string): Promise<readonly QueuedMessage[]>;
  /** Puts `messages` in the place of what waited, in one commit. Does nothing for a session that is not stored. */
  setQueue(sessionId: string, messages: readonly QueuedMessage[]): Promise<void>;
  /** All events in order of `seq`. */
  load(sessionId: string): Promise<readonly Event[]>;
  session(id: string): Promise<SessionRow | null>;
  /** By id, unique id prefix, or title. An id wins over a prefix, a prefix over a title. */
  find(text: string): Promise<SessionMatch>;
  /** The session of this directory that was written to last. */
  newest(cwd: string): Promise<SessionRow | null>;
  /** The same, of a directory that may have another name now, by its id. */
  newestOfDirectory(directoryId: string): Promise<SessionRow | null>;
  /** Gives the sessions recorded of the directory `from` the path it has now, and adds that to their moves. */
  relocate(directoryId: string, from: string, to: string): Promise<void>;
  /** Newest first. */
  list(limit: number, cwd?: string): Promise<readonly SessionSummary[]>;
  /** How many sessions there are, of `cwd` where it is given. */
  count(cwd?: string): Promise<number>;
  /** The newest events that hold all words of `text` (also "phrases" and beginnings*), of the sessions of `cwd` where
   * it is given. */
  search(text: string, limit: number, cwd?: string): Promise<readonly SearchHit[]>;
  update(id: string, change: SessionChange): Promise<void>;
  remove(id: string): Promise<void>;
  /** A new session whose events are copies of the first `uptoSeq` (default: all) of `parentId`'s. */
  fork(parentId: string, row: SessionRow, uptoSeq?: number): Promise<void>;
  /** A session made elsewhere, with all its events, in one commit. Rejects where the id is taken. */
  adopt(row: SessionRow, events: readonly Event[]): Promise<void>;
  acquire(sessionId: string): Promise<Lease>;
  close(): Promise<void>;
}

/** A place in the record that holds all the words looked for. */
export interface SearchHit {
  readonly sessionId: string;
  readonly seq: number;
  readonly kind: string;
  /** Unix milliseconds. */
  readonly createdAt: number;
  /** Of the session. */
  readonly cwd: string;
  readonly title: string | null;
  /** The words in what stands around them, on one line; as stored, so not safe for a terminal. */
  readonly snippet: string;
  /** Where the words stand in `snippet`: start and end, in UTF-16 units. */
  readonly matches: readonly (readonly [start: number, end: number])[];
}

const alphabet = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
const timeDigits = 10;
const randomDigits = 16;

/** True for a ULID or a UUID of version 7: ids of sessions sort by creation time. */
export function isSessionId(text: string): boolean {
  return (
    /^[0-7][0-9a-hjkmnp-tv-z]{25}$/i.test(text) ||
    /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i.test(text)
  );
}

/** A ULID: 26 characters that sort by creation time, ten of time and sixteen of chance. `random` holds at least 16
 * bytes. Source: github.com/ulid/spec. */
export function ulid(unixMs: number, random: Uint8Array): string {
  let text = '';
  for (let digit = timeDigits - 1; digit >= 0; digit--) text += alphabet[Math.floor(unixMs / 32 ** digit) % 32] ?? '';
  for (const byte of random.subarray(0, randomDigits)) text += alphabet[byte % 32] ?? '';
  return text;
}
