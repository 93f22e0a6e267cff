/** Without what made a record larger than what it holds. Costs are indexed only where there are any; of sessions there are so few that titles and
 *  directories need no index. A lease needs no number of its own. The full-text index knows in which events a word occurs and no longer where in them: a
 *  phrase is looked for in their texts. It is made anew with the next search, half a page at a time, so that two fit on one. Of a `usage` event what goes
 *  without saying is not stored (`usage-data.ts`); `v_requests` supplies it. */
export const compactSchema = `
DROP INDEX IF EXISTS sessions_title;
DROP INDEX IF EXISTS sessions_dir_id;
DROP INDEX IF EXISTS events_cost;
CREATE INDEX events_cost ON events(session_id, json_extract(data_json, '$.cost_usd')) WHERE kind = 'usage' AND json_extract(data_json, '$.cost_usd') IS NOT NULL;

ALTER TABLE leases RENAME TO leases_before;
CREATE TABLE leases(
  session_id TEXT PRIMARY KEY, token TEXT NOT NULL, pid INTEGER NOT NULL, host TEXT NOT NULL,
  machine TEXT, started TEXT, since INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO leases SELECT session_id, token, pid, host, machine, started, since FROM leases_before WHERE session_id IS NOT NULL;
DROP TABLE leases_before;

DROP TABLE events_fts;
CREATE VIRTUAL TABLE events_fts USING fts5(text, content='', contentless_delete=1, detail=none, tokenize='unicode61 remove_diacritics 2');
INSERT INTO events_fts(events_fts, rank) VALUES ('pgsz', 2000);
DELETE FROM search_stale;
UPDATE search_state SET indexed_to = 0;

DROP VIEW v_requests;
CREATE VIEW v_requests AS
SELECT e.session_id, e.seq, e.created_at, s.cwd, e.response_id, json_extract(e.data_json, '$.provider') AS provider, json_extract(e.data_json, '$.model') AS model,
  coalesce(json_extract(e.data_json, '$.input_tokens'), 0) AS input_tokens, coalesce(json_extract(e.data_json, '$.output_tokens'), 0) AS output_tokens,
  coalesce(json_extract(e.data_json, '$.cache_read_tokens'), 0) AS cache_read_tokens, coalesce(json_extract(e.data_json, '$.cache_write_tokens'), 0) AS cache_write_tokens,
  json_extract(e.data_json, '$.cost_usd') AS cost_usd,
  (SELECT count(*) FROM events c WHERE c.session_id = e.session_id AND c.seq > e.seq AND c.kind = 'tool_call'
    AND json_extract(c.data_json, '$.response_id') = e.response_id
    AND c.seq < coalesce((SELECT n.seq FROM events n WHERE n.session_id = e.session_id AND n.seq > e.seq AND n.kind IN ('usage', 'user')
      ORDER BY n.seq LIMIT 1), 9e15)) AS tool_calls
FROM (SELECT *, coalesce(json_extract(data_json, '$.response_id'), 'r' || seq) AS response_id FROM events WHERE kind = 'usage') e JOIN sessions s ON s.id = e.session_id;
`;
