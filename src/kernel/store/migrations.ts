import freshSchema from '../../../config/store-schema.json' with { type: 'json' };
import { statsAt } from '../disk/path-stats.js';
import type { Database, Driver } from './driver.js';
import { StoreError } from './errors.js';
import { chainLink, eventChecksum, eventDigests, type HashedRow } from './hash-chain.js';

/** Characters of one event that are indexed. */
const maxIndexed = 16_384;
const args = "json_extract(data_json, '$.function.arguments')";
const output = "json_extract(data_json, '$.output')";

/** `prompt`: the condition for the message that is the prompt of its session. `events`: where the events come from that
 * are counted; a row without `own` does not count. `isPrompt`: the condition for a message that counts as a prompt. */
function sessionsView(
  prompt: string,
  events = '(SELECT *, 1 AS own FROM events)',
  isPrompt = 'e.data_json IS NULL',
): string {
  return `CREATE VIEW v_sessions AS
SELECT s.id, s.parent_id, s.cwd, s.title, s.provider, s.model, s.created_at, s.updated_at,
  (SELECT content FROM events p WHERE p.session_id = s.id AND p.kind = 'user'${prompt} ORDER BY p.seq LIMIT 1)
    AS prompt,
  count(e.id) AS events, count(CASE WHEN e.own AND e.kind = 'user' AND ${isPrompt} THEN 1 END) AS prompts,
  count(CASE WHEN e.own AND e.kind = 'usage' THEN 1 END) AS requests,
      count(CASE WHEN e.own AND e.kind = 'tool_call' THEN 1 END) AS tool_calls,
  count(CASE WHEN e.own AND e.kind = 'tool_result' AND NOT json_extract(e.data_json, '$.success') THEN 1 END)
      AS failed_calls,
  coalesce(sum(CASE WHEN e.own AND e.kind = 'usage' THEN json_extract(e.data_json, '$.input_tokens') END), 0)
      AS input_tokens,
  coalesce(sum(CASE WHEN e.own AND e.kind = 'usage' THEN json_extract(e.data_json, '$.output_tokens') END), 0)
      AS output_tokens,
  sum(CASE WHEN e.own AND e.kind = 'usage' THEN json_extract(e.data_json, '$.cost_usd') END) AS cost_usd
FROM sessions s LEFT JOIN ${events} e ON e.session_id = s.id GROUP BY s.id;`;
}

/** `which`: a further condition for the call `e` of the session `s`. */
function toolCallsView(which: string): string {
  return `CREATE VIEW v_tool_calls AS
SELECT session_id, seq, created_at, cwd, response_id, call_id, tool, arguments, summary, started, result_seq,
    finished_at, duration_ms, success,
  CASE WHEN result_seq IS NULL THEN 'open' WHEN success THEN 'ok' ELSE coalesce(error_code, 'failed') END AS status,
  error_code, error, output_bytes,
  coalesce(approval_decision, CASE WHEN started THEN 'allow' WHEN error_code = 'permission_denied' THEN 'deny'
      END) AS decision,
  coalesce(approval_by, CASE WHEN started OR error_code = 'permission_denied' THEN 'policy' END) AS decided_by,
  risk
FROM (
  SELECT c.*, r.seq AS result_seq, r.created_at AS finished_at,
      json_extract(r.data_json, '$.duration_ms') AS duration_ms,
    json_extract(r.data_json, '$.success') AS success,
    CASE WHEN json_valid(json_extract(r.data_json, '$.output'))
        THEN json_extract(json_extract(r.data_json, '$.output'), '$.code') END AS error_code,
    CASE WHEN json_valid(json_extract(r.data_json, '$.output'))
        THEN json_extract(json_extract(r.data_json, '$.output'), '$.error') END AS error,
    length(CAST(json_extract(r.data_json, '$.output') AS BLOB)) AS output_bytes,
    EXISTS (SELECT 1 FROM events b WHERE b.session_id = c.session_id AND b.seq > c.seq AND b.seq < coalesce(r.seq, 9e15)
      AND b.kind = 'tool_started' AND json_extract(b.data_json, '$.tool_call_id') = c.call_id) AS started,
    json_extract(a.data_json, '$.decision') AS approval_decision, json_extract(a.data_json, '$.by') AS approval_by,
        json_extract(a.data_json, '$.risk') AS risk
  FROM (
    SELECT e.session_id, e.seq, e.created_at, s.cwd, e.content AS summary,
        json_extract(e.data_json, '$.response_id') AS response_id,
      json_extract(e.data_json, '$.id') AS call_id, json_extract(e.data_json, '$.function.name') AS tool,
      json_extract(e.data_json, '$.function.arguments') AS arguments,
      (SELECT x.id FROM events x WHERE x.session_id = e.session_id AND x.seq > e.seq AND x.kind = 'tool_result'
        AND json_extract(x.data_json, '$.tool_call_id') = json_extract(e.data_json, '$.id') ORDER BY x.seq
            LIMIT 1) AS result_id
    FROM events e JOIN sessions s ON s.id = e.session_id WHERE e.kind = 'tool_call'${which}
  ) c
  LEFT JOIN events r ON r.id = c.result_id
  LEFT JOIN events a ON a.id = (SELECT y.id FROM events y WHERE y.session_id = c.session_id AND y.seq > c.seq
      AND y.seq < coalesce(r.seq, 9e15)
    AND y.kind = 'approval' AND json_extract(y.data_json, '$.tool_call_id') = c.call_id ORDER BY y.seq LIMIT 1)
);`;
}

