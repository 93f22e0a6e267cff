import { tookMs } from '../core/event.js';
import type { CallFilter, RecordedCall } from '../core/store.js';
import type { Connection } from './connection.js';
import { countedEvents, foundAs, foundKinds, isFound } from './migrations.js';

interface CallRow {
  readonly session_id: string;
  readonly seq: number;
  readonly created_at: number;
  readonly cwd: string;
  readonly call_id: string | null;
  readonly tool: string | number | null;
  readonly arguments: string | null;
  readonly summary: string | null;
  readonly started: number;
  readonly duration_ms: unknown;
  readonly status: string | number;
  readonly decision: string | null;
  readonly decided_by: string | null;
  readonly risk: string | null;
  readonly error: string | null;
}

type Read = <T>(work: (connection: Connection) => T) => Promise<T>;

/** The place of a call in the order of all calls. */
interface CallPlace {
  readonly created_at: number;
  readonly session_id: string;
  readonly seq: number;
}

/** Calls whose outcomes are read in one go, some 10 ms. */
const callsAtOnce = 200;

/** Tool calls, oldest first; with a limit the newest ones. */
export async function readCalls(read: Read, filter: CallFilter): Promise<readonly RecordedCall[]> {
  const limit = filter.limit ?? Infinity;
  const found: RecordedCall[] = [];
  for await (const calls of callBatches(read, filter, limit === Infinity ? 'oldest' : 'newest')) {
    for (const call of calls) found.push(call);
    if (found.length >= limit) break;
  }
  return limit === Infinity ? found : found.slice(0, limit).toReversed();
}

/** Tool calls in batches, between which others use the database. No batch is empty. */
export async function* callBatches(
  read: Read,
  filter: CallFilter,
  first: 'oldest' | 'newest',
): AsyncGenerator<readonly RecordedCall[]> {
  const { tool } = filter;
  if (tool !== undefined && !(await read((connection) => isRecorded(connection, tool)))) return;
  for (let last: CallPlace | null = null; ;) {
    const after: CallPlace | null = last;
    const next: NextCalls = await read((connection) => nextCalls(connection, filter, first, after));
    const { places, calls } = next;
    if (calls.length > 0) yield calls;
    last = places.at(-1) ?? null;
    if (places.length < callsAtOnce) return;
  }
}

/** Asks an index, so that a name that occurs nowhere costs no look at every call. */
function isRecorded({ sql }: Connection, tool: string): boolean {
  const calls = `SELECT 1 FROM events WHERE ${isFound} AND ${foundAs} = ? LIMIT 1`;
  return sql(calls).get(`${foundKinds['tool_call']}${tool}`) !== undefined;
}

interface NextCalls {
  /** The calls that were looked at. */
  readonly places: readonly CallPlace[];
  /** The calls among them that the filter lets through. */
  readonly calls: readonly RecordedCall[];
}

function nextCalls(
  connection: Connection,
  filter: CallFilter,
  first: 'oldest' | 'newest',
  after: CallPlace | null,
): NextCalls {
  const [beyond, order] = first === 'oldest' ? (['>', 'ASC'] as const) : (['<', 'DESC'] as const);
  const next: readonly Condition[] =
    after === null
      ? []
      : [[`(e.created_at, e.session_id, e.seq) ${beyond} (?, ?, ?)`, [after.created_at, after.session_id, after.seq]]];
  const conditions = [...next, ...eventConditions(filter)];
  const places = connection
    .sql<CallPlace>(
      `SELECT e.created_at, e.session_id, e.seq FROM events e WHERE ${countedEvents} AND e.kind = 'tool_call'
         ${conditions.map(([text]) => `AND ${text}`).join(' ')}
       ORDER BY e.created_at ${order}, e.session_id ${order}, e.seq ${order} LIMIT ${callsAtOnce}`,
    )
    .all(conditions.flatMap(([, values]) => values));
  const outcomes = outcomeConditions(filter);
  const call = connection.sql<CallRow>(
    `SELECT ${callColumns} FROM v_tool_calls WHERE ${['session_id = ?', 'seq = ?', ...outcomes.map(([text]) => text)].join(' AND ')}`,
  );
  const values = outcomes.flatMap(([, given]) => given);
  const rows = places.flatMap(({ session_id: id, seq }) => call.get([id, seq, values].flat()) ?? []);
  return { places, calls: rows.map(callOfRow) };
}

const callColumns = `session_id, seq, created_at, cwd, call_id, tool, arguments, summary, started, duration_ms, status,
  decision, decided_by, risk, error`;

/** The fields of a call that totals count. */
export type CountedCall = Pick<RecordedCall, 'createdAt' | 'cwd' | 'tool' | 'status' | 'started' | 'durationMs'>;

/** The calls of a session from the event `from` on, before the event `end`. Few columns: the others are read and parsed
 * only where they are asked for. */
export function callsBetween(
  { sql }: Connection,
  sessionId: string,
  from: number,
  end: number,
): readonly CountedCall[] {
  const statement = sql<CountedValues>(
    `SELECT created_at, cwd, tool, status, started, duration_ms FROM v_tool_calls
     WHERE session_id = ? AND seq >= ? AND seq < ? ORDER BY seq`,
  );
  return statement.raw().all(sessionId, from, end).map(countedCall);
}

type CountedValues = readonly [
  createdAt: number,
  cwd: string,
  tool: string | number | null,
  status: string | number,
  started: number,
  durationMs: unknown,
];

function countedCall([createdAt, cwd, tool, status, started, durationMs]: CountedValues): CountedCall {
  return {
    createdAt,
    cwd,
    tool: tool === null ? null : String(tool),
    status: String(status),
    started: started === 1,
    durationMs: tookMs({ duration_ms: durationMs }),
  };
}

function callOfRow(row: CallRow): RecordedCall {
  return {
    ...countedCall([row.created_at, row.cwd, row.tool, row.status, row.started, row.duration_ms]),
    sessionId: row.session_id,
    seq: row.seq,
    callId: row.call_id,
    arguments: row.arguments,
    summary: row.summary,
    decision: row.decision,
    decidedBy: row.decided_by,
    risk: row.risk,
    error: row.error,
  };
}

type Condition = readonly [text: string, values: readonly (string | number)[]];

/** Conditions on the event of a call `e`. */
function eventConditions(filter: CallFilter): readonly Condition[] {
  const { sessionId, cwd, tool, since } = filter;
  return [
    ...equal('e.session_id', sessionId),
    ...(cwd === undefined ? [] : [['e.session_id IN (SELECT id FROM sessions WHERE cwd = ?)', [cwd]] as const]),
    ...equal("json_extract(e.data_json, '$.function.name')", tool),
    ...(since === undefined ? [] : [['e.created_at >= ?', [since]] as const]),
  ];
}

/** Conditions on the outcome of a call. */
function outcomeConditions(filter: CallFilter): readonly Condition[] {
  return [
    ...equal('decided_by', filter.decidedBy),
    ...(filter.status === 'failed' ? [["status NOT IN ('ok', 'open')", []] as const] : equal('status', filter.status)),
    ...(filter.exceptOk === true ? [["status <> 'ok'", []] as const] : []),
  ];
}

function equal(column: string, value: string | undefined): readonly Condition[] {
  return value === undefined ? [] : [[`${column} = ?`, [value]]];
}
