import { parseJson } from '../../kernel/core/json.js';
import type { SessionRow, Synced } from '../../kernel/core/store.js';
import type {
  ChainPoint,
  LocalSession,
  Received,
  Reception,
  Redacted,
  StoredEvent,
  SyncRows,
  SyncState,
} from './team.js';
import type { Connection } from '../../kernel/store/connection.js';
import { insertBlobs, readBlob } from '../../kernel/store/event-rows.js';
import { type ChainRow, eventChecksum, linkProblem } from '../../kernel/store/hash-chain.js';
import { leaseHolder, type ProcessIdentity } from '../../kernel/store/lease.js';
import { syncTables } from '../../kernel/store/migrations.js';
import { redactEvents } from '../../kernel/store/records.js';
import { forkSession, insertSession, readSession } from '../../kernel/store/session-rows.js';

/** The lease of the process that pushes in the background, as one of a session. */
export const pushLease = 'team push';

/** The access of a store to its database. */
interface SyncAccess {
  readonly read: <T>(work: (connection: Connection) => T) => Promise<T>;
  readonly write: <T>(work: (connection: Connection) => T, synced?: Synced) => Promise<T>;
  readonly me: () => ProcessIdentity;
  /** Unix ms. */
  readonly now: () => number;
  /** The session may end earlier than it did. */
  readonly forgetEnd: (sessionId: string) => Promise<void>;
}

/** A page ends behind the event that makes it so large. */
const maxPageBytes = 4 * 1024 * 1024;

/** The text that is compared to find out if a session's row has changed since it was pushed. */
const rowText = 'json_array(s.parent_id, s.cwd, s.title, s.provider, s.model, s.api, s.base_url)';

/** Opens the machine's side of the exchange with a server. Its tables come with
 * the first call. */
export function syncRowsOf({ read, write, me, now, forgetEnd }: SyncAccess): SyncRows {
  const made = new WeakSet<Connection>();
  /** Runs work in a transaction that a power cut may undo: the server still knows what was lost. */
  const change = <T>(work: (connection: Connection) => T): Promise<T> =>
    write((connection) => {
      if (!made.has(connection)) connection.db.exec(syncTables);
      made.add(connection);
      return connection.db.transaction(() => work(connection)).immediate();
    }, 'later');
  /** Tables are made for a reader, too: what is redacted from then on is noted. */
  const look = async <T>(work: (connection: Connection) => T): Promise<T> => {
    const done = await read((connection) => (made.has(connection) ? { found: work(connection) } : null));
    return done === null ? await change(work) : done.found;
  };
  return {
    pending: (after, limit) => look((connection) => readPending(connection, after, limit)),
    session: (id) =>
      look(
        (connection) =>
          localSession(connection, id) ??
          (connection.sql('SELECT 1 FROM sync_state WHERE session_id = ?').get(id) === undefined ? null : 'removed'),
      ),
    events: (id, afterSeq, limit) => read((connection) => storedEvents(connection, id, afterSeq, limit)),
    link: (id, seq) => read((connection) => linkOf(connection, id, seq)),
    plainBlob: (sha256) => read((connection) => readBlob(connection, sha256, null)),
    missingBlobs: (hashes) =>
      read(({ sql }) =>
        hashes.filter((sha256) => sql('SELECT 1 FROM blobs WHERE sha256 = ?').get(sha256) === undefined),
      ),
    keepBlob: (sha256, bytes) =>
      change((connection) => {
        insertBlobs(connection, { blobs: [{ sha256, bytes }], seal: null });
      }),
    note: (id, state, row) =>
      change((connection) => {
        noteState(connection, id, state, row);
      }),
    token: (id, fresh) => change((connection) => tokenOf(connection, id, fresh)),
    receive: async (received) => {
      const reception = await receiveStaged(change, received, () => ({ me: me(), nowMs: now() }));
      if (reception.kind === 'stored' && received.branch) await forgetEnd(received.row.id);
      return reception;
    },
    redact: (redacted) =>
      write((connection) => {
        connection.db.exec(syncTables);
        return redactHere(connection, redacted);
      }),
    redactions: () => look(pendingRedactions),
    redactionsSent: (sent) =>
      change((connection) => {
        forgetRedactions(connection, sent);
      }),
    isPushing: () => read((connection) => leaseHolder(connection, pushLease, undefined, me(), now()) !== null),
  };
}

type Change = <T>(work: (connection: Connection) => T) => Promise<T>;

/** Stages page after page, then writes all of them at once. */
async function receiveStaged(change: Change, received: Received, settler: () => Settler): Promise<Reception> {
  let last: StagedPoint = { seq: received.after.seq, hash: linkBuffer(received.after.link) };
  await change(({ db }) => {
    db.exec(stagingTable);
  });
  for await (const page of received.pages) {
    const problem = await change((connection) => stage(connection, last, page));
    if (problem !== null) return { kind: 'broken', seq: problem };
    const end = page.at(-1);
    if (end) last = { seq: end.seq, hash: linkBuffer(end.hash) };
  }
  return await change((connection) => settle(connection, received, settler()));
}

