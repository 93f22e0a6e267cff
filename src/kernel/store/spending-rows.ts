import { isRecord, parseJson } from '../core/json.js';
import type { RecordScope, SpendingRow } from '../core/store.js';
import type { Connection } from './connection.js';
import { isOriginal } from './migrations.js';

interface SpentRow {
  readonly session_id: string;
  readonly seq: number;
  readonly kind: SpendingRow['kind'];
  readonly created_at: number;
  readonly cwd: string;
  /** 1: the request of a session that works for another one. */
  readonly is_agents: number;
  /** Of a tool call. */
  readonly response_id: string | null;
  /** The data of a request as JSON. */
  readonly request: string | null;
}

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
  const rows = sql<SpentRow>(
    `SELECT iif(s.kind IS NULL, e.session_id, s.parent_id) AS session_id, e.seq, e.kind, e.created_at, s.cwd,
       s.kind IS NOT NULL AS is_agents, iif(e.kind = 'usage', e.data_json, NULL) AS request,
       iif(e.kind = 'tool_call', json_extract(e.data_json, '$.response_id'), NULL) AS response_id
     FROM events e JOIN sessions s ON s.id = e.session_id
     WHERE (e.kind = 'usage' OR (s.kind IS NULL AND (
           (e.kind = 'tool_call' AND json_extract(e.data_json, '$.by') IS NULL)
           OR (e.kind = 'user' AND json_extract(e.data_json, '$.note') IS NOT 1))))
       AND ${condition} AND ${isOriginal}
     ORDER BY 1, e.id`,
  ).all(values);
  return rows.map(spendingRow);
}

/** The data of a request are parsed here: SQLite would take longer for so many fields. */
function spendingRow(row: SpentRow): SpendingRow {
  const parsed: unknown = row.request === null ? null : parseJson(row.request);
  const data = isRecord(parsed) ? parsed : {};
  const count = (name: string): number => (typeof data[name] === 'number' ? data[name] : 0);
  const isRequest = row.kind === 'usage';
  return {
    sessionId: row.session_id,
    kind: row.kind,
    responseId: isRequest ? (textOrNull(data['response_id']) ?? `r${row.seq}`) : row.response_id,
    createdAt: row.created_at,
    cwd: row.cwd,
    provider: textOrNull(data['provider']),
    model: textOrNull(data['model']),
    role: isRequest ? roleOf(data, row) : null,
    inputTokens: count('input_tokens') + count('cache_read_tokens') + count('cache_write_tokens'),
    outputTokens: count('output_tokens'),
    costUsd: typeof data['cost_usd'] === 'number' ? data['cost_usd'] : null,
  };
}

function roleOf(data: Readonly<Record<string, unknown>>, row: SpentRow): string {
  return textOrNull(data['role']) ?? textOrNull(data['purpose']) ?? (row.is_agents === 1 ? 'subagent' : 'main');
}

/** JSON from outside may hold a number where a name belongs. */
function textOrNull(value: unknown): string | null {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : null;
}
