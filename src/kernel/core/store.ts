import type { Event } from './event.js';
import type { ModelRef } from './projection.js';
import type { SearchFilters } from './files/search-filters.js';
import type { KeptMessage, QueuedMessage } from './session-port.js';
import type { TextTrace } from './text-trace.js';
import type { UsageTotals } from './usage-totals.js';

/** A directory that was moved with its contents. A path below `from` in an event up to `lastSeq` is now below `to`. */
export interface DirectoryMove {
  readonly from: string;
  readonly to: string;
  readonly lastSeq: number;
}

export interface SessionRow {
  readonly id: string;
  readonly parentId: string | null;
  /** Of the call in the parent's session that an agent works for; absent for a session of the user. */
  readonly parentCallId?: string;
  /** The session holds the calls of another program. */
  readonly door?: 'mcp';
  /** Absolute. */
  readonly cwd: string;
  /** Identifies the directory, whatever its path is; absent when it is not known. */
  readonly directoryId?: string;
  /** The moves of that directory since the session began, oldest first. */
  readonly moves?: readonly DirectoryMove[];
  readonly title: string | null;
  readonly provider: string | null;
  readonly model: string | null;
  /** The wire and the base URL of the session's requests, without secrets. Absent for the embedded provider, for
   * earlier sessions and for imported ones. */
  readonly api?: string;
  readonly baseUrl?: string;
  /** Unix milliseconds. */
  readonly createdAt: number;
  readonly updatedAt: number;
}

/** The part of a session's row that names its model. */
export function placeOf({ provider, model, api, baseUrl }: ModelRef): {
  readonly provider: string;
  readonly model: string;
  readonly api?: string;
  readonly baseUrl?: string;
} {
  return { provider, model, ...(baseUrl === undefined ? {} : { api, baseUrl }) };
}

/** An empty `api` or `baseUrl` removes the stored one. */
export type SessionChange = Readonly<
  Partial<Record<'title' | 'provider' | 'model' | 'api' | 'baseUrl' | 'directoryId', string>>
>;

/** A session in a listing. `prompt` is the first line of its first user message. */
export interface SessionSummary extends SessionRow {
  readonly prompt: string | null;
  readonly events: number;
  readonly costUsd: number | null;
}

/** The writer of a session. `host` matters when machines share the store. */
export interface LeaseHolder {
  readonly pid: number;
  readonly host: string;
  /** Unix ms. */ readonly since: number;
}

export type Lease =
  | { readonly held: true; release(): Promise<void> }
  | { readonly held: false; readonly holder: LeaseHolder };

/** No more sessions than these are given of many that match. */
export const maxMatches = 20;

export type SessionMatch =
  | { readonly found: 'one'; readonly session: SessionRow }
  | { readonly found: 'none'; /** The nearest ids or titles. */ readonly nearest: readonly string[] }
  | { readonly found: 'many'; readonly sessions: readonly SessionRow[] };

/** The contents of a file at some moment, by their SHA-256 (hex). */
export interface Blob {
  readonly sha256: string;
  readonly bytes: Uint8Array;
}

/** When a commit reaches the disk: at once, or with the next one that does. Those in between keep their order, so a
 * power cut takes a tail only. */
export type Synced = 'now' | 'later';

/** The part of its log that a session needs from one request to the next: the events since its last compaction, and of those
 * before it all of which there are few, notes to the model among them, and the first messages. */
export interface RecentEvents {
  readonly events: readonly Event[];
  /** The last event of those that may be left out. */
  readonly leftOutTo: number;
  /** The usage of the requests up to `leftOutTo`. */
  readonly totals: UsageTotals;
}

/** Reads a part of a long session. */
export interface SessionHistory {
  /** Null: the session needs all of its events, or has none. */
  recent(sessionId: string): Promise<RecentEvents | null>;
  /** Returns the events up to `seq` in order, of these kinds only where they are given, before it returns. Throws a
   * `StoreError` where they cannot be read. */
  earlier(sessionId: string, seq: number, kinds?: readonly string[]): readonly Event[];
}

/** The log of the sessions that a process works on. Methods may reject (disk full, busy, damaged); the session reports
 * that once and continues in memory. */
