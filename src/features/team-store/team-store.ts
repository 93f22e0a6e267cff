import { parseJson } from '../../kernel/core/json.js';
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { noFilters } from '../../kernel/core/files/search-filters.js';
import { isRecord } from '../../kernel/core/json.js';
import { loadOnce } from '../../kernel/core/runtime.js';
import type { SessionRow } from '../../kernel/core/store.js';
import {
  type ChainPoint,
  type Push,
  type Pushed,
  type StoredEvent,
  type Team,
  type TeamBlobs,
  type TeamFacts,
  type TeamLeases,
  type TeamLog,
  type TeamRecord,
  type TeamSession,
} from './team.js';
import { leaseStaleMs } from '../../kernel/store/tables.js';
import { StoreError } from '../../kernel/store/errors.js';
import { searchOf } from '../../kernel/store/search-query.js';
import { promptLine, sessionOfRow, type StoredSession, sessionValues } from '../../kernel/store/session-rows.js';
import { clean, columnsOf, type EventColumns } from './event-columns.js';
import { announceEnd, type ServerEventRow, storedEvent } from './stored-events.js';
import { isOriginalOnServer } from './question-views.js';
import { type QueryRows, type ServerAddress, ServerConnection } from './server-connection.js';
import { createFigures } from './team-figures.js';
import { groupRole } from './team-functions.js';
import { checkSchema, initServer, teamSchema } from './team-schema.js';
import { findHits } from './team-search.js';
import { createWatch } from './team-watch.js';

/** Opens the store of a team at `store.url`. Connects with the first question.
 * Throws a StoreError `scheme` or `tls` for an address that cannot be used. */
export function openTeam(address: ServerAddress): Team {
  const server = new ServerConnection(address);
  return { ...teamOn(server), close: async () => await server.close() };
}

/** Makes or updates the tables, as the owner of the database. */
export async function initTeam(address: ServerAddress): Promise<{ readonly from: number; readonly to: number }> {
  const server = new ServerConnection(address);
  try {
    return await initServer(server);
  } finally {
    await server.close();
  }
}

/** The methods of a connection that a team needs. */
type Questions = Pick<ServerConnection, 'name' | 'rows' | 'read' | 'transact' | 'encrypted' | 'question' | 'listen'>;

/** The same over a connection of the caller's. */
export function teamOn(server: Questions): Omit<Team, 'close'> {
  const ready = loadOnce(async () => await checkSchema(server));
  const asked =
    (ask: 'rows' | 'read'): QueryRows =>
    async (text, values) => {
      await ready.get();
      return await server[ask](text, values);
    };
  const [rows, read] = [asked('rows'), asked('read')];
  const transact: ServerConnection['transact'] = async (work) => {
    await ready.get();
    return await server.transact(work);
  };
  return {
    log: createLog(rows, read, transact, server.name),
    blobs: createBlobs(rows),
    leases: createLeases(rows),
    record: {
      ...createRecord(read),
      ...createFigures(read),
      ask: async (question) => {
        await ready.get();
        return await server.question(question, []);
      },
    },
    watch: createWatch(server, async (order, values) =>
      (await rows<ServerEventRow>(`${selectEvents} ${order}`, values)).map(storedEvent),
    ),
    facts: async () => await factsOf(server, rows),
  };
}

async function factsOf(server: Questions, rows: QueryRows): Promise<TeamFacts> {
  const [facts] = await rows<Omit<TeamFacts, 'server' | 'schema' | 'encrypted'>>(`
    SELECT current_setting('server_version') AS version,
      session_user::text AS role,
      array_remove(agent.my_teams(), '${groupRole}') AS teams,
        (SELECT count(*) FROM agent.sessions) AS sessions,
      (SELECT coalesce(sum(greatest(reltuples, 0)), 0)::bigint
        FROM pg_catalog.pg_class
        WHERE relkind = 'r' AND relname LIKE 'events\\_%'
          AND relnamespace = 'agent'::regnamespace) AS events,
      pg_database_size(current_database()) AS bytes`);
  const { version = '?', role = '?', teams = [], sessions = 0, events = 0, bytes = 0 } = facts ?? {};
  const encrypted = await server.encrypted();
  return { server: server.name, version, schema: teamSchema, role, teams, encrypted, sessions, events, bytes };
}

