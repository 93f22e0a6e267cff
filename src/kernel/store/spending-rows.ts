import type { RecordScope, SpendingRow } from '../core/store.js';
import type { Connection } from './connection.js';
import { isOriginal } from './migrations.js';

interface SpentRow {
  readonly session_id: string;
  readonly kind: SpendingRow['kind'];
  readonly response_id: string | null;
  readonly created_at: number;
  readonly cwd: string;
  readonly provider: string | number | null;
  readonly model: string | number | null;
  readonly role: string | number | null;
  readonly input: number;
  readonly output: number;
  readonly cost: number | string | null;
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
    `SELECT iif(s.kind IS NULL, e.session_id, s.parent_id) AS session_id, e.kind, e.created_at, s.cwd,
       coalesce(json_extract(e.data_json, '$.response_id'), iif(e.kind = 'usage', 'r' || e.seq, NULL)) AS response_id,
       json_extract(e.data_json, '$.provider') AS provider, json_extract(e.data_json, '$.model') AS model,
       iif(e.kind = 'usage', coalesce(json_extract(e.data_json, '$.role'), json_extract(e.data_json, '$.purpose'),
         iif(s.kind IS NULL, 'main', 'subagent')), NULL) AS role,
       coalesce(json_extract(e.data_json, '$.input_tokens'), 0)
         + coalesce(json_extract(e.data_json, '$.cache_read_tokens'), 0)
         + coalesce(json_extract(e.data_json, '$.cache_write_tokens'), 0) AS input,
       coalesce(json_extract(e.data_json, '$.output_tokens'), 0) AS output,
       json_extract(e.data_json, '$.cost_usd') AS cost
     FROM events e JOIN sessions s ON s.id = e.session_id
     WHERE (e.kind = 'usage' OR (s.kind IS NULL AND (
           (e.kind = 'tool_call' AND json_extract(e.data_json, '$.by') IS NULL)
           OR (e.kind = 'user' AND json_extract(e.data_json, '$.note') IS NOT 1))))
       AND ${condition} AND ${isOriginal}
     ORDER BY 1, e.id`,
  ).all(values);
  return rows.map((row) => ({
    sessionId: row.session_id,
    kind: row.kind,
    responseId: row.response_id,
    createdAt: row.created_at,
    cwd: row.cwd,
    provider: textOrNull(row.provider),
    model: textOrNull(row.model),
    role: textOrNull(row.role),
    inputTokens: row.input,
    outputTokens: row.output,
    costUsd: typeof row.cost === 'number' ? row.cost : null,
  }));
}

/** JSON from outside may hold a number where a name belongs. */
function textOrNull(value: string | number | null): string | null {
  return value === null ? null : String(value);
}