export interface SessionLog {
  /** Reaches the disk with its first event. */
  createSession(row: SessionRow): Promise<void>;
  /** Writes one event in one commit, with the contents its `data.changes` refers to. Rejects when `seq` is taken. The
   * event is on the disk when this resolves; with `synced: 'later'` a power cut may take it until the next synced
   * commit, a kill does not. */
  append(sessionId: string, event: Event, blobs?: readonly Blob[], synced?: Synced): Promise<void>;
  /** Resolves once all that was appended to a session is on the disk. */
  sync(sessionId: string): Promise<void>;
  /** All events in order of `seq`. */
  load(sessionId: string): Promise<readonly Event[]>;
  /** Absent: the store reads whole sessions only. */
  readonly history?: SessionHistory;
  /** The last `count` events in order of `seq`, without a look at those before. */
  tail(sessionId: string, count: number): Promise<readonly Event[]>;
  /** The first `count` events after the event `seq`, in order of `seq`. */
  page(sessionId: string, seq: number, count: number): Promise<readonly Event[]>;
  /** Contents that an event of any session refers to, or null. They go when the last event that refers to them is
   * removed or redacted. */
  blob(sha256: string): Promise<Uint8Array | null>;
  /** Messages that wait in a session to be sent, oldest first. They are no part of the record; a session that is not
   * stored has none. */
  queue(sessionId: string): Promise<readonly QueuedMessage[]>;
  /** Replaces the waiting messages in one commit. Does nothing for a session that is not stored. */
  setQueue(sessionId: string, messages: readonly QueuedMessage[]): Promise<void>;
  /** Keeps a message until it is dropped; the same message once. Resolves to false for a session that is not stored,
   * which keeps none. */
  keepMessage(sessionId: string, message: KeptMessage): Promise<boolean>;
  /** Oldest first. */
  keptMessages(sessionId: string): Promise<readonly KeptMessage[]>;
  dropMessage(sessionId: string, id: string): Promise<void>;
  update(id: string, change: SessionChange): Promise<void>;
  acquire(sessionId: string): Promise<Lease>;
  close(): Promise<void>;
}

/** The sessions of a listing. */
export interface SessionScope {
  readonly cwd?: string;
  readonly agentsToo?: boolean;
  /** Limits the listing to sessions that were not written to since then (Unix ms). */
  readonly before?: number;
}

/** Sessions, newest first. */
export interface SessionPages {
  readonly count: number;
  readonly pages: AsyncIterable<readonly SessionSummary[]>;
}

/** The sessions that are stored. */
export interface SessionCatalogue {
  session(id: string): Promise<SessionRow | null>;
  /** By id, unique id prefix, or title. An id wins over a prefix, a prefix over a title. */
  find(text: string): Promise<SessionMatch>;
  /** The session of this directory that was written to last, except those of agents and of other programs. */
  newest(cwd: string): Promise<SessionRow | null>;
  /** The same, by the id of a directory, which may have been moved. */
  newestOfDirectory(directoryId: string): Promise<SessionRow | null>;
  /** Gives the sessions of the directory `from` its new path, and adds the move to them. */
  relocate(directoryId: string, from: string, to: string): Promise<void>;
  /** Newest first. Sessions of agents are left out unless `agentsToo` is set; what they cost is part of what their
   * parents cost. */
  list(limit: number, cwd?: string, agentsToo?: boolean): Promise<readonly SessionSummary[]>;
  /** The same sessions in pages, between which other work runs. */
  browse(scope?: SessionScope): Promise<SessionPages>;
  /** The number of such sessions; those of `cwd` when it is given. */
  count(cwd?: string, agentsToo?: boolean): Promise<number>;
  /** The sessions of agents that worked for a session, oldest first. */
  agentsOf(parentId: string): Promise<readonly SessionRow[]>;
  /** The newest events that hold all words of `text` (also "phrases" and beginnings*), in the sessions of `cwd` when it
   * is given, and that `filters` let through. Without a word, filters find every event that they let through. */
  search(text: string, limit: number, cwd?: string, filters?: SearchFilters): Promise<readonly SearchHit[]>;
  /** The share of the events that a search for words covers, from 0 to 1: the newest ones, while the events of an old
   * database or of a large import are being indexed. */
  searchCoverage(): Promise<number>;
  /** With the sessions of its agents. */
  remove(id: string): Promise<void>;
  /** A new session whose events are copies of the first `uptoSeq` (default: all) of `parentId`'s. */
  fork(parentId: string, row: SessionRow, uptoSeq?: number): Promise<void>;
  /** Stores a session from elsewhere with all its events, and the contents that these refer to: it is there whole or
   * not at all. Rejects when the id is taken. The events may be made while they are written, so that a long session is
   * never whole in memory; where making one throws, nothing is stored. */
  adopt(row: SessionRow, events: Iterable<Event>, blobs?: readonly Blob[]): Promise<void>;
}