export const sessionColumns = `id, parent_id, cwd, title, provider, model,
  created_at, updated_at, dir_id, api, base_url, moves, kind, parent_call_id`;
export const eventColumns = 'seq, kind, content, content_json, data_json, created_at, crc32, hash, redacted';
const selectEvents = `SELECT ${eventColumns} FROM agent.events WHERE session_id = $1`;
/** A page of events ends where it would be larger. */
const maxPageBytes = 32 * 1024 * 1024;

interface ListedSession extends StoredSession {
  readonly owner: string;
  readonly team: string | null;
  readonly machine: string | null;
  readonly last_seq: number;
  readonly head: Buffer | null;
}

interface ServerSession extends ListedSession {
  readonly is_own: boolean;
  readonly redacted: readonly number[];
}

function createLog(rows: QueryRows, read: QueryRows, transact: ServerConnection['transact'], name: string): TeamLog {
  return {
    push: createPush(rows, transact, name),
    session: async (id) => {
      const [row] = await rows<ServerSession>(`${selectSessions} WHERE id = $1`, [id]);
      return row ? teamSession(row) : null;
    },
    sessions: async (after, limit, since = 0) => {
      const rest = `${selectSessions} WHERE id > $1 AND updated_at >= $2 ORDER BY id LIMIT $3`;
      return (await read<ServerSession>(rest, [after, since, limit])).map(teamSession);
    },
    events: async (id, afterSeq, limit) =>
      (await read<ServerEventRow>(pageOfEvents, [id, afterSeq, limit])).map(storedEvent),
    redact: async (sessionId, event) => {
      const { words } = columnsOf(event);
      const [row] = await rows<{ readonly changed: number }>(
        'SELECT agent.redact($1, $2, $3, $4, $5, $6, $7, $8, $9) AS changed',
        [sessionId, event.seq, event.hash, event.redacted, ...contentOf(event), event.dataJson, event.crc32, words],
      );
      return row?.changed ?? 0;
    },
    remove: async (id) => {
      const [row] = await rows<{ readonly removed: boolean }>('SELECT agent.remove($1) AS removed', [id]);
      return row?.removed === true;
    },
  };
}

const pageOfEvents = `
  SELECT ${eventColumns} FROM (
    SELECT ${eventColumns}, row_number() OVER (ORDER BY seq) AS place,
      sum(coalesce(octet_length(content),
        0) + coalesce(octet_length(data_json),
        0)) OVER (ORDER BY seq) AS total
    FROM agent.events WHERE session_id = $1 AND seq > $2
      ORDER BY seq LIMIT $3) page
  WHERE total <= ${maxPageBytes} OR place = 1 ORDER BY seq`;

function createPush(rows: QueryRows, transact: ServerConnection['transact'], name: string): TeamLog['push'] {
  let monthMade = -1;
  return async (push) => {
    const month = new Date().getUTCMonth();
    const isFirst = push.after.seq === 0;
    const write = async (within: QueryRows): Promise<Pushed | null> => {
      if (isFirst && month !== monthMade) await within('SELECT agent.make_partitions()');
      if (isFirst) await within(insertSession, [...sessionTexts(push.session), push.team, push.machine]);
      return await append(within, push);
    };
    const done = isFirst ? await transact(write) : await append(rows, push);
    if (isFirst) monthMade = month;
    if (done === null) return await whyNot(rows, push, name);
    void announceEnd(rows, push.session.id, lastOf(push.events).seq);
    return done;
  };
}

const insertSession = `
  INSERT INTO agent.sessions (${sessionColumns}, team, machine)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16) ON CONFLICT (id) DO NOTHING`;

/** The values of `sessionColumns`. */
export function sessionTexts(row: SessionRow): readonly (string | number | null)[] {
  return sessionValues(row).map((value) => (typeof value === 'string' ? clean(value) : value));
}