interface PendingRow {
  readonly id: string;
}

function readPending(connection: Connection, after: string, limit: number): readonly LocalSession[] {
  const rows = connection
    .sql<PendingRow>(
      `SELECT s.id FROM sessions s LEFT JOIN sync_state y ON y.session_id = s.id
       CROSS JOIN events e ON e.session_id = s.id AND e.seq = (SELECT max(seq) FROM events WHERE session_id = s.id)
       WHERE s.id > ? AND (y.session_id IS NULL OR e.seq > y.pushed_seq
         OR (y.owner IS NULL AND y.row_text IS NOT ${rowText}))
       ORDER BY s.id LIMIT ?`,
    )
    .all(after, limit);
  return rows.flatMap(({ id }) => localSession(connection, id) ?? []);
}

interface StateRow {
  readonly pushed_seq: number;
  readonly remote_link: Buffer | null;
  readonly owner: string | null;
  readonly token: string | null;
  readonly row_pushed: number | null;
}

function localSession(connection: Connection, id: string): LocalSession | null {
  const row = readSession(connection, id);
  if (row === null) return null;
  const state = connection
    .sql<StateRow>(
      `SELECT pushed_seq, remote_link, owner, token, row_text = ${rowText} AS row_pushed
       FROM sync_state y JOIN sessions s ON s.id = y.session_id WHERE session_id = ?`,
    )
    .get(id);
  return {
    row,
    end: endOf(connection, id),
    rowPushed: state?.row_pushed === 1,
    state: state
      ? {
          pushed: { seq: state.pushed_seq, link: state.remote_link },
          owner: state.owner,
          token: state.token,
        }
      : null,
  };
}

function endOf({ sql }: Connection, id: string): ChainPoint {
  const last = sql<{ readonly seq: number; readonly hash: Buffer | null }>(
    'SELECT seq, hash FROM events WHERE session_id = ? ORDER BY seq DESC LIMIT 1',
  ).get(id);
  return last ? { seq: last.seq, link: last.hash } : { seq: 0, link: null };
}

function linkOf({ sql }: Connection, id: string, seq: number): Buffer | null {
  return (
    sql<{ readonly hash: Buffer | null }>('SELECT hash FROM events WHERE session_id = ? AND seq = ?').get(id, seq)
      ?.hash ?? null
  );
}

const eventColumns = 'seq, kind, content, data_json, created_at, crc32, hash, redacted';

function storedEvents({ sql }: Connection, id: string, afterSeq: number, limit: number): readonly StoredEvent[] {
  const page: StoredEvent[] = [];
  let bytes = 0;
  const rows = sql<ChainRow>(
    `SELECT ${eventColumns} FROM events WHERE session_id = ? AND seq > ? ORDER BY seq LIMIT ?`,
  ).iterate(id, afterSeq, limit);
  for (const row of rows) {
    page.push(storedEvent(row));
    bytes += (row.content?.length ?? 0) + (row.data_json?.length ?? 0);
    if (bytes > maxPageBytes) break;
  }
  return page;
}

function storedEvent(row: ChainRow): StoredEvent {
  const { seq, kind, content, data_json, created_at, crc32, hash, redacted } = row;
  return { seq, kind, content, dataJson: data_json, createdAt: created_at, crc32, hash, redacted };
}

function chainRow({ seq, kind, content, dataJson, createdAt, crc32, hash, redacted }: StoredEvent): ChainRow {
  return { seq, kind, content, data_json: dataJson, created_at: createdAt, crc32, hash: linkBuffer(hash), redacted };
}

function linkBuffer(link: Uint8Array | null): Buffer | null {
  return link === null ? null : Buffer.from(link.buffer, link.byteOffset, link.byteLength);
}

function noteState({ sql }: Connection, id: string, state: SyncState, row?: SessionRow): void {
  const { pushed, owner, token } = state;
  sql(
    `INSERT INTO sync_state (session_id, pushed_seq, remote_link, owner, token) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT DO UPDATE SET pushed_seq = excluded.pushed_seq, remote_link = excluded.remote_link,
       owner = excluded.owner, token = excluded.token`,
  ).run(id, pushed.seq, linkBuffer(pushed.link), owner, token);
  if (row)
    sql('UPDATE sync_state SET row_text = json_array(?, ?, ?, ?, ?, ?, ?) WHERE session_id = ?').run(
      ...[row.parentId, row.cwd, row.title, row.provider, row.model, row.api ?? null, row.baseUrl ?? null, id],
    );
}

function tokenOf({ sql }: Connection, id: string, fresh: string): string {
  const noted = sql<{ readonly token: string }>(
    `INSERT INTO sync_state (session_id, pushed_seq, remote_link, owner, token) VALUES (?, 0, NULL, NULL, ?)
     ON CONFLICT DO UPDATE SET token = coalesce(token, excluded.token) RETURNING token`,
  ).get(id, fresh);
  return noted?.token ?? fresh;
}