/** `which`: a further condition for the request `e` of the session `s`. */
function requestsView(which: string): string {
  return `CREATE VIEW v_requests AS
SELECT e.session_id, e.seq, e.created_at, s.cwd, e.response_id, json_extract(e.data_json, '$.provider') AS provider,
    json_extract(e.data_json, '$.model') AS model,
  coalesce(json_extract(e.data_json, '$.input_tokens'), 0) AS input_tokens,
      coalesce(json_extract(e.data_json, '$.output_tokens'), 0) AS output_tokens,
  coalesce(json_extract(e.data_json, '$.cache_read_tokens'), 0) AS cache_read_tokens,
      coalesce(json_extract(e.data_json, '$.cache_write_tokens'), 0) AS cache_write_tokens,
  json_extract(e.data_json, '$.cost_usd') AS cost_usd,
  (SELECT count(*) FROM events c WHERE c.session_id = e.session_id AND c.seq > e.seq AND c.kind = 'tool_call'
    AND json_extract(c.data_json, '$.response_id') = e.response_id
    AND c.seq < coalesce((SELECT n.seq FROM events n WHERE n.session_id = e.session_id AND n.seq > e.seq
        AND n.kind IN ('usage', 'user')
      ORDER BY n.seq LIMIT 1), 9e15)) AS tool_calls
FROM (SELECT *, coalesce(json_extract(data_json, '$.response_id'), 'r' || seq) AS response_id FROM events
    WHERE kind = 'usage') e JOIN sessions s ON s.id = e.session_id${which};`;
}

/** Adds checksum and chain to every event, the full-text index, and the views
 * of docs/record.md. Triggers do not touch the index itself, which older
 * SQLite libraries cannot write: they note the rows that the next run of the
 * indexer has to update. */
const recordSchema = `
ALTER TABLE events ADD COLUMN crc32 INTEGER;
ALTER TABLE events ADD COLUMN hash BLOB;
ALTER TABLE events ADD COLUMN redacted TEXT;

CREATE VIRTUAL TABLE events_fts USING fts5(text, content='', contentless_delete=1,
    tokenize='unicode61 remove_diacritics 2');
CREATE TABLE search_state(one INTEGER PRIMARY KEY CHECK (one = 1), indexed_to INTEGER NOT NULL);
INSERT INTO search_state VALUES (1, 0);
CREATE TABLE search_stale(id INTEGER PRIMARY KEY);
CREATE TRIGGER events_deleted AFTER DELETE ON events WHEN old.id <= (SELECT indexed_to FROM search_state) BEGIN
  INSERT OR IGNORE INTO search_stale VALUES (old.id);
  UPDATE search_state SET indexed_to = (SELECT coalesce(max(id), 0) FROM events)
      WHERE indexed_to > (SELECT coalesce(max(id), 0) FROM events);
END;
CREATE TRIGGER events_changed AFTER UPDATE OF content, data_json ON events BEGIN
  INSERT OR IGNORE INTO search_stale VALUES (old.id);
END;
CREATE VIEW search_text(id, text) AS SELECT id, CASE kind
    WHEN 'tool_call' THEN json_extract(data_json, '$.function.name') || ' '
        || substr(replace(replace(${args}, '\\n', ' '), '\\t', ' '), 1, ${maxIndexed})
    WHEN 'tool_result' THEN coalesce(content, '') || char(10) || substr(CASE WHEN json_valid(${output}) THEN
      coalesce(json_extract(${output}, '$.output'), '') || coalesce(json_extract(${output}, '$.error'), '')
          || coalesce(json_extract(${output}, '$.details.output'), '')
      ELSE coalesce(${output}, '') END, 1, ${maxIndexed})
    WHEN 'shell' THEN coalesce(json_extract(data_json, '$.command'), '') || char(10)
        || substr(coalesce(content, ''), 1, ${maxIndexed})
    ELSE substr(coalesce(content, ''), 1, ${maxIndexed}) END
  FROM events WHERE kind IN ('user', 'assistant', 'tool_call', 'tool_result', 'shell');

${toolCallsView('')}

CREATE VIEW v_requests AS
SELECT e.session_id, e.seq, e.created_at, s.cwd, json_extract(e.data_json, '$.response_id') AS response_id,
  json_extract(e.data_json, '$.provider') AS provider, json_extract(e.data_json, '$.model') AS model,
  json_extract(e.data_json, '$.input_tokens') AS input_tokens,
      json_extract(e.data_json, '$.output_tokens') AS output_tokens,
  json_extract(e.data_json, '$.cache_read_tokens') AS cache_read_tokens,
      json_extract(e.data_json, '$.cache_write_tokens') AS cache_write_tokens,
  json_extract(e.data_json, '$.cost_usd') AS cost_usd,
  (SELECT count(*) FROM events c WHERE c.session_id = e.session_id AND c.seq > e.seq AND c.kind = 'tool_call'
    AND json_extract(c.data_json, '$.response_id') = json_extract(e.data_json, '$.response_id')
    AND c.seq < coalesce((SELECT n.seq FROM events n WHERE n.session_id = e.session_id AND n.seq > e.seq
        AND n.kind IN ('usage', 'user')
      ORDER BY n.seq LIMIT 1), 9e15)) AS tool_calls
FROM events e JOIN sessions s ON s.id = e.session_id WHERE e.kind = 'usage';

${sessionsView('')}

CREATE VIEW v_files AS
SELECT e.session_id, e.seq, e.created_at, json_extract(e.data_json, '$.tool_call_id') AS call_id,
    json_extract(e.data_json, '$.name') AS tool,
  json_extract(f.value, '$.path') AS path, 'seen' AS what, NULL AS sha256_before,
      json_extract(f.value, '$.sha256') AS sha256
FROM events e, json_each(e.data_json, '$.files') f WHERE e.kind = 'tool_result'
UNION ALL
SELECT e.session_id, e.seq, e.created_at, json_extract(e.data_json, '$.tool_call_id'),
    coalesce(json_extract(e.data_json, '$.name'), e.kind),
  json_extract(f.value, '$.path'), json_extract(f.value, '$.what'), json_extract(f.value, '$.before'),
      json_extract(f.value, '$.after')
FROM events e, json_each(e.data_json, '$.changes') f WHERE e.kind IN ('tool_result', 'undo', 'redo', 'restore');
`;

