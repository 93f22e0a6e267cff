import type { TeamScope } from '../../kernel/console/shared-record-port.js';
import type { SearchFilters } from '../../kernel/core/files/search-filters.js';
import type {
  SqlAnswer,
  Blob,
  LeaseHolder,
  SearchHit,
  SessionLog,
  SessionRow,
  SessionSummary,
  Synced,
} from '../../kernel/core/store.js';

/** The store that a team shares. Every method may reject with a StoreError
 * whose `message` and `hint` are for the user:
 * `unreachable`: no such host, nobody listens, the connection broke.
 * `refused`: name, password or database.
 * `tls`: the certificate.
 * `uninitialised`, `older`, `newer`: its tables; `agent db init` makes them.
 * `forbidden`: rights.
 * `slow`: a question that took over two seconds.
 * `disk_full`; `rejected`: anything else. */
export interface Team {
  readonly log: TeamLog;
  readonly blobs: TeamBlobs;
  readonly leases: TeamLeases;
  readonly record: TeamRecord;
  readonly watch: TeamWatch;
  facts(): Promise<TeamFacts>;
  /** Ends the connection, which is opened again by the next call. It also ends
   * by itself 30 s after the last call and never keeps the process alive. */
  close(): Promise<void>;
}

/** An event as stores keep it, byte for byte, so that its link in the chain
 * stays right. */
export interface StoredEvent {
  readonly seq: number;
  readonly kind: string;
  /** Well-formed; may hold U+0000. */
  readonly content: string | null;
  /** JSON text. */
  readonly dataJson: string | null;
  /** Unix ms. */
  readonly createdAt: number;
  readonly crc32: number | null;
  /** The link of the hash chain, 16 bytes (32 of earlier versions). */
  readonly hash: Uint8Array | null;
  /** The digests of the old texts, as JSON, where the texts were redacted. */
  readonly redacted: string | null;
}

/** A place in a session: the last event before it and that event's link. The
 * start is `{ seq: 0, link: null }`. */
export interface ChainPoint {
  readonly seq: number;
  readonly link: Uint8Array | null;
}

/** A session on the server. `owner` is the role that made it, who alone may
 * write it. Members of the role `team` may read it. */
export interface TeamSession extends SessionRow {
  readonly owner: string;
  /** `owner` is the role that asks. */
  readonly isOwn: boolean;
  readonly team: string | null;
  /** The name of the machine that wrote to it last. */
  readonly machine: string | null;
  readonly end: ChainPoint;
  /** The `seq` of each event whose texts were redacted. */
  readonly redacted: readonly number[];
}

export interface Push {
  /** Its title, model and directory replace those on the server. */
  readonly session: SessionRow;
  readonly team: string | null;
  readonly machine: string;
  /** The end that the session must have on the server. */
  readonly after: ChainPoint;
  /** The next ones, without a gap; at most some hundreds, at most some tens of
   * MB. Empty: the session's row alone. */
  readonly events: readonly StoredEvent[];
  /** Of the lease of this session. */
  readonly token: string;
  /** `later`: a crash of the server may take the tail. Default `now`. */
  readonly synced?: Synced;
}

/** `stored`: all events are there now. `repeat`: they were there already. `behind`: the server's session ends earlier,
 * at `end`; continue from there if the local event has that link. `diverged`: the server has other events at these
 * places. `lease_lost`: another process holds the session. Nothing was written unless `stored`. */
export type Pushed =
  | { readonly kind: 'stored' | 'repeat' }
  | { readonly kind: 'behind' | 'diverged'; readonly end: ChainPoint }
  | { readonly kind: 'lease_lost' };

export interface TeamLog {
  /** Appends in one commit under the lease; makes the session where
   * `after.seq` is 0. Rejects with `exists` where the id belongs to somebody
   * else. */
  push(push: Push): Promise<Pushed>;
  /** Null where there is none, or none that this role may see. */
  session(id: string): Promise<TeamSession | null>;
  /** Lists the sessions that this role may see, including those of agents, in order of their ids from after `after`.
   * `since`: written to since then (Unix ms). */
  sessions(after: string, limit: number, since?: number): Promise<readonly TeamSession[]>;
  /** In order of `seq`. Fewer than `limit` where the texts are large: read on
   * until none comes. */
  events(id: string, afterSeq: number, limit: number): Promise<readonly StoredEvent[]>;
  /** Replaces the texts of an event and of its copies in forks by those of
   * `event`. Its `hash` and `redacted` say what was there. Resolves to the
   * number of events changed; 0 where it is none of this role's own. */
  redact(sessionId: string, event: StoredEvent): Promise<number>;
  /** With the sessions of its agents. False where it is none of this role's
   * own. */
  remove(id: string): Promise<boolean>;
}

/** Contents of files by their hash. A session refers to them; who may read the
 * session may read them. */