export type Store = SessionLog & SessionCatalogue;

/** Reads and maintains the record of all sessions, which `Store` writes. */
export interface Records {
  /** Tool calls, oldest first. */
  calls(filter?: CallFilter): Promise<readonly RecordedCall[]>;
  /** The same in batches, for listings that print while they read. */
  eachCall(filter?: CallFilter): AsyncIterable<readonly RecordedCall[]>;
  /** Prompts, tool calls and requests, in order of session and `seq`. Requests of agents stand where their session was
   * waiting for them. */
  spending(scope?: RecordScope): Promise<readonly SpendingRow[]>;
  /** Calls, turns and requests, added up. `progress` receives the share that is done where that takes long. */
  totals(scope?: RecordScope, progress?: (share: number) => void): Promise<RecordTotals>;
  /** Compares the stored totals with the events, and adds up again those that differ. Resolves to the ids of their
   * sessions. Null: the store keeps no totals. */
  readonly checkTotals: ((progress: (share: number) => void) => Promise<readonly string[]>) | null;
  /** Follows the hash chain of one session, or of all. */
  verify(sessionId: string | null, progress?: (share: number) => void): Promise<ChainReport>;
  /** Replaces the texts of an event and of its copies in forks, and removes every trace of the old ones. The chain
   * stays whole. Resolves to the number of events changed. */
  redact(sessionId: string, seq: number, replacement: Pick<Event, 'content' | 'data'>): Promise<number>;
  /** Removes what quotes the texts of `trace` from all that is stored, and the contents with these SHA-256 (hex), and
   * wipes it. Null: the store cannot look through all of it. */
  readonly erase: ((trace: TextTrace | null, contents: readonly string[]) => Promise<Erased>) | null;
  /** Returns the space of removed sessions to the disk and wipes it. */
  compact(): Promise<void>;
  /** Completes the search index; `progress` receives the share that is done, from 0 to 1. Null: it is always complete. */
  readonly completeIndex: ((progress: (share: number) => void) => Promise<void>) | null;
  /** Answers one reading question in SQL, over the tables and views of docs/record.md. Null: the store does not speak
   * SQL. */
  readonly ask: ((sql: string, parameters?: readonly unknown[]) => Promise<SqlAnswer>) | null;
}

/** The number of erased items: events and their sessions, titles, messages, notes and tasks (`others`), contents kept
 * for undo. */
export interface Erased {
  readonly events: number;
  readonly sessions: readonly string[];
  readonly others: number;
  readonly contents: number;
}

/** Unix ms, and the directory of the session. */
export interface RecordScope {
  readonly since?: number;
  readonly cwd?: string;
}

export interface CallFilter extends RecordScope {
  readonly sessionId?: string;
  readonly tool?: string;
  /** `failed` means every status except `ok` and `open`. */
  readonly status?: string;
  readonly exceptOk?: boolean;
  readonly decidedBy?: string;
  /** The newest calls only. */
  readonly limit?: number;
}

/** A tool call with its outcome. */
export interface RecordedCall {
  readonly sessionId: string;
  readonly seq: number;
  /** Unix ms. */
  readonly createdAt: number;
  readonly cwd: string;
  readonly callId: string | null;
  readonly tool: string | null;
  /** JSON as the model wrote it. */
  readonly arguments: string | null;
  readonly summary: string | null;
  readonly started: boolean;
  readonly durationMs: number | null;
  /** `open`, `ok`, else the code of the error, or `failed`. */
  readonly status: string;
  readonly decision: string | null;
  readonly decidedBy: string | null;
  readonly risk: string | null;
  readonly error: string | null;
}