/** Gives events from before there were checksums their checksum and link. */
function chainOldEvents(db: Database): void {
  const set = db.prepare('UPDATE events SET crc32 = ?, hash = ? WHERE id = ?');
  const next = db.prepare<[string, number], HashedRow & { readonly id: number }>(
    `SELECT id, seq, kind, content, data_json, created_at FROM events
     WHERE session_id = ? AND seq > ? ORDER BY seq LIMIT 1000`,
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

/** Adds file contents by their hash, and which session's events refer to which.
 * Triggers make the references from the events themselves, so forks, imports
 * and repairs have them too. Contents go with the last session that refers to
 * them. */
const blobSchema = `
CREATE TABLE blobs(sha256 TEXT PRIMARY KEY, size INTEGER NOT NULL, encoding TEXT NOT NULL
    CHECK (encoding IN ('raw', 'deflate')), bytes BLOB NOT NULL);
CREATE TABLE blob_refs(
  session_id TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE, sha256 TEXT NOT NULL,
      PRIMARY KEY (session_id, sha256)) WITHOUT ROWID;
CREATE INDEX blob_refs_sha256 ON blob_refs(sha256);
CREATE TRIGGER blob_refs_made AFTER INSERT ON events WHEN new.kind IN ('tool_result', 'undo', 'redo', 'restore')
    AND json_type(new.data_json, '$.changes') = 'array' BEGIN
  INSERT OR IGNORE INTO blob_refs SELECT new.session_id, json_extract(value, '$.before')
      FROM json_each(new.data_json, '$.changes') WHERE json_type(value, '$.before') = 'text';
  INSERT OR IGNORE INTO blob_refs SELECT new.session_id, json_extract(value, '$.after')
      FROM json_each(new.data_json, '$.changes') WHERE json_type(value, '$.after') = 'text';
END;
CREATE TRIGGER blob_refs_gone AFTER DELETE ON blob_refs
    WHEN NOT EXISTS (SELECT 1 FROM blob_refs WHERE sha256 = old.sha256) BEGIN
  DELETE FROM blobs WHERE sha256 = old.sha256;
END;`;

/** Adds the messages that wait to be sent. They are no part of the record: each
 * goes once it is sent or taken back. */
const queueSchema = `
CREATE TABLE queue(
  session_id TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE, position INTEGER NOT NULL,
  text TEXT NOT NULL, when_ TEXT NOT NULL CHECK (when_ IN ('steer', 'after')),
      PRIMARY KEY (session_id, position)) WITHOUT ROWID;`;

/** Adds the id of a session's directory, which stays when it is moved; null for
 * earlier sessions. */
const directorySchema = `
ALTER TABLE sessions ADD COLUMN dir_id TEXT;
CREATE INDEX sessions_dir_id ON sessions(dir_id) WHERE dir_id IS NOT NULL;`;

const resultOutput = "json_extract(data_json, '$.output')";
/** The start of the data of a result that holds an output and not an error. */
const outputStart = String.raw`"output":"{\"output\":\"`;
/** Longer results are not parsed: the text of their start is unescaped well
 * enough to find its words. */
const maxParsed = 131_072;
const largeOutput = String.raw`replace(replace(replace(substr(data_json,
     instr(data_json, '${outputStart}') + ${outputStart.length}, 24576), '\\n', char(10)), '\\t', ' '), '\\\"', '"')`;

/** `texts`: the texts of further kinds of events. */
function searchTextView(texts: ByKind = {}): string {
  const more = Object.entries(texts).map(([kind, text]) => `    WHEN '${kind}' THEN ${text}\n`);
  const kinds = ['user', 'assistant', 'tool_call', 'tool_result', 'shell', ...Object.keys(texts)];
  return `CREATE VIEW search_text(id, text) AS SELECT id, CASE kind
    WHEN 'tool_call' THEN json_extract(data_json, '$.function.name') || ' '
        || substr(replace(replace(json_extract(data_json, '$.function.arguments'), '\\n', ' '), '\\t', ' '), 1, 16384)
    WHEN 'tool_result' THEN coalesce(content, '') || char(10) || substr(CASE
      WHEN length(data_json) > ${maxParsed} AND instr(substr(data_json, 1, 1024), '${outputStart}') > 0
          THEN ${largeOutput}
      WHEN json_valid(${resultOutput}) THEN
        coalesce(json_extract(${resultOutput}, '$.output'), '')
            || coalesce(json_extract(${resultOutput}, '$.error'), '')
            || coalesce(json_extract(${resultOutput}, '$.details.output'), '')
      ELSE coalesce(${resultOutput}, '') END, 1, 16384)
    WHEN 'shell' THEN coalesce(json_extract(data_json, '$.command'), '') || char(10)
        || substr(coalesce(content, ''), 1, 16384)
${more.join('')}    ELSE substr(coalesce(content, ''), 1, 16384) END
  FROM events WHERE kind IN (${kinds.map((kind) => `'${kind}'`).join(', ')});`;
}

/** Makes the record smaller. Costs are indexed only where there are any.
 * Sessions are so few that titles and directories need no index. A lease needs
 * no number of its own. The full-text index knows in which events a word
 * occurs and no longer where, so phrases are looked for in their texts; it is
 * rebuilt with the next search, half a page at a time. A stored `usage` event
 * leaves out defaults (`packedUsage`), which `v_requests` supplies. A result
 * without changes is not parsed. */
const compactSchema = `
DROP INDEX IF EXISTS sessions_title;
DROP INDEX IF EXISTS sessions_dir_id;
DROP INDEX IF EXISTS events_cost;
CREATE INDEX events_cost ON events(session_id, json_extract(data_json, '$.cost_usd')) WHERE kind = 'usage'
    AND json_extract(data_json, '$.cost_usd') IS NOT NULL;

ALTER TABLE leases RENAME TO leases_before;
CREATE TABLE leases(
  session_id TEXT PRIMARY KEY, token TEXT NOT NULL, pid INTEGER NOT NULL, host TEXT NOT NULL,
  machine TEXT, started TEXT, since INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO leases SELECT session_id, token, pid, host, machine, started, since FROM leases_before
    WHERE session_id IS NOT NULL;
DROP TABLE leases_before;

DROP TABLE events_fts;
CREATE VIRTUAL TABLE events_fts USING fts5(text, content='', contentless_delete=1, detail=none,
    tokenize='unicode61 remove_diacritics 2');
INSERT INTO events_fts(events_fts, rank) VALUES ('pgsz', 2000);
DELETE FROM search_stale;
UPDATE search_state SET indexed_to = 0;

DROP TRIGGER blob_refs_made;
CREATE TRIGGER blob_refs_made AFTER INSERT ON events
  WHEN new.kind IN ('tool_result', 'undo', 'redo', 'restore') AND instr(new.data_json, '"changes"') > 0
      AND json_type(new.data_json, '$.changes') = 'array' BEGIN
  INSERT OR IGNORE INTO blob_refs SELECT new.session_id, json_extract(value, '$.before')
      FROM json_each(new.data_json, '$.changes') WHERE json_type(value, '$.before') = 'text';
  INSERT OR IGNORE INTO blob_refs SELECT new.session_id, json_extract(value, '$.after')
      FROM json_each(new.data_json, '$.changes') WHERE json_type(value, '$.after') = 'text';
END;

DROP VIEW search_text;
${searchTextView()}

DROP VIEW v_requests;
${requestsView('')}
`;

/** Marks the sessions of agents: `kind` is 'agent' and null for any other,
 * `parent_call_id` is the call in the session `parent_id` that the agent works
 * for. What agents cost is indexed where there are any. */
const agentSchema = `
ALTER TABLE sessions ADD COLUMN kind TEXT;
ALTER TABLE sessions ADD COLUMN parent_call_id TEXT;
CREATE INDEX sessions_agents ON sessions(parent_id) WHERE kind = 'agent';
CREATE INDEX events_agent_cost ON events(session_id, json_extract(data_json, '$.cost_usd')) WHERE kind = 'agent_usage'
    AND json_extract(data_json, '$.cost_usd') IS NOT NULL;
`;

/** The tables of the tasks. The first task makes them. `scheduled_tasks` and
 * its index are seed 002's, word for word; what they have no place for is in
 * `task_settings`. */
export const taskTables = `
CREATE TABLE IF NOT EXISTS scheduled_tasks (
    id TEXT PRIMARY KEY,
    task_type TEXT NOT NULL,
    description TEXT NOT NULL,
    schedule_type TEXT NOT NULL,
    schedule_data TEXT NOT NULL,
    execution_data TEXT,
    enabled BOOLEAN DEFAULT 1,
    created_at DATETIME DEFAULT CURRENT_TIMESTAMP,
    last_run DATETIME,
    next_run DATETIME NOT NULL
);
CREATE INDEX IF NOT EXISTS idx_tasks_next_run ON scheduled_tasks(next_run) WHERE enabled = 1;
CREATE TABLE IF NOT EXISTS task_settings(
    task_id TEXT PRIMARY KEY, tz TEXT, cwd TEXT, missed TEXT, max_cost_usd REAL, grants TEXT, expires_at DATETIME,
    failures INTEGER, made_in_session TEXT);
CREATE TABLE IF NOT EXISTS task_runs(
    id TEXT PRIMARY KEY, task_id TEXT NOT NULL, scheduled_for DATETIME NOT NULL, fired_at DATETIME NOT NULL,
    finished_at DATETIME, status TEXT NOT NULL, session_id TEXT, cost_usd REAL, summary TEXT,
    seen BOOLEAN NOT NULL DEFAULT 0);
CREATE INDEX IF NOT EXISTS task_runs_task ON task_runs(task_id);
CREATE INDEX IF NOT EXISTS task_runs_running ON task_runs(task_id) WHERE status = 'running';
CREATE INDEX IF NOT EXISTS task_runs_cost ON task_runs(fired_at, cost_usd) WHERE cost_usd > 0;
`;

/** The tables of the notes. The first note makes them, so that a database
 * without notes is opened as fast as before. */
export const noteTables = `
CREATE TABLE IF NOT EXISTS notes(
  id INTEGER PRIMARY KEY AUTOINCREMENT, scope TEXT NOT NULL CHECK (scope IN ('project', 'global')), directory_id TEXT,
  content TEXT NOT NULL, tags TEXT NOT NULL, trust TEXT NOT NULL CHECK (trust IN ('user', 'model', 'tool')),
  approved INTEGER NOT NULL, pinned INTEGER NOT NULL, archived INTEGER NOT NULL, session TEXT, seq INTEGER,
  created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL);
CREATE VIRTUAL TABLE IF NOT EXISTS notes_fts USING fts5(text, content='', contentless_delete=1,
    tokenize='porter unicode61 remove_diacritics 2');`;

/** The table of the prompts that the user has stashed. The first of them makes it. */
export const stashTables = `
CREATE TABLE IF NOT EXISTS stashed_prompts(
  id INTEGER PRIMARY KEY AUTOINCREMENT, directory_id TEXT NOT NULL, text TEXT NOT NULL, created_at INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS stashed_prompts_project ON stashed_prompts(directory_id);`;

/** The tables of the exchange with a team's server; `store.url` makes them. A
 * row without a session says that it was removed here. The server is asked
 * again where they are lost, except for what was redacted meanwhile. */
export const syncTables = `
CREATE TABLE IF NOT EXISTS sync_state(
  session_id TEXT PRIMARY KEY, pushed_seq INTEGER NOT NULL, remote_link BLOB, owner TEXT, token TEXT,
  row_text TEXT);
CREATE TABLE IF NOT EXISTS sync_redactions(
  session_id TEXT NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (session_id, seq));
CREATE TRIGGER IF NOT EXISTS sync_redacted AFTER UPDATE OF redacted ON events WHEN new.redacted IS NOT NULL BEGIN
  INSERT OR IGNORE INTO sync_redactions VALUES (new.session_id, new.seq);
END;`;

/** `after` runs in the same transaction. */
interface Migration {
  readonly sql: string;
  readonly after?: (db: Database) => void;
}

/** Adds references from the messages and results of a session to their images and documents, as for changed files. A
 * session with an older event of that kind has none, because nothing wrote such events before. */
const attachmentSchema = `
CREATE TRIGGER attachment_refs_made AFTER INSERT ON events
  WHEN new.kind IN ('user', 'tool_result') AND instr(new.data_json, '"attachments"') > 0
      AND json_type(new.data_json, '$.attachments') = 'array' BEGIN
  INSERT OR IGNORE INTO blob_refs SELECT new.session_id, json_extract(value, '$.sha256')
      FROM json_each(new.data_json, '$.attachments') WHERE json_type(value, '$.sha256') = 'text';
END;
CREATE VIEW v_attachments AS
SELECT e.session_id, e.seq, e.created_at, e.kind, json_extract(a.value, '$.name') AS name,
  json_extract(a.value, '$.media_type') AS media_type, json_extract(a.value, '$.width') AS width,
  json_extract(a.value, '$.height') AS height, json_extract(a.value, '$.bytes') AS bytes,
  json_extract(a.value, '$.sha256') AS sha256
FROM events e, json_each(e.data_json, '$.attachments') a
WHERE e.kind IN ('user', 'tool_result') AND instr(e.data_json, '"attachments"') > 0
  AND json_type(e.data_json, '$.attachments') = 'array';`;

/** Lets a search with filters begin at the events that the rarest filter lets through. */
const foundSchema = `
CREATE INDEX events_kind ON events(kind, CASE kind WHEN 'tool_call' THEN json_extract(data_json, '$.function.name')
    WHEN 'tool_result' THEN json_extract(data_json, '$.name') END);
CREATE INDEX events_time ON events(created_at);
CREATE INDEX events_changes ON events(kind) WHERE kind = 'tool_result' AND instr(data_json, '"changes"') > 0;`;

/** A note of the program is no prompt. */
const promptCondition = " AND (p.data_json IS NULL OR json_extract(p.data_json, '$.note') IS NOT 1)";
const promptSchema = `
DROP VIEW v_sessions;
${sessionsView(promptCondition)}`;

type ByKind = Readonly<Record<string, string>>;

function isOneOf(kinds: ByKind): string {
  const names = Object.keys(kinds).map((kind) => `'${kind}'`);
  return `kind IN (${names.join(', ')})`;
}

/** The short name, and behind it the tool of a call or a result. */
function shortName(kinds: ByKind): string {
  const names = Object.entries(kinds).map(([kind, short]) => `WHEN '${kind}' THEN '${short}'`);
  return `CASE kind ${names.join(' ')} END || CASE kind
  WHEN 'tool_call' THEN coalesce(json_extract(data_json, '$.function.name'), '')
  WHEN 'tool_result' THEN coalesce(json_extract(data_json, '$.name'), '') ELSE '' END`;
}

function foundIndex(kinds: ByKind): string {
  return `CREATE INDEX events_found ON events(${shortName(kinds)},
  created_at / 3600000)
  WHERE ${isOneOf(kinds)};`;
}

const firstFoundKinds: ByKind = {
  tool_call: 'c',
  tool_result: 'r',
  user: 'u',
  assistant: 'a',
  shell: 's',
  import: 'i',
};
/** Kinds of events that a search asks for, by the short names of the index. */
export const foundKinds: ByKind = { ...firstFoundKinds, side_question: 'q' };
export const isFound = isOneOf(foundKinds);
export const foundAs = shortName(foundKinds);

/** One small index instead of two: short names, whole hours,
 * and no events that a search never finds. */
const smallSchema = `
DROP INDEX events_kind;
DROP INDEX events_time;
${foundIndex(firstFoundKinds)}`;

/** Kinds of events that figures count. */
const countedKinds = "('usage', 'agent_usage', 'tool_call', 'tool_result', 'user')";

/** The condition that the event `e` of the session `s` is not a copy. Forks and imports copy events; the one that was
 * stored first counts. Copies have the same link in the hash chain, except that the link of a first event covers nothing
 * before it. A session that was imported once more has links of its own; its requests keep the ids of their provider. */
export const isOriginal = `NOT EXISTS (SELECT 1 FROM events o
  WHERE o.kind IN ${countedKinds} AND o.created_at = e.created_at AND o.id < e.id AND o.kind = e.kind
    AND o.session_id <> e.session_id AND s.kind IS NOT 'agent' AND ((o.hash = e.hash AND e.seq > 1)
      OR (o.data_json IS e.data_json AND o.content IS e.content
        AND (o.session_id = s.parent_id OR json_extract(e.data_json, '$.response_id') IS NOT NULL))))`;

/** The condition under which the index `events_counted` has the event `e`. */
export const countedEvents = `e.kind IN ${countedKinds}`;

const eventsWithOwn = `(SELECT e.*, iif(e.kind IN ${countedKinds}, ${isOriginal}, 1) AS own
    FROM events e JOIN sessions s ON s.id = e.session_id)`;

/** Forks and imports are counted once. */
const copiesSchema = `
CREATE INDEX events_counted ON events(created_at) WHERE kind IN ${countedKinds};
DROP VIEW v_tool_calls;
${toolCallsView(` AND ${isOriginal}`)}
DROP VIEW v_requests;
${requestsView(` WHERE ${isOriginal}`)}
DROP VIEW v_sessions;
${sessionsView(promptCondition, eventsWithOwn)}`;

const sideQuestionText = `coalesce(json_extract(data_json, '$.question'), '') || char(10)
        || substr(coalesce(json_extract(data_json, '$.answer'), ''), 1, 16384)`;
const limitText = `coalesce(content, '') || char(10)
        || substr(coalesce(json_extract(data_json, '$.message'), ''), 1, 16384)`;

/** Lets a search find side questions. */
const sideQuestionSchema = `
DROP VIEW search_text;
${searchTextView({ side_question: sideQuestionText })}
DROP INDEX events_found;
${foundIndex(foundKinds)}`;

/** Adds the messages of other processes that are kept until an event has them. Messages have a source, so that data is no
 * sign of a note. */
const keptSchema = `
CREATE TABLE kept_messages(
  position INTEGER PRIMARY KEY, session_id TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
  id TEXT NOT NULL, text TEXT NOT NULL, source TEXT NOT NULL,
  when_ TEXT NOT NULL CHECK (when_ IN ('steer', 'after')), UNIQUE (session_id, id));
DROP VIEW v_sessions;
${sessionsView(promptCondition, eventsWithOwn, "json_extract(e.data_json, '$.note') IS NOT 1")}`;

/** Lets the index be completed from the newest old event to the oldest: events whose ids lie between `gap_from` and
 * `gap_to` are not in it yet. One process at a time completes it in the background, `claimed_by`, until the time
 * `claimed_to` (Unix ms) unless it claims it again. Waits for usage limits are found; they are so few that an index of
 * their own costs less than to replace the one of all others. */
const gapSchema = `
ALTER TABLE search_state ADD COLUMN gap_from INTEGER NOT NULL DEFAULT 0;
ALTER TABLE search_state ADD COLUMN gap_to INTEGER NOT NULL DEFAULT 0;
ALTER TABLE search_state ADD COLUMN claimed_by TEXT;
ALTER TABLE search_state ADD COLUMN claimed_to INTEGER NOT NULL DEFAULT 0;
DROP VIEW search_text;
${searchTextView({ side_question: sideQuestionText, limit: limitText })}
CREATE INDEX events_limits ON events(created_at) WHERE kind = 'limit';
INSERT OR IGNORE INTO search_stale SELECT id FROM events WHERE kind = 'limit';`;

const amounts = `requests INTEGER NOT NULL, input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL,
  cost_usd REAL NOT NULL, unpriced INTEGER NOT NULL`;

/** Creates a table of totals. A row belongs to the part of a session that starts with the sequence number `part`;
 * `period` is a quarter of an hour, the Unix time in ms divided by 900,000. */
function totalsTable(name: string, columns: string): string {
  return `CREATE TABLE ${name}(
  session_id TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE, part INTEGER NOT NULL, row INTEGER NOT NULL,
  period INTEGER NOT NULL, ${columns}, PRIMARY KEY (session_id, part, row)) WITHOUT ROWID;`;
}

/** Adds the totals that statistics are made of, see `totals.ts`. Triggers only note which sessions have to be added up
 * again: new events are known by their ids, above `counted_to`. */
const totalsSchema = `
CREATE TABLE totals_state(one INTEGER PRIMARY KEY CHECK (one = 1), counted_to INTEGER NOT NULL);
INSERT INTO totals_state VALUES (1, 0);
CREATE TABLE totals_queue(session_id TEXT PRIMARY KEY, whole INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE totals_parts(session_id TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE, part INTEGER NOT NULL,
  first_id INTEGER NOT NULL, PRIMARY KEY (session_id, part)) WITHOUT ROWID;
${totalsTable('call_totals', 'tool TEXT, status TEXT NOT NULL, calls INTEGER NOT NULL, durations TEXT NOT NULL')}
${totalsTable('request_totals', `provider TEXT, model TEXT, role TEXT, ${amounts}`)}
${totalsTable('turn_totals', `responses INTEGER NOT NULL, turns INTEGER NOT NULL, ${amounts}`)}
CREATE TRIGGER totals_deleted AFTER DELETE ON events WHEN old.id <= (SELECT counted_to FROM totals_state) BEGIN
  INSERT OR REPLACE INTO totals_queue SELECT id, 1 FROM sessions WHERE id = old.session_id;
  INSERT OR REPLACE INTO totals_queue SELECT session_id, 1 FROM events
      WHERE kind IN ${countedKinds} AND old.kind IN ${countedKinds}
      AND created_at = old.created_at AND session_id <> old.session_id;
  UPDATE totals_state SET counted_to = (SELECT coalesce(max(id), 0) FROM events) WHERE counted_to = old.id;
END;
CREATE TRIGGER totals_changed AFTER UPDATE OF content, data_json ON events
    WHEN old.id <= (SELECT counted_to FROM totals_state) BEGIN
  INSERT OR REPLACE INTO totals_queue VALUES (old.session_id, 1);
  INSERT OR REPLACE INTO totals_queue SELECT session_id, 1 FROM events
      WHERE kind IN ${countedKinds} AND old.kind IN ${countedKinds}
      AND created_at = old.created_at AND session_id <> old.session_id;
END;`;

/** Numbered from 1 and append-only: the meaning of a released entry never
 * changes. `PRAGMA user_version` is the number of the last one applied.
 * `sessions` and `events` are a public format (contracts 2). */
const migrations: readonly Migration[] = [
  {
    sql: `CREATE TABLE sessions(
     id TEXT PRIMARY KEY, parent_id TEXT, cwd TEXT NOT NULL, title TEXT, provider TEXT, model TEXT,
     created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL);
   CREATE INDEX sessions_cwd ON sessions(cwd);
   CREATE INDEX sessions_title ON sessions(title COLLATE NOCASE) WHERE title IS NOT NULL;
   CREATE TABLE events(
     id INTEGER PRIMARY KEY, session_id TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
     seq INTEGER NOT NULL, kind TEXT NOT NULL, content TEXT,
     data_json TEXT CHECK (data_json IS NULL OR json_valid(data_json)),
     created_at INTEGER NOT NULL, UNIQUE (session_id, seq));
   CREATE INDEX events_cost ON events(session_id, json_extract(data_json, '$.cost_usd')) WHERE kind = 'usage';
   CREATE TABLE leases(
     session_id TEXT PRIMARY KEY, token TEXT NOT NULL, pid INTEGER NOT NULL, host TEXT NOT NULL,
     machine TEXT, started TEXT, since INTEGER NOT NULL);`,
  },
  { sql: recordSchema, after: chainOldEvents },
  { sql: blobSchema },
  { sql: queueSchema },
  { sql: directorySchema },
  { sql: compactSchema },
  /** The wire and the server of a session; null for earlier sessions. */
  { sql: 'ALTER TABLE sessions ADD COLUMN api TEXT; ALTER TABLE sessions ADD COLUMN base_url TEXT;' },
  /** JSON `[{"from", "to", "last_seq"}]`: the moves of the session's directory;
   * null when there are none. */
  { sql: 'ALTER TABLE sessions ADD COLUMN moves TEXT;' },
  { sql: attachmentSchema },
  { sql: agentSchema },
  { sql: foundSchema },
  { sql: promptSchema },
  { sql: smallSchema },
  { sql: copiesSchema },
  { sql: sideQuestionSchema },
  { sql: keptSchema },
  { sql: gapSchema },
  { sql: totalsSchema },
];

/** The schema this program writes. */
export const schemaVersion = migrations.length;

/** The number of migrations that `db` has. */
export function userVersion(db: Database): number {
  const version = db.pragma('user_version', { simple: true });
  return typeof version === 'number' ? version : 0;
}

/** Brings `db` to `schemaVersion`: an empty database in one step, an older one by its migrations. Two processes may do
 * this at once. Throws a StoreError for a newer database and for one of another program. */
export function migrate(db: Database, file: string, report: Announce = silent): void {
  const create = db.transaction(() => {
    if (db.prepare('SELECT 1 FROM sqlite_schema LIMIT 1').get() !== undefined) return;
    for (const sql of freshSchema.statements) db.exec(sql);
    for (const { table, row } of freshSchema.rows) {
      const names = Object.keys(row);
      db.prepare(`INSERT INTO ${table}(${names.join()}) VALUES (${names.map(() => '?').join()})`).run(
        Object.values(row),
      );
    }
    db.pragma(`user_version = ${schemaVersion}`);
  });
  if (userVersion(db) === 0 && freshSchema.version === schemaVersion) create.immediate();
  migrateInSteps(db, file, report);
}

/** Receives a message for the user, before the work that it is about. */
export type Announce = (message: string) => void;

const silent: Announce = () => undefined;
/** The migrations of a database of this size are likely to take longer than `noticedMs`. */
const largeBytes = 64 * 1024 * 1024;
const noticedMs = 500;

/** Applies the migrations that `db` has not. Each step is a transaction, so a kill leaves a whole schema. Where
 * that takes long, `report` receives one message. */
export function migrateInSteps(db: Database, file: string, report: Announce = silent): void {
  const step = db.transaction(() => {
    const version = userVersion(db);
    refuseNewer(version, file);
    const migration = migrations[version];
    if (migration === undefined) return false;
    refuseForeign(db, version, file);
    db.exec(migration.sql);
    migration.after?.(db);
    db.pragma(`user_version = ${version + 1}`);
    return true;
  });
  const bytes = statsAt(file)?.size ?? 0;
  const start = performance.now();
  let isReported = false;
  do {
    const left = schemaVersion - userVersion(db);
    const takesLong = bytes >= largeBytes || performance.now() - start > noticedMs;
    if (isReported || left <= 0 || !takesLong) continue;
    const steps = `${left} step${left === 1 ? '' : 's'}`;
    report(`Updating the session database (${Math.round(bytes / 1e6)} MB) for this version, ${steps} …`);
    isReported = true;
  } while (step.immediate());
}

/** Throws a StoreError `foreign` for triggers and views that this program did not make, and SQLite's error for damage where
 * they are ours with a few other characters: SQLite would run them inside our own
 * statements, and one may never end. Views of an older version are made again by migrations, so before them only triggers
 * count. */
export function refuseForeignCode(db: Database, file: string): void {
  const isCurrent = userVersion(db) === schemaVersion;
  const foreign = db
    .prepare<[], { type: string; name: string; sql: string }>(
      "SELECT type, name, sql FROM sqlite_schema WHERE type IN ('trigger', 'view')",
    )
    .all()
    .filter(({ type, sql }) => {
      if (type === 'view' && !isCurrent) return false;
      const made = sql.replace(/^CREATE (?:TRIGGER|VIEW) /, '');
      return !ownSql().some((own) => own.includes(made));
    });
  if (foreign.length === 0) return;
  if (foreign.every(({ name, sql }) => isDamagedOwn(name, sql)))
    throw Object.assign(new Error('a trigger or view is damaged'), { name: 'SqliteError', code: 'SQLITE_CORRUPT' });
  const shown = foreign.slice(0, 5).map(({ type, name }) => ({ type, name: name.slice(0, 80) }));
  const more = foreign.length > shown.length ? ` and ${foreign.length - shown.length} more` : '';
  const drops = shown.map(({ type, name }) => `DROP ${type.toUpperCase()} "${name.replaceAll('"', '""')}";`).join(' ');
  throw new StoreError(
    'foreign',
    `${file} has triggers or views that this program did not make ` +
      `(${shown.map(({ type, name }) => `${type} ${JSON.stringify(name)}`).join(', ')}${more}); it was not used`,
    `Remove them with the sqlite3 program: ${drops}`,
  );
}

function ownSql(): readonly string[] {
  return [...migrations.map((migration) => migration.sql), syncTables];
}

/** More characters than a damaged page changes in one statement make it another statement. */
const mostDamagedCharacters = 4;

/** Returns true for a statement of ours with a few other characters, as bits that flipped on a disk leave it. */
function isDamagedOwn(name: string, sql: string): boolean {
  const made = sql.slice(Math.max(0, sql.indexOf(name)));
  return ownSql().some((own) => {
    for (let at = own.indexOf(name); at >= 0; at = own.indexOf(name, at + 1)) {
      const differing = [...made].filter((character, index) => own[at + index] !== character).length;
      if (differing <= mostDamagedCharacters && own[at + made.length] === ';') return true;
    }
    return false;
  });
}

/** Throws a StoreError `foreign` for a database with tables that has none of our versions. */
export function refuseForeign(db: Database, version: number, file: string): void {
  if (version === 0 && db.prepare('SELECT 1 FROM sqlite_schema LIMIT 1').get() !== undefined)
    throw foreignDatabase(file);
}

export function foreignDatabase(file: string): StoreError {
  return new StoreError(
    'foreign',
    `${file} is a database of another program; it was not touched`,
    'Move it away, or set AGENT_HOME to another folder.',
  );
}

/** Throws a StoreError `newer` for a schema this program does not know. */
export function refuseNewer(version: number, file: string): void {
  if (version <= schemaVersion) return;
  throw new StoreError(
    'newer',
    `${file} was written by a newer version of this program ` +
      `(schema ${version}, this one knows ${schemaVersion}); it was not touched`,
    'Update the program, or set AGENT_HOME to another folder.',
  );
}

/** Returns an empty database whose first page can replace a lost one. It holds
 * the tables that come first in every database, so that they start on the same
 * pages, and no more than fits on one page. */
export function firstPageSource(driver: Driver): Buffer {
  const db = new driver(':memory:');
  try {
    db.exec(migrations[0]?.sql ?? '');
    db.exec(
      `ALTER TABLE events ADD COLUMN crc32 INTEGER; ALTER TABLE events ADD COLUMN hash BLOB;
       ALTER TABLE events ADD COLUMN redacted TEXT;`,
    );
    return db.serialize();
  } finally {
    db.close();
  }
}
