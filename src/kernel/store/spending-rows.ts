import { isRecord, parseJson } from '../core/json.js';
import type { RecordScope, SpendingRow } from '../core/store.js';
import type { Connection } from './connection.js';
import { isOriginal } from './migrations.js';

/** `isAgents` is 1 for the request of a session that works for another one. `responseId` is that of a tool call, `request`
 * the data of a request as JSON. */
type SpentValues = readonly [
  sessionId: string,
  seq: number,
  kind: SpendingRow['kind'],
  createdAt: number,
  cwd: string,
  isAgents: number,
  responseId: string | null,
  request: string | null,
];

/** Prompts, tool calls and requests, in order of session and `seq`. Events are
 * numbered as they are written, so those of agents stand where they came. */
export function readSpending(connection: Connection, { since = 0, cwd }: RecordScope): readonly SpendingRow[] {
  return spendingRows(connection, 'e.created_at >= ? AND (? IS NULL OR s.cwd = ?)', [since, cwd ?? null, cwd ?? null]);
}

/** The same of the events `e` of sessions `s` that fulfil a condition. */
export function spendingRows(
  { sql }: Connection,
  condition: string,
  values: readonly (string | number | null)[],
): readonly SpendingRow[] {
  const statement = sql<SpentValues>(
    `SELECT iif(s.kind IS NULL, e.session_id, s.parent_id) AS session_id, e.seq, e.kind, e.created_at, s.cwd,
       s.kind IS NOT NULL, iif(e.kind = 'tool_call', json_extract(e.data_json, '$.response_id'), NULL),
       iif(e.kind = 'usage', e.data_json, NULL)
     FROM events e JOIN sessions s ON s.id = e.session_id
     WHERE (e.kind = 'usage' OR (s.kind IS NULL AND (
           (e.kind = 'tool_call' AND json_extract(e.data_json, '$.by') IS NULL)
           OR (e.kind = 'user' AND json_extract(e.data_json, '$.note') IS NOT 1))))
       AND ${condition} AND ${isOriginal}
     ORDER BY 1, e.id`,
  );
  return statement.raw().all(values).map(spendingRow);
}

/** Parses the data of a request here, because SQLite is slower at reading nine fields of JSON. */
function spendingRow([sessionId, seq, kind, createdAt, cwd, isAgents, responseId, request]: SpentValues): SpendingRow {
  const parsed: unknown = request === null ? null : parseJson(request);
  const data = isRecord(parsed) ? parsed : {};
  const count = (name: string): number => (typeof data[name] === 'number' ? data[name] : 0);
  const isRequest = kind === 'usage';
  return {
    sessionId,
    kind,
    responseId: isRequest ? (textOrNull(data['response_id']) ?? `r${seq}`) : responseId,
    createdAt,
    cwd,
    provider: textOrNull(data['provider']),
    model: textOrNull(data['model']),
    role: isRequest ? roleOf(data, isAgents === 1) : null,
    inputTokens: count('input_tokens') + count('cache_read_tokens') + count('cache_write_tokens'),
    outputTokens: count('output_tokens'),
    costUsd: typeof data['cost_usd'] === 'number' ? data['cost_usd'] : null,
  };
}

function roleOf(data: Readonly<Record<string, unknown>>, isAgents: boolean): string {
  return textOrNull(data['role']) ?? textOrNull(data['purpose']) ?? (isAgents ? 'subagent' : 'main');
}

/** JSON from outside may hold a number where a name belongs. */
function textOrNull(value: unknown): string | null {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : null;
}
