import { addAll } from '../../kernel/core/lists.js';
import type {
  CallFilter,
  ChainReport,
  RecordedCall,
  Records,
  RecordScope,
  SpendingRow,
} from '../../kernel/core/store.js';
import type { Event } from '../../kernel/core/event.js';
import type { StoredEvent, TeamLog } from './team.js';
import { dataJson, eventOfRow } from '../../kernel/store/event-rows.js';
import { type ChainRow, eventChecksum, eventDigests, verifySessions } from '../../kernel/store/hash-chain.js';
import { callOf, fitsFilter, spendingRow, totalsOf } from '../../kernel/store/memory-store.js';
import { sessionOfRow, type StoredSession } from '../../kernel/store/session-rows.js';
import { isOriginalOnServer } from './question-views.js';
import type { ServerConnection } from './server-connection.js';
import { chainRow } from './stored-events.js';
import { type ServerEventRow, storedEvent } from './stored-events.js';
import { eventColumns, sessionColumns } from './team-store.js';

interface Source {
  readonly server: Pick<ServerConnection, 'rows' | 'question'>;
  readonly log: TeamLog;
}

type CallRow = StoredSession & { /** Its `seq`. */ readonly event: number };
type EventOfSession = ServerEventRow & { readonly session_id: string };

/** Calls whose outcomes are read in one go. */
const callsAtOnce = 500;
const pageRows = 1000;
const mine = 's.owner = session_user::text';
const sessionOfEvent = sessionColumns.replaceAll(/\w+/g, 's.$&');
const eventOfSession = eventColumns.replaceAll(/\w+/g, 'e.$&');

/** Reads and maintains the user's sessions on a server. The facts about a session are computed from its events, as in
 * memory. */
export function createRemoteRecords(source: Source): Records {
  return {
    calls: (filter = {}) => readCalls(source, filter),
    eachCall: async function* (filter = {}) {
      yield await readCalls(source, filter);
    },
    spending: (scope = {}) => readSpending(source, scope),
    totals: (scope = {}) =>
      totalsOf(
        { calls: (filter = {}) => readCalls(source, filter), spending: (within = {}) => readSpending(source, within) },
        scope,
      ),
    checkTotals: null,
    verify: (sessionId) => verify(source, sessionId),
    redact: async (sessionId, seq, replacement) => {
      const [stored] = await source.log.events(sessionId, seq - 1, 1);
      if (stored?.seq !== seq) return 0;
      const row = chainRow(stored);
      const next = { ...row, content: replacement.content, data_json: dataJson(replacement.data) };
      return await source.log.redact(sessionId, {
        ...stored,
        content: next.content,
        dataJson: next.data_json,
        crc32: eventChecksum(next),
        redacted: stored.redacted ?? JSON.stringify(eventDigests(row)),
      });
    },
    // The server does that by itself.
    erase: null,
    completeIndex: null,
    compact: () => Promise.resolve(),
    ask: (question, parameters = []) => source.server.question(question, parameters),
  };
}

async function readCalls({ server }: Source, filter: CallFilter): Promise<readonly RecordedCall[]> {
  const { sessionId = null, cwd = null, tool = null, since = 0, limit = Infinity } = filter;
  const calls: RecordedCall[] = [];
  for (let skipped = 0; calls.length < limit; skipped += callsAtOnce) {
    const found = await server.rows<CallRow>(
      `SELECT ${sessionOfEvent}, e.seq AS event FROM agent.events e JOIN agent.sessions s ON s.id = e.session_id
       WHERE e.kind = 'tool_call' AND ${mine}
         AND e.created_at >= $1 AND ($2::text IS NULL
         OR e.session_id = $2)
         AND ($3::text IS NULL OR s.cwd = $3)
           AND ($4::text IS NULL OR e.tool = $4) AND ${isOriginalOnServer('e')}
       ORDER BY e.created_at DESC, e.session_id DESC, e.seq DESC LIMIT ${callsAtOnce} OFFSET $5`,
      [since, sessionId, cwd, tool, skipped],
    );
    const known = await eventsOfCalls(server, [...new Set(found.map(({ id }) => id))]);
    const told = found.flatMap((row) => toldCall(row, known.get(row.id) ?? []));
    addAll(
      calls,
      told.filter((call) => fitsFilter(call, filter)),
    );
    if (found.length < callsAtOnce) break;
  }
  return calls.slice(0, limit).toReversed();
}