/** A prompt, a tool call or a request. Tokens and cost are those of a request; a price that is not known is null. */
export interface SpendingRow {
  readonly sessionId: string;
  readonly kind: 'user' | 'tool_call' | 'usage';
  readonly responseId: string | null;
  /** Unix ms. */
  readonly createdAt: number;
  readonly cwd: string;
  readonly provider: string | null;
  readonly model: string | null;
  /** See `UsageData`; null for what is no request. */
  readonly role: string | null;
  /** Includes tokens read from and written to the cache. */
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly costUsd: number | null;
}

/** Tool calls with the same tool and outcome. */
export interface CallTotal {
  readonly tool: string | null;
  readonly status: string;
  readonly calls: number;
  /** The durations (ms) of those that ran, in any order. */
  readonly durations: readonly number[];
}

/** Requests added up; `costUsd` counts the known costs, `unpriced` the requests without one. */
export interface Spent {
  readonly requests: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly costUsd: number;
  readonly unpriced: number;
}

export interface RequestTotal extends Spent {
  /** The quarter of an hour in which they were made: its start, Unix ms. */
  readonly at: number;
  readonly cwd: string;
  readonly provider: string | null;
  readonly model: string | null;
  readonly role: string | null;
}

/** User turns with the same number of responses that asked for tools. */
export interface TurnTotal extends Spent {
  readonly responses: number;
  readonly turns: number;
}

/** The record, added up. The same tool, quarter of an hour or number of responses may occur several times. */
export interface RecordTotals {
  readonly calls: readonly CallTotal[];
  readonly requests: readonly RequestTotal[];
  readonly turns: readonly TurnTotal[];
}

/** The first place in a session where the record has changed since it was written. */
export interface ChainBreak {
  readonly sessionId: string;
  readonly seq: number;
  /** `content`: the event itself was changed. `chain`: it is whole, but not what followed the event before it.
   * `missing`: events between it and the one before are gone. `unhashed`: it was not written by this program. */
  readonly kind: 'content' | 'chain' | 'missing' | 'unhashed';
  /** Unix ms, as the event says. */
  readonly createdAt: number;
}

export interface ChainReport {
  readonly sessions: number;
  readonly events: number;
  readonly redacted: number;
  /** At most one of each session, in order of session ids. */
  readonly breaks: readonly ChainBreak[];
  /** The last link of each session (hex). A copy of it elsewhere shows later whether anything before it has changed. */
  readonly heads: readonly { readonly sessionId: string; readonly seq: number; readonly hash: string }[];
}

/** Columns in order; each row has one value for each of them. */
export interface SqlAnswer {
  readonly columns: readonly string[];
  readonly rows: AsyncIterable<readonly unknown[]>;
}

/** The last event of a session that was known to be on the disk. `cwd` is absolute. */
export interface SessionEnd {
  readonly sessionId: string;
  readonly seq: number;
  readonly cwd: string;
}

/** Kept apart from the log, so that a log that was truncated, deleted or replaced by another program is noticed. */
export interface SessionEnds {
  /** Newest first. */
  list(): readonly SessionEnd[];
  /** Never rejects. */
  note(end: SessionEnd): Promise<void>;
  /** Never rejects. */
  forget(sessionId: string): Promise<void>;
}

/** An event that holds all the words of a search. */
export interface SearchHit {
  readonly sessionId: string;
  readonly seq: number;
  readonly kind: string;
  /** Unix milliseconds. */
  readonly createdAt: number;
  /** Of the session. */
  readonly cwd: string;
  readonly title: string | null;
  /** The user, where the session is somebody else's. */
  readonly owner?: string;
  /** The text around the words, on one line. It is as stored, so not safe for a terminal. */
  readonly snippet: string;
  /** The places of the words in `snippet`: start and end, in UTF-16 units. */
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

/** Encrypts contents that hold secrets, so that they cannot be read in the file. */
export interface BlobSeal {
  /** 32 bytes. */
  key(): Uint8Array;
  holdsSecret(bytes: Uint8Array): boolean;
}
