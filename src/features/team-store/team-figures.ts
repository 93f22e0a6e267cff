import { parseJson } from '../../kernel/core/json.js';
import type { SpentBy, TeamCall, TeamRecord, TeamSpending } from './team.js';
import { isOriginalOnServer } from './question-views.js';
import type { QueryRows } from './server-connection.js';

interface CallRow {
  readonly owner: string;
  readonly session_id: string;
  readonly seq: number;
  readonly created_at: number;
  readonly cwd: string;
  readonly tool: string | null;
  readonly content: string | null;
  readonly content_json: boolean;
  readonly duration_ms: number | null;
  readonly status: string;
}

/** The first result behind a call that has its id. */
const callsWithResults = `
  SELECT s.owner, c.session_id, c.seq, c.created_at, s.cwd, c.tool, c.content,
    c.content_json, r.duration_ms,
    CASE WHEN r.seq IS NULL THEN 'open' WHEN r.ok THEN 'ok'
      ELSE coalesce(r.code, 'failed') END AS status
  FROM agent.events c JOIN agent.sessions s ON s.id = c.session_id
  LEFT JOIN LATERAL (
    SELECT x.seq, x.ok, x.code, x.duration_ms FROM agent.events x
    WHERE x.session_id = c.session_id AND x.seq > c.seq
      AND x.kind = 'tool_result' AND x.call_id = c.call_id
    ORDER BY x.seq LIMIT 1) r ON true
  WHERE c.kind = 'tool_call' AND c.created_at >= $2 AND ${isOriginalOnServer('c')}
    AND ($3::text IS NULL OR s.owner = $3)
    AND ($4::text IS NULL OR s.cwd = $4)
    AND ($5::text IS NULL OR c.tool = $5)
    AND ($7::text IS NULL OR c.session_id = $7)`;

const newestCalls = `
  SELECT * FROM (${callsWithResults}) found
  WHERE $6::text IS NULL OR status = $6
    OR ($6 = 'failed' AND status NOT IN ('ok', 'open'))
  ORDER BY created_at DESC, session_id DESC, seq DESC LIMIT $1`;

/** The key of the rows of each listing. */
const keys: Readonly<Record<SpentBy, string>> = {
  person: 's.owner',
  project: 's.cwd',
  model: "coalesce(e.model, '?')",
  day: "to_char(to_timestamp(e.created_at / 1000.0) AT TIME ZONE $4, 'YYYY-MM-DD')",
};

interface SpentRow {
  readonly name: string;
  readonly requests: number;
  readonly tokens_in: number;
  readonly tokens_out: number;
  readonly cost_usd: number;
  readonly unpriced: number;
}

/** Listings of what the team did, from the columns that are read out of events
 * as they are written. */
export function createFigures(read: QueryRows): Pick<TeamRecord, 'calls' | 'spent'> {
  return {
    calls: async (
      limit,
      { owner = null, cwd = null, since = 0, tool = null, status = null, sessionId = null } = {},
    ) => {
      const found = await read<CallRow>(newestCalls, [limit, since, owner, cwd, tool, status, sessionId]);
      return found.map(callOf).toReversed();
    },
    spent: async (by, zone, { owner = null, cwd = null, since = 0 } = {}) => {
      const order = by === 'day' ? 'name' : 'cost_usd DESC, requests DESC, name';
      const found = await read<SpentRow>(
        `SELECT ${keys[by]} AS name, count(*) AS requests,
           coalesce(sum(e.tokens_in), 0) AS tokens_in,
           coalesce(sum(e.tokens_out), 0) AS tokens_out,
           coalesce(sum(e.cost_usd), 0) AS cost_usd,
           count(*) FILTER (WHERE e.cost_usd IS NULL) AS unpriced
         FROM agent.events e JOIN agent.sessions s ON s.id = e.session_id
         WHERE e.kind = 'usage' AND e.created_at >= $1 AND ${isOriginalOnServer('e')}
           AND ($2::text IS NULL OR s.owner = $2)
           AND ($3::text IS NULL OR s.cwd = $3)
           AND $4::text IS NOT NULL
         GROUP BY 1 ORDER BY ${order}`,
        [since, owner, cwd, zone],
      );
      return found.map(spendingOf);
    },
  };
}

function callOf(row: CallRow): TeamCall {
  const summary: unknown = row.content_json ? parseJson(row.content ?? 'null') : row.content;
  return {
    owner: row.owner,
    sessionId: row.session_id,
    seq: row.seq,
    createdAt: row.created_at,
    cwd: row.cwd,
    tool: row.tool,
    summary: typeof summary === 'string' ? summary : null,
    durationMs: row.duration_ms,
    status: row.status,
  };
}

function spendingOf(row: SpentRow): TeamSpending {
  return {
    name: row.name,
    requests: row.requests,
    inputTokens: row.tokens_in,
    outputTokens: row.tokens_out,
    costUsd: row.cost_usd,
    unpriced: row.unpriced,
  };
}