export interface TeamBlobs {
  /** Returns those of these hashes that have to be sent for a session of the user; it refers to the others from now
   * on. */
  missing(sessionId: string, sha256: readonly string[]): Promise<readonly string[]>;
  /** Rejects with `rejected` for bytes of another hash. Do not send what holds
   * secrets: the server keeps it readable. */
  put(sessionId: string, blobs: readonly Blob[]): Promise<void>;
  /** The hashes that a session refers to. */
  of(sessionId: string): Promise<readonly string[]>;
  get(sha256: string): Promise<Uint8Array | null>;
}

type TeamLease =
  | { readonly held: true; readonly token: string }
  | { readonly held: false; readonly holder: LeaseHolder };

/** The leases of sessions: one process writes a session. A lease without a beat for 60 s of the server's time is free.
 * Beat every 20 s. */
export interface TeamLeases {
  /** Rejects with `exists` where the session is somebody else's. A `token`
   * that was written down before gets its own lease back, whoever was killed
   * with it. */
  acquire(sessionId: string, token?: string): Promise<TeamLease>;
  /** False: another process has taken it, or nobody holds it any more. */
  beat(sessionId: string, token: string): Promise<boolean>;
  release(sessionId: string, token: string): Promise<void>;
}

export interface TeamSummary extends SessionSummary {
  readonly owner: string;
  readonly team: string | null;
  readonly machine: string | null;
}

export interface TeamHit extends SearchHit {
  readonly owner: string;
}

/** The work of the team, as far as this role may see it. */
export interface TeamRecord {
  /** Lists the last written sessions first, without those of agents. */
  sessions(limit: number, scope?: TeamScope): Promise<readonly TeamSummary[]>;
  /** The newest events that hold all words; `text`, `filters` and what they
   * mean are those of `Store.search`. `onUnreadable` gets the number of events
   * that were left out because their JSON is broken. */
  search(
    text: string,
    limit: number,
    scope?: TeamScope,
    filters?: SearchFilters,
    onUnreadable?: (count: number) => void,
  ): Promise<readonly TeamHit[]>;
  /** Answers one reading question in SQL, over the tables of the server and
   * the views of docs/record.md, as far as this role may read. */
  ask(question: string): Promise<SqlAnswer>;
  /** The newest tool calls, oldest first. */
  calls(limit: number, filter?: TeamCallFilter): Promise<readonly TeamCall[]>;
  /** Returns the cost of requests, the highest first; days in order. `zone`: the IANA zone of the days. */
  spent(by: SpentBy, zone: string, scope?: TeamScope): Promise<readonly TeamSpending[]>;
}

export const spentBy = ['person', 'project', 'model', 'day'] as const;
export type SpentBy = (typeof spentBy)[number];

interface TeamCallFilter extends TeamScope {
  readonly sessionId?: string;
  readonly tool?: string;
  /** `ok`, `open`, the code of an error, or `failed` for every one of them. */
  readonly status?: string;
}

export interface TeamCall {
  readonly owner: string;
  readonly sessionId: string;
  readonly seq: number;
  /** Unix ms. */
  readonly createdAt: number;
  readonly cwd: string;
  readonly tool: string | null;
  readonly summary: string | null;
  readonly durationMs: number | null;
  /** `open`, `ok`, else the code of the error, or `failed`. */
  readonly status: string;
}

/** Of one person, project, model or day. */
export interface TeamSpending {
  readonly name: string;
  readonly requests: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly costUsd: number;
  /** Requests without a known price. */
  readonly unpriced: number;
}

/** A session that another machine writes. */
export interface TeamWatch extends Pick<SessionLog, 'load' | 'tail'> {
  /** Calls `ring` whenever something was pushed to the session. Resolves to a function that ends that; null if the
   * server cannot notify, as behind a pooler: then look again from time to time. */
  listen(id: string, ring: () => void): Promise<(() => Promise<void>) | null>;
}

export interface TeamFacts {
  /** Host, port and database, without a password. */
  readonly server: string;
  /** Of PostgreSQL. */
  readonly version: string;
  readonly schema: number;
  readonly role: string;
  /** The roles whose sessions this role may read, itself left out. */
  readonly teams: readonly string[];
  readonly encrypted: boolean;
  readonly sessions: number;
  /** Of all; an estimate. */
  readonly events: number;
  /** Of the database. */
  readonly bytes: number;
}

/** A session of this machine and how far it went along to the team's server. */
export interface LocalSession {
  readonly row: SessionRow;
  readonly end: ChainPoint;
  /** Its title, model and directory are those that were pushed or received
   * last. */
  readonly rowPushed: boolean;
  /** Null: nothing of it is known to be at the server. */
  readonly state: SyncState | null;
}

/** The state of a session at the server, as far as this machine knows it. */
export interface SyncState {
  /** The last event that both are known to have had. */
  readonly pushed: ChainPoint;
  /** The role that owns the session; null if the user does. */
  readonly owner: string | null;
  /** Of the lease that this machine took last. */
  readonly token: string | null;
}

