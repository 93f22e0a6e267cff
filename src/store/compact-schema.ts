const resultOutput = "json_extract(data_json, '$.output')";
/** How the data of a result begins that is kept as an output, and not as an error. */
const outputStart = String.raw`"output":"{\"output\":\"`;
/** Longer ones are not parsed for the little that is indexed of them: what was escaped twice is put right as far as it
 * makes words. */
const maxParsed = 131_072;
const largeOutput = String.raw`replace(replace(replace(substr(data_json, instr(data_json, '${outputStart}') + ${outputStart.length}, 24576), '\\n', char(10)), '\\t', ' '), '\\\"', '"')`;

/** Without what made a record larger than what it holds. Costs are indexed only where there are any; of sessions there
 * are so few that titles and directories need no index. A lease needs no number of its own. The full-text index knows
 * in which events a word occurs and no longer where in them: a phrase is looked for in their texts. It is made anew
 * with the next search, half a page at a time, so that two fit on one. Of a `usage` event what goes without saying is
 * not stored (`usage-data.ts`); `v_requests` supplies it. A result without changes is not parsed to learn that. */
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

DROP TRIGGER blob_refs_made;
CREATE TRIGGER blob_refs_made AFTER INSERT ON events
  WHEN new.kind IN ('tool_result', 'undo', 'redo', 'restore') AND instr(new.data_json, '"changes"') > 0 AND json_type(new.data_json, '$.changes') = 'array' BEGIN
  INSERT OR IGNORE INTO blob_refs SELECT new.session_id, json_extract(value, '$.before') FROM json_each(new.data_json, '$.changes') WHERE json_type(value, '$.before') = 'text';
  INSERT OR IGNORE INTO blob_refs SELECT new.session_id, json_extract(value, '$.after') FROM json_each(new.data_json, '$.changes') WHERE json_type(value, '$.after') = 'text';
END;

DROP VIEW search_text;
CREATE VIEW search_text(id, text) AS SELECT id, CASE kind
    WHEN 'tool_call' THEN json_extract(data_json, '$.function.name') || ' ' || substr(replace(replace(json_extract(data_json, '$.function.arguments'), '\\n', ' '), '\\t', ' '), 1, 16384)
    WHEN 'tool_result' THEN coalesce(content, '') || char(10) || substr(CASE
      WHEN length(data_json) > ${maxParsed} AND instr(substr(data_json, 1, 1024), '${outputStart}') > 0 THEN ${largeOutput}
      WHEN json_valid(${resultOutput}) THEN
        coalesce(json_extract(${resultOutput}, '$.output'), '') || coalesce(json_extract(${resultOutput}, '$.error'), '') || coalesce(json_extract(${resultOutput}, '$.details.output'), '')
      ELSE coalesce(${resultOutput}, '') END, 1, 16384)
    WHEN 'shell' THEN coalesce(json_extract(data_json, '$.command'), '') || char(10) || substr(coalesce(content, ''), 1, 16384)
    ELSE substr(coalesce(content, ''), 1, 16384) END
  FROM events WHERE kind IN ('user', 'assistant', 'tool_call', 'tool_result', 'shell');

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