/** The table of received events until all have arrived. It belongs to the connection, so it ends with the process. */
const stagingTable = `
CREATE TEMP TABLE IF NOT EXISTS sync_staged(seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, content TEXT, data_json TEXT,
  created_at INTEGER NOT NULL, crc32 INTEGER, hash BLOB, redacted TEXT);
DELETE FROM sync_staged;`;

type StagedPoint = Pick<ChainRow, 'seq' | 'hash'>;

/** Returns the `seq` of the first event that does not follow from those before it. */
function stage({ sql }: Connection, after: StagedPoint, page: readonly StoredEvent[]): number | null {
  let last = after;
  const insert = sql(`INSERT INTO sync_staged (${eventColumns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`);
  for (const event of page) {
    const row = chainRow(event);
    const sum = eventChecksum(row);
    if (row.seq !== last.seq + 1 || linkProblem(last, { ...row, crc32: sum }) !== null || !isJson(row.data_json))
      return row.seq;
    insert.run(row.seq, row.kind, row.content, row.data_json, row.created_at, sum, row.hash, row.redacted);
    last = row;
  }
  return null;
}

function isJson(text: string | null): boolean {
  try {
    if (text !== null) parseJson(text);
    return true;
  } catch {
    return false;
  }
}

interface Settler {
  readonly me: ProcessIdentity;
  readonly nowMs: number;
}

/** Moves the staged events into the session. */
function settle(connection: Connection, received: Received, { me, nowMs }: Settler): Reception {
  const { sql } = connection;
  const { row, owner, seen, after, branch } = received;
  const here = localSession(connection, row.id);
  if ((here === null) !== (seen === null) || (here && seen && !samePoint(here.end, seen))) return { kind: 'changed' };
  if (leaseHolder(connection, row.id, undefined, me, nowMs)) return { kind: 'in_use' };
  if (branch) {
    forkSession(connection, row.id, branch);
    sql('DELETE FROM events WHERE session_id = ? AND seq > ?').run(row.id, after.seq);
  }
  if (here === null) insertSession(connection, ownPlace(row));
  const { changes } = sql(`INSERT INTO events (session_id, ${eventColumns})
      SELECT ?, ${eventColumns} FROM sync_staged ORDER BY seq`).run(row.id);
  sql('DELETE FROM sync_staged').run();
  sql(`UPDATE sessions SET title = ?, provider = ?, model = ?, updated_at = ? WHERE id = ?`).run(
    row.title,
    row.provider,
    row.model,
    row.updatedAt,
    row.id,
  );
  const state = { pushed: endOf(connection, row.id), owner, token: here?.state?.token ?? null };
  noteState(connection, row.id, state, readSession(connection, row.id) ?? row);
  return { kind: 'stored', events: changes };
}

function samePoint(one: ChainPoint, other: ChainPoint): boolean {
  return one.seq === other.seq && sameLink(one.link, other.link);
}

export function sameLink(one: Uint8Array | null, other: Uint8Array | null): boolean {
  return one === null || other === null ? one === other : Buffer.compare(one, other) === 0;
}

/** Returns the row without the machine and the server's address: keys go only to addresses in the user's settings. */
function ownPlace({
  directoryId: _directory,
  api: _api,
  baseUrl: _url,
  moves: _moves,
  ...row
}: SessionRow): SessionRow {
  return row;
}

function redactHere(connection: Connection, redacted: readonly Redacted[]): number {
  const open = redacted.filter(({ sessionId, event }) => {
    const row = connection
      .sql<ChainRow>(`SELECT ${eventColumns} FROM events WHERE session_id = ? AND seq = ?`)
      .get(sessionId, event.seq);
    return row !== undefined && row.redacted === null && sameLink(row.hash, event.hash);
  });
  if (open.length === 0) return 0;
  const changed = redactEvents(
    connection,
    open.map(({ sessionId, event: { seq, content, dataJson } }) => ({
      sessionId,
      seq,
      replacement: { content, data: dataJson === null ? null : parseJson(dataJson) },
    })),
  );
  forgetRedactions(connection, open);
  return changed;
}

function pendingRedactions({ sql }: Connection): readonly Redacted[] {
  return sql<ChainRow & { readonly session_id: string }>(
    `SELECT r.session_id, ${eventColumns.replaceAll(/\w+/g, 'e.$&')} FROM sync_redactions r
     JOIN events e ON e.session_id = r.session_id AND e.seq = r.seq ORDER BY r.session_id, r.seq`,
  )
    .all()
    .map((row) => ({ sessionId: row.session_id, event: storedEvent(row) }));
}

function forgetRedactions({ sql }: Connection, known: readonly Redacted[]): void {
  for (const { sessionId, event } of known)
    sql('DELETE FROM sync_redactions WHERE session_id = ? AND seq = ?').run(sessionId, event.seq);
}
