import type { Database } from './driver.js';
import { chainLink, eventChecksum, eventDigests, type HashedRow } from './event-hash.js';

/** Most characters of one event that the full-text index sees. */
const maxIndexed = 16_384;
const args = "json_extract(data_json, '$.function.arguments')";
const output = "json_extract(data_json, '$.output')";

/** Checksum and chain of every event, the full-text index, and the views that docs/record.md describes. Triggers do not
 * touch the index itself, which older SQLite libraries cannot write: they note what the next run of the indexer has to
 * look at again. */
export const recordSchema = `
ALTER TABLE events ADD COLUMN crc32 INTEGER;
ALTER TABLE events ADD COLUMN hash BLOB;
ALTER TABLE events ADD COLUMN redacted TEXT;

CREATE VIRTUAL TABLE events_fts USING fts5(text, content='', contentless_delete=1, tokenize='unicode61 remove_diacritics 2');
CREATE TABLE search_state(one INTEGER PRIMARY KEY CHECK (one = 1), indexed_to INTEGER NOT NULL);
INSERT INTO search_state VALUES (1, 0);
CREATE TABLE search_stale(id INTEGER PRIMARY KEY);
CREATE TRIGGER events_deleted AFTER DELETE ON events WHEN old.id <= (SELECT indexed_to FROM search_state) BEGIN
  INSERT OR IGNORE INTO search_stale VALUES (old.id);
  UPDATE search_state SET indexed_to = (SELECT coalesce(max(id), 0) FROM events) WHERE indexed_to > (SELECT coalesce(max(id), 0) FROM events);
END;
CREATE TRIGGER events_changed AFTER UPDATE OF content, data_json ON events BEGIN
  INSERT OR IGNORE INTO search_stale VALUES (old.id);
END;
CREATE VIEW search_text(id, text) AS SELECT id, CASE kind
    WHEN 'tool_call' THEN json_extract(data_json, '$.function.name') || ' ' || substr(replace(replace(${args}, '\\n', ' '), '\\t', ' '), 1, ${maxIndexed})
    WHEN 'tool_result' THEN coalesce(content, '') || char(10) || substr(CASE WHEN json_valid(${output}) THEN
      coalesce(json_extract(${output}, '$.output'), '') || coalesce(json_extract(${output}, '$.error'), '') || coalesce(json_extract(${output}, '$.details.output'), '')
      ELSE coalesce(${output}, '') END, 1, ${maxIndexed})
    WHEN 'shell' THEN coalesce(json_extract(data_json, '$.command'), '') || char(10) || substr(coalesce(content, ''), 1, ${maxIndexed})
    ELSE substr(coalesce(content, ''), 1, ${maxIndexed}) END
  FROM events WHERE kind IN ('user', 'assistant', 'tool_call', 'tool_result', 'shell');

CREATE VIEW v_tool_calls AS
SELECT session_id, seq, created_at, cwd, response_id, call_id, tool, arguments, summary, started, result_seq, finished_at, duration_ms, success,
  CASE WHEN result_seq IS NULL THEN 'open' WHEN success THEN 'ok' ELSE coalesce(error_code, 'failed') END AS status,
  error_code, error, output_bytes,
  coalesce(approval_decision, CASE WHEN started THEN 'allow' WHEN error_code = 'permission_denied' THEN 'deny' END) AS decision,
  coalesce(approval_by, CASE WHEN started OR error_code = 'permission_denied' THEN 'policy' END) AS decided_by,
  risk
FROM (
  SELECT c.*, r.seq AS result_seq, r.created_at AS finished_at, json_extract(r.data_json, '$.duration_ms') AS duration_ms,
    json_extract(r.data_json, '$.success') AS success,
    CASE WHEN json_valid(json_extract(r.data_json, '$.output')) THEN json_extract(json_extract(r.data_json, '$.output'), '$.code') END AS error_code,
    CASE WHEN json_valid(json_extract(r.data_json, '$.output')) THEN json_extract(json_extract(r.data_json, '$.output'), '$.error') END AS error,
    length(CAST(json_extract(r.data_json, '$.output') AS BLOB)) AS output_bytes,
    EXISTS (SELECT 1 FROM events b WHERE b.session_id = c.session_id AND b.seq > c.seq AND b.seq < coalesce(r.seq, 9e15)
      AND b.kind = 'tool_started' AND json_extract(b.data_json, '$.tool_call_id') = c.call_id) AS started,
    json_extract(a.data_json, '$.decision') AS approval_decision, json_extract(a.data_json, '$.by') AS approval_by, json_extract(a.data_json, '$.risk') AS risk
  FROM (
    SELECT e.session_id, e.seq, e.created_at, s.cwd, e.content AS summary, json_extract(e.data_json, '$.response_id') AS response_id,
      json_extract(e.data_json, '$.id') AS call_id, json_extract(e.data_json, '$.function.name') AS tool,
      json_extract(e.data_json, '$.function.arguments') AS arguments,
      (SELECT x.id FROM events x WHERE x.session_id = e.session_id AND x.seq > e.seq AND x.kind = 'tool_result'
        AND json_extract(x.data_json, '$.tool_call_id') = json_extract(e.data_json, '$.id') ORDER BY x.seq LIMIT 1) AS result_id
    FROM events e JOIN sessions s ON s.id = e.session_id WHERE e.kind = 'tool_call'
  ) c
  LEFT JOIN events r ON r.id = c.result_id
  LEFT JOIN events a ON a.id = (SELECT y.id FROM events y WHERE y.session_id = c.session_id AND y.seq > c.seq AND y.seq < coalesce(r.seq, 9e15)
    AND y.kind = 'approval' AND json_extract(y.data_json, '$.tool_call_id') = c.call_id ORDER BY y.seq LIMIT 1)
);

CREATE VIEW v_requests AS
SELECT e.session_id, e.seq, e.created_at, s.cwd, json_extract(e.data_json, '$.response_id') AS response_id,
  json_extract(e.data_json, '$.provider') AS provider, json_extract(e.data_json, '$.model') AS model,
  json_extract(e.data_json, '$.input_tokens') AS input_tokens, json_extract(e.data_json, '$.output_tokens') AS output_tokens,
  json_extract(e.data_json, '$.cache_read_tokens') AS cache_read_tokens, json_extract(e.data_json, '$.cache_write_tokens') AS cache_write_tokens,
  json_extract(e.data_json, '$.cost_usd') AS cost_usd,
  (SELECT count(*) FROM events c WHERE c.session_id = e.session_id AND c.seq > e.seq AND c.kind = 'tool_call'
    AND json_extract(c.data_json, '$.response_id') = json_extract(e.data_json, '$.response_id')
    AND c.seq < coalesce((SELECT n.seq FROM events n WHERE n.session_id = e.session_id AND n.seq > e.seq AND n.kind IN ('usage', 'user')
      ORDER BY n.seq LIMIT 1), 9e15)) AS tool_calls
FROM events e JOIN sessions s ON s.id = e.session_id WHERE e.kind = 'usage';

CREATE VIEW v_sessions AS
SELECT s.id, s.parent_id, s.cwd, s.title, s.provider, s.model, s.created_at, s.updated_at,
  (SELECT content FROM events p WHERE p.session_id = s.id AND p.kind = 'user' ORDER BY p.seq LIMIT 1) AS prompt,
  count(e.id) AS events, count(CASE WHEN e.kind = 'user' AND e.data_json IS NULL THEN 1 END) AS prompts,
  count(CASE WHEN e.kind = 'usage' THEN 1 END) AS requests, count(CASE WHEN e.kind = 'tool_call' THEN 1 END) AS tool_calls,
  count(CASE WHEN e.kind = 'tool_result' AND NOT json_extract(e.data_json, '$.success') THEN 1 END) AS failed_calls,
  coalesce(sum(CASE WHEN e.kind = 'usage' THEN json_extract(e.data_json, '$.input_tokens') END), 0) AS input_tokens,
  coalesce(sum(CASE WHEN e.kind = 'usage' THEN json_extract(e.data_json, '$.output_tokens') END), 0) AS output_tokens,
  sum(CASE WHEN e.kind = 'usage' THEN json_extract(e.data_json, '$.cost_usd') END) AS cost_usd
FROM sessions s LEFT JOIN events e ON e.session_id = s.id GROUP BY s.id;

CREATE VIEW v_files AS
SELECT e.session_id, e.seq, e.created_at, json_extract(e.data_json, '$.tool_call_id') AS call_id, json_extract(e.data_json, '$.name') AS tool,
  json_extract(f.value, '$.path') AS path, 'seen' AS what, NULL AS sha256_before, json_extract(f.value, '$.sha256') AS sha256
FROM events e, json_each(e.data_json, '$.files') f WHERE e.kind = 'tool_result'
UNION ALL
SELECT e.session_id, e.seq, e.created_at, json_extract(e.data_json, '$.tool_call_id'), coalesce(json_extract(e.data_json, '$.name'), e.kind),
  json_extract(f.value, '$.path'), json_extract(f.value, '$.what'), json_extract(f.value, '$.before'), json_extract(f.value, '$.after')
FROM events e, json_each(e.data_json, '$.changes') f WHERE e.kind IN ('tool_result', 'undo', 'redo', 'restore');
`;

/** Gives the events that were written before there were checksums theirs. */
export function chainOldEvents(db: Database): void {
  const set = db.prepare('UPDATE events SET crc32 = ?, hash = ? WHERE id = ?');
  const next = db.prepare<[string, number], HashedRow & { readonly id: number }>(
    'SELECT id, seq, kind, content, data_json, created_at FROM events WHERE session_id = ? AND seq > ? ORDER BY seq LIMIT 1000',
  );
  for (const session of db.prepare<[], string>('SELECT id FROM sessions').pluck().all()) {
    let previous: Buffer | null = null;
    for (
      let rows = next.all(session, Number.MIN_SAFE_INTEGER);
      rows.length > 0;
      rows = next.all(session, rows.at(-1)?.seq ?? 0)
    ) {
      for (const row of rows) {
        previous = chainLink(previous, row, eventDigests(row));
        set.run(eventChecksum(row), previous, row.id);
      }
    }
  }
}