/** The text of `content`, and whether it is JSON because PostgreSQL refuses U+0000 in texts. */
function contentOf({ content }: Pick<StoredEvent, 'content'>): readonly [string | null, boolean] {
  return content?.includes('\0') ? [JSON.stringify(content), true] : [content, false];
}

const selectSessions = `SELECT ${sessionColumns}, owner, team, machine, last_seq, head,
    owner = session_user::text AS is_own, ARRAY(SELECT e.seq::int FROM agent.events e
      WHERE e.session_id = s.id AND e.redacted IS NOT NULL ORDER BY 1) AS redacted
  FROM agent.sessions s`;

function teamSession(row: ServerSession): TeamSession {
  const { owner, is_own: isOwn, team, machine, last_seq: seq, head: link, redacted } = row;
  return { ...sessionOfRow(row), owner, isOwn, team, machine, end: { seq, link }, redacted };
}

/** The columns of an event, in the order of the table: name, type, value. */
const written: readonly (readonly [
  name: string,
  type: string,
  value: (event: StoredEvent, more: EventColumns) => unknown,
])[] = [
  ['seq', 'bigint', (event) => event.seq],
  ['kind', 'text', (event) => clean(event.kind)],
  ['content', 'text', (event) => contentOf(event)[0]],
  ['content_json', 'boolean', (event) => contentOf(event)[1]],
  ['data_json', 'text', (event) => event.dataJson],
  ['created_at', 'bigint', (event) => event.createdAt],
  ['crc32', 'bigint', (event) => event.crc32],
  ['hash', 'bytea', (event) => (event.hash === null ? null : Buffer.from(event.hash))],
  ['redacted', 'text', (event) => event.redacted],
  ['tool', 'text', (_event, { tool }) => tool],
  ['call_id', 'text', (_event, { callId }) => callId],
  ['ok', 'boolean', (_event, { ok }) => ok],
  ['duration_ms', 'bigint', (_event, { durationMs }) => durationMs],
  ['code', 'text', (_event, { code }) => code],
  ['model', 'text', (_event, { model }) => model],
  ['tokens_in', 'bigint', (_event, { tokensIn }) => tokensIn],
  ['tokens_out', 'bigint', (_event, { tokensOut }) => tokensOut],
  ['cost_usd', 'numeric', (_event, { costUsd }) => costUsd],
  ['words', 'text', (_event, { words }) => words],
];

const values = written.map(([name]) => (name === 'words' ? 'e.words::tsvector' : `e.${name}`)).join(', ');
const before = 18;
const lists = written.map(([, type], index) => `$${before + index + 1}::${type}[]`).join(', ');

/** Each of these is replaced where parameter 38 is true. */
const replaced = ['cwd', 'title', 'provider', 'model', 'dir_id', 'api', 'base_url', 'moves', 'team', 'machine']
  .map((column, index) => `${column} = CASE WHEN $38 THEN $${index + 8} ELSE ${column} END`)
  .join(', ');

/** One statement: nothing is written unless the session ends at `after` and the lease is held. */
const fencedAppend = `
  WITH fenced AS (
    UPDATE agent.sessions
      SET last_seq = $2, head = $3, updated_at = greatest(updated_at, $4),
      ${replaced}, prompt = coalesce(prompt, $18)
    WHERE id = $1 AND last_seq = $5 AND head IS NOT DISTINCT FROM $6
      AND EXISTS (SELECT FROM agent.leases l WHERE l.session_id = $1
        AND l.token = $7)
      AND ($39 OR set_config('synchronous_commit', 'off', true) IS NOT NULL)
    RETURNING id),
  added AS (
    INSERT INTO agent.events SELECT fenced.id, ${values}
    FROM fenced, unnest(${lists}) AS e(${written.map(([name]) => name).join(', ')}) RETURNING 1)
  SELECT count(*) AS events FROM fenced LEFT JOIN added ON true HAVING count(*) > 0`;

/** Null: nothing was written. */
async function append(rows: QueryRows, push: Push): Promise<Pushed | null> {
  const added = await appendEvents(rows, { ...push, session: push.session.id, row: push });
  return added ? { kind: 'stored' } : null;
}