/** A session as it comes from the server. */
export interface Received {
  readonly row: SessionRow;
  /** Null: the user's role. */
  readonly owner: string | null;
  /** The local end of the session when it was decided to take these events: nothing is written if it has changed. Null:
   * the session is not here. */
  readonly seen: ChainPoint | null;
  /** The events after this place are taken. Local events after it go to `branch`. */
  readonly after: ChainPoint;
  /** The rest of the session in order of `seq`. */
  readonly pages: AsyncIterable<readonly StoredEvent[]>;
  /** The local branch of a session that was continued in two places: a new session gets a copy of all its events. */
  readonly branch?: SessionRow;
}

/** `in_use`: a living process writes the session. `changed`: it is not as it
 * was `seen`. `broken`: the event `seq` does not follow from the one before
 * it. Nothing was written unless `stored`. */
export type Reception =
  | { readonly kind: 'stored'; readonly events: number }
  | { readonly kind: 'in_use' | 'changed' }
  | { readonly kind: 'broken'; readonly seq: number };

/** The machine's side of the exchange with a team's server. Methods reject as
 * those of the store do. */
export interface SyncRows {
  /** Sessions with something to push, in order of their ids, from behind
   * `after`. */
  pending(after: string, limit: number): Promise<readonly LocalSession[]>;
  /** Null where it never was here. */
  session(id: string): Promise<LocalSession | 'removed' | null>;
  /** In order of `seq`, as they are stored; fewer than `limit` where they are
   * large, but one at least. */
  events(id: string, afterSeq: number, limit: number): Promise<readonly StoredEvent[]>;
  /** The link of an event; null where there is no such event. */
  link(id: string, seq: number): Promise<Uint8Array | null>;
  /** Contents of a file; null where they are not here or hold a secret. */
  plainBlob(sha256: string): Promise<Uint8Array | null>;
  /** Returns those of these hashes whose contents are not here. */
  missingBlobs(sha256: readonly string[]): Promise<readonly string[]>;
  /** Keeps contents for the session that is received next. */
  keepBlob(sha256: string, bytes: Uint8Array): Promise<void>;
  /** Notes what is known of the server. `row`: the session's row is there as
   * it is here. */
  note(id: string, state: SyncState, row?: SessionRow): Promise<void>;
  /** Returns the token of this machine for the lease of a session: the one that is noted, or `fresh`, which is noted
   * then. All processes of the machine get the same. */
  token(id: string, fresh: string): Promise<string>;
  /** Takes events of the server in one commit, however many they are. */
  receive(received: Received): Promise<Reception>;
  /** Redacts events as they were redacted elsewhere; those that are redacted
   * here, too, stay. Resolves to their number. */
  redact(redacted: readonly Redacted[]): Promise<number>;
  /** Returns the local redactions that the server may not have yet. */
  redactions(): Promise<readonly Redacted[]>;
  redactionsSent(sent: readonly Redacted[]): Promise<void>;
  /** Returns true if a process of this machine pushes in the background. */
  isPushing(): Promise<boolean>;
}

export interface Redacted {
  readonly sessionId: string;
  readonly event: StoredEvent;
}

/** Which sessions: one, or those written to since then (Unix ms); all without
 * either. */
export interface ExchangeScope {
  readonly sessionId?: string;
  readonly since?: number;
  /** Of those to push: the open ones, and those with ids behind this. */
  readonly after?: string;
}

/** The outcome for a session. `branched`: it was continued in two places, and the local branch is the session `branch`
 * from now on. */
export type ExchangeOutcome =
  | { readonly kind: 'pushed' | 'pulled'; readonly sessionId: string; readonly events: number }
  /** `events`: the number of events of a local session that were redacted on the server, possibly by a colleague. */
  | { readonly kind: 'redacted'; readonly sessionId: string; readonly events: number }
  | { readonly kind: 'branched'; readonly sessionId: string; readonly branch: string }
  | {
      readonly kind: 'left';
      readonly sessionId: string;
      readonly reason: string;
      /** The number of events that are not sent; absent where nothing was to be sent. */
      readonly unsent?: number;
    };

/** Returns the sentence about events of a session that others redacted. */
export function redactedLine({ sessionId, events }: Extract<ExchangeOutcome, { kind: 'redacted' }>): string {
  const counted = `${events} ${events === 1 ? 'event' : 'events'}`;
  return `Redacted in the team's store, by you elsewhere or by a colleague: ${counted} of session ${sessionId}.`;
}

export interface Exchange {
  /** Sends what the server lacks, in order; also what was redacted. */
  push(scope?: ExchangeScope): Promise<readonly ExchangeOutcome[]>;
  /** Fetches the user's and the team's sessions and events that this machine lacks. */
  pull(scope?: ExchangeScope): Promise<readonly ExchangeOutcome[]>;
  /** A session is open here: it is pushed first, and its lease is kept until
   * `release`. */
  keep(sessionId: string): void;
  /** Says that the open sessions are in use still. */
  beat(): Promise<void>;
  release(): Promise<void>;
}
