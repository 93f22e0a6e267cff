/** The condition that the event `e` of the session `s` is not a copy: a fork holds the events of the session before it. Of
 * two forks of one session that is gone the first counts. */
export function isOriginalOnServer(e: string): string {
  return `NOT (s.parent_id IS NOT NULL AND s.kind IS DISTINCT FROM 'agent' AND EXISTS (
    SELECT FROM agent.sessions p JOIN agent.events o ON o.session_id = p.id AND o.seq = ${e}.seq AND o.hash = ${e}.hash
    WHERE p.id <> s.id AND (p.id = s.parent_id OR (p.parent_id = s.parent_id AND p.id < s.id))))`;
}

/** The views of docs/record.md as far as columns of the server can say them.
 * They are part of the question: a view that
 * is stored would read with the rights of its owner. */
const views: Readonly<Record<string, string>> = {
  v_tool_calls: `SELECT c.session_id, c.seq, c.created_at, s.cwd, c.call_id, c.tool, c.content AS summary,
      EXISTS (SELECT FROM agent.events b
        WHERE b.session_id = c.session_id AND b.seq > c.seq
        AND b.kind = 'tool_started'
          AND b.call_id = c.call_id) AS started,
      r.seq AS result_seq, r.created_at AS finished_at,
        r.duration_ms, r.ok AS success,
      CASE WHEN r.seq IS NULL THEN 'open' WHEN r.ok THEN 'ok'
        ELSE coalesce(r.code, 'failed') END AS status,
      r.code AS error_code, s.owner
    FROM agent.events c JOIN agent.sessions s ON s.id = c.session_id
    LEFT JOIN LATERAL (SELECT x.seq, x.created_at, x.duration_ms,
      x.ok, x.code FROM agent.events x
      WHERE x.session_id = c.session_id AND x.seq > c.seq
        AND x.kind = 'tool_result' AND x.call_id = c.call_id
      ORDER BY x.seq LIMIT 1) r ON true
    WHERE c.kind = 'tool_call' AND ${isOriginalOnServer('c')}`,
  v_requests: `SELECT e.session_id, e.seq, e.created_at, s.cwd, split_part(e.model, '/', 1) AS provider,
      substr(e.model, strpos(e.model, '/') + 1) AS model,
        e.tokens_in AS input_tokens, e.tokens_out AS output_tokens,
      e.cost_usd, s.owner
    FROM agent.events e JOIN agent.sessions s ON s.id = e.session_id
    WHERE e.kind = 'usage' AND ${isOriginalOnServer('e')}`,
  v_sessions: `SELECT s.id, s.parent_id, s.cwd, s.title, s.provider, s.model, s.created_at, s.updated_at, s.prompt,
      s.last_seq AS events, s.owner, s.team, s.machine,
        sum(e.cost_usd) FILTER (WHERE e.kind = 'usage') AS cost_usd,
      count(*) FILTER (WHERE e.kind = 'usage') AS requests,
        count(*) FILTER (WHERE e.kind = 'tool_call') AS tool_calls,
      coalesce(sum(e.tokens_in) FILTER (WHERE e.kind = 'usage'),
        0) AS input_tokens,
      coalesce(sum(e.tokens_out) FILTER (WHERE e.kind = 'usage'),
        0) AS output_tokens
    FROM agent.sessions s LEFT JOIN agent.events e ON e.session_id = s.id
        AND e.kind IN ('usage', 'tool_call') AND ${isOriginalOnServer('e')} GROUP BY s.id`,
};

/** The question with those views that it names before it,
 * and numbers for its `?`. Throws an Error for what is not a
 * question. */
export function questionText(question: string): string {
  const [, explain = '', rest = ''] = /^\s*(explain(?:\s+analyze)?\s)?([\s\S]*)$/i.exec(question) ?? [];
  const [, word, recursive = ''] = /^\s*(select|with)\b(\s+recursive\b)?/i.exec(rest) ?? [];
  if (word === undefined) throw new Error('only SELECT, WITH and EXPLAIN are answered');
  const named = Object.entries(views).filter(([name]) => new RegExp(`\\b${name}\\b`, 'i').test(rest));
  const text = numbered(rest);
  if (named.length === 0) return `${explain}${text}`;
  const before = named.map(([name, sql]) => `${name} AS NOT MATERIALIZED (${sql})`).join(', ');
  const body = text.trimStart().slice(word.length + recursive.length);
  return /^with$/i.test(word) ? `${explain}WITH ${recursive} ${before}, ${body}` : `${explain}WITH ${before} ${text}`;
}

/** Replaces each `?` outside of texts,
 * names and comments by `$1`, `$2` and so on. */
function numbered(text: string): string {
  let count = 0;
  return text.replaceAll(/'(?:[^']|'')*'|"[^"]*"|--[^\n]*|\?/g, (found) => (found === '?' ? `$${++count}` : found));
}