interface Addition extends Pick<Push, 'after' | 'events' | 'token' | 'synced'> {
  /** Its id. */
  readonly session: string;
  /** The new content of the session's row; null: the row stays. */
  readonly row: Pick<Push, 'session' | 'team' | 'machine'> | null;
}

/** Appends to a session that exists.
 * False, and nothing is written: it does not end at `after`, or the lease is not held. */
export async function appendEvents(rows: QueryRows, addition: Addition): Promise<boolean> {
  const { session, row, after, events, token, synced } = addition;
  const end = events.length === 0 ? after : lastOf(events);
  const [, , cwd, title, provider, model, , updatedAt = 0, dirId, api, baseUrl, moves] = row
    ? sessionTexts(row.session)
    : [];
  const columns = events.map((event) => ({ event, more: columnsOf(event) }));
  const [done] = await rows(fencedAppend, [
    ...[session, end.seq, end.link, Math.max(Number(updatedAt), events.at(-1)?.createdAt ?? 0)],
    ...[after.seq, after.link, token, cwd, title, provider, model, dirId, api, baseUrl, moves, row?.team, row?.machine],
    promptOf(events),
    ...written.map(([, , value]) => columns.map(({ event, more }) => value(event, more))),
    row !== null,
    synced !== 'later',
  ]);
  return done !== undefined;
}

function lastOf(events: readonly StoredEvent[]): ChainPoint {
  const last = events.at(-1);
  return { seq: last?.seq ?? 0, link: last?.hash ?? null };
}

/** The first line of the first message that is no note, or of the command it was typed as. */
function promptOf(events: readonly StoredEvent[]): string | null {
  for (const { kind, content, dataJson } of events) {
    if (kind !== 'user') continue;
    const data: unknown = parseJson(dataJson ?? 'null');
    const command: unknown = isRecord(data) ? data['command'] : null;
    if (isRecord(data) && data['note'] === true) continue;
    const typed = isRecord(command) ? `/${String(command['name'])} ${String(command['args'])}` : content;
    return promptLine(typed === null ? null : clean(typed));
  }
  return null;
}

/** Says why nothing was appended. */
async function whyNot(rows: QueryRows, push: Push, name: string): Promise<Pushed> {
  const lastPushed = push.events.at(-1)?.seq ?? push.after.seq;
  const [found] = await rows<{
    readonly own: boolean;
    readonly held: boolean;
    readonly last_seq: number;
    readonly head: Buffer | null;
    readonly link: Buffer | null;
  }>(
    `SELECT owner = session_user::text AS own, last_seq, head,
       EXISTS (SELECT FROM agent.leases l WHERE l.session_id = s.id
         AND l.token = $2) AS held,
       (SELECT hash FROM agent.events e WHERE e.session_id = s.id
         AND e.seq = least(s.last_seq, $3)) AS link
     FROM agent.sessions s WHERE id = $1`,
    [push.session.id, push.token, lastPushed],
  );
  if (found ? !found.own : push.after.seq === 0)
    throw new StoreError('exists', `A session of this id belongs to somebody else in ${name}`, 'Fork it: --fork.');
  if (!found) return { kind: 'behind', end: { seq: 0, link: null } };
  if (!found.held) return { kind: 'lease_lost' };
  return compareEnds(push, { seq: found.last_seq, link: found.head }, found.link);
}

/** `link`: of the server's event at the end of both, as far as the push knows that far. */
function compareEnds({ after, events }: Push, end: ChainPoint, link: Uint8Array | null): Pushed {
  const ours = events.length === 0 ? after : lastOf(events);
  const compared = Math.min(end.seq, ours.seq);
  if (compared < after.seq) return { kind: 'behind', end };
  const known = compared === after.seq ? after.link : (events.find(({ seq }) => seq === compared)?.hash ?? null);
  const isSame = known === null || link === null ? known === link : Buffer.compare(known, link) === 0;
  if (!isSame) return { kind: 'diverged', end };
  return end.seq >= ours.seq ? { kind: 'repeat' } : { kind: 'behind', end };
}