function toldCall(row: CallRow, events: readonly Event[]): readonly RecordedCall[] {
  const [call, ...later] = events.slice(events.findIndex(({ seq }) => seq === row.event));
  return call ? [callOf(sessionOfRow(row), call, later)] : [];
}

/** The calls of sessions and what became of them, in order of `seq`. */
async function eventsOfCalls(server: Source['server'], ids: readonly string[]) {
  const rows = await server.rows<EventOfSession>(
    `SELECT session_id, ${eventColumns} FROM agent.events WHERE session_id = ANY ($1)
       AND kind IN ('tool_call', 'tool_result', 'tool_started', 'approval') ORDER BY session_id, seq`,
    [[...ids]],
  );
  const events = rows.map((row) => ({ id: row.session_id, event: eventOf(storedEvent(row)) }));
  return new Map(ids.map((id) => [id, events.filter((item) => item.id === id).map(({ event }) => event)]));
}

function eventOf(stored: StoredEvent): Event {
  return eventOfRow(chainRow(stored));
}

/** Requests of agents stand where their session was:
 * by time, which within a session never goes back. */
async function readSpending({ server }: Source, { since = 0, cwd }: RecordScope): Promise<readonly SpendingRow[]> {
  const rows = await server.rows<EventOfSession>(
    `SELECT ${eventOfSession}, e.session_id, max(e.created_at) OVER (PARTITION BY e.session_id ORDER BY e.seq) AS at
     FROM agent.events e JOIN agent.sessions s ON s.id = e.session_id
     WHERE ${mine} AND e.kind IN ('usage', 'tool_call', 'user')
       AND ($2::text IS NULL OR s.cwd = $2)
       AND e.created_at >= $1 AND (e.kind = 'usage'
         OR s.kind IS DISTINCT FROM 'agent') AND ${isOriginalOnServer('e')}
     ORDER BY CASE WHEN s.kind = 'agent' THEN s.parent_id ELSE s.id END, at, s.kind NULLS FIRST, e.session_id, e.seq`,
    [since, cwd ?? null],
  );
  const ids = [...new Set(rows.map((row) => row.session_id))];
  const sessions = await server.rows<StoredSession>(
    `SELECT ${sessionOfEvent} FROM agent.sessions s WHERE s.id = ANY ($1)`,
    [ids],
  );
  const byId = new Map(sessions.map((row) => [row.id, sessionOfRow(row)]));
  return rows.flatMap((row) => {
    const session = byId.get(row.session_id);
    return session ? spendingRow(session, eventOf(storedEvent(row))) : [];
  });
}

/** Of all sessions that the role may read: the owner of the tables looks at every chain. */
async function verify({ server, log }: Source, sessionId: string | null): Promise<ChainReport> {
  const ids =
    sessionId === null
      ? (await server.rows<{ readonly id: string }>('SELECT id FROM agent.sessions ORDER BY id')).map(({ id }) => id)
      : [sessionId];
  const reports: ChainReport[] = [];
  for (const id of ids) {
    const rows: ChainRow[] = [];
    for (let page = await log.events(id, 0, pageRows); page.length > 0;) {
      for (const event of page) rows.push(chainRow(event));
      page = await log.events(id, page.at(-1)?.seq ?? 0, pageRows);
    }
    reports.push(verifySessions([id], () => rows));
  }
  const sum = (of: (report: ChainReport) => number): number => reports.reduce((all, report) => all + of(report), 0);
  return {
    sessions: sum(({ sessions }) => sessions),
    events: sum(({ events }) => events),
    redacted: sum(({ redacted }) => redacted),
    breaks: reports.flatMap(({ breaks }) => breaks),
    heads: reports.flatMap(({ heads }) => heads),
  };
}