/** Contents are sent a few at a time. */
const maxPutBytes = 8 * 1024 * 1024;

export function createBlobs(rows: QueryRows): TeamBlobs {
  return {
    missing: async (sessionId, sha256) =>
      (await rows<{ readonly hash: string }>('SELECT agent.blobs_missing($1, $2) AS hash', [sessionId, sha256])).map(
        ({ hash }) => hash,
      ),
    put: async (sessionId, blobs) => {
      let [batch, size]: [(typeof blobs)[number][], number] = [[], 0];
      const send = async (): Promise<void> => {
        const hashes = batch.map(({ sha256 }) => sha256);
        const bytes = batch.map((blob) => Buffer.from(blob.bytes));
        await rows('SELECT agent.blob_put($1, hash, bytes) FROM unnest($2::text[], $3::bytea[]) b(hash, bytes)', [
          sessionId,
          hashes,
          bytes,
        ]);
        [batch, size] = [[], 0];
      };
      for (const blob of blobs) {
        if (size > 0 && size + blob.bytes.byteLength > maxPutBytes) await send();
        batch.push(blob);
        size += blob.bytes.byteLength;
      }
      if (batch.length > 0) await send();
    },
    of: async (sessionId) =>
      (await rows<{ readonly hash: string }>('SELECT agent.blobs_of($1) AS hash', [sessionId])).map(({ hash }) => hash),
    get: async (sha256) => {
      const [row] = await rows<{ readonly bytes: Buffer | null }>('SELECT agent.blob_get($1) AS bytes', [sha256]);
      return row?.bytes ?? null;
    },
  };
}

interface LeaseRow {
  readonly token: string | null;
  readonly pid: number;
  readonly host: string;
  readonly since: number;
}

function createLeases(rows: QueryRows): TeamLeases {
  return {
    acquire: async (sessionId, token = randomUUID()) => {
      const [row] = await rows<LeaseRow>('SELECT * FROM agent.lease_take($1, $2, $3, $4, $5)', [
        sessionId,
        token,
        process.pid,
        hostname(),
        leaseStaleMs,
      ]);
      if (!row || row.token === token) return { held: true, token };
      return { held: false, holder: { pid: row.pid, host: row.host, since: row.since } };
    },
    beat: async (sessionId, token) => {
      const [row] = await rows<{ readonly held: boolean }>('SELECT agent.lease_beat($1, $2) AS held', [
        sessionId,
        token,
      ]);
      return row?.held === true;
    },
    release: async (sessionId, token) => {
      await rows('SELECT agent.lease_release($1, $2)', [sessionId, token]);
    },
  };
}

function createRecord(read: QueryRows): Pick<TeamRecord, 'search' | 'sessions'> {
  return {
    sessions: async (limit, { owner = null, cwd = null, since = 0 } = {}) => {
      const found = await read<ListedSession & { readonly prompt: string | null; readonly cost_usd: number | null }>(
        `SELECT ${sessionColumns}, owner, team, machine, last_seq, head, prompt, (SELECT sum(cost_usd)
             FROM agent.events e WHERE e.session_id = s.id
               AND e.kind IN ('usage', 'agent_usage') AND ${isOriginalOnServer('e')}) AS cost_usd
         FROM agent.sessions s WHERE kind IS NULL AND updated_at >= $2
           AND ($3::text IS NULL OR owner = $3)
           AND ($4::text IS NULL OR cwd = $4)
         ORDER BY updated_at DESC, id DESC LIMIT $1`,
        [limit, since, owner, cwd],
      );
      return found.map((row) => {
        const { owner, team, machine, prompt, last_seq: events, cost_usd: costUsd } = row;
        return { ...sessionOfRow(row), owner, team, machine, prompt, events, costUsd };
      });
    },
    search: async (text, limit, scope = {}, filters = noFilters, onUnreadable = () => undefined) => {
      const query = searchOf(text, filters);
      return query === null ? [] : await findHits(read, { query, scope, filters }, limit, onUnreadable);
    },
  };
}
