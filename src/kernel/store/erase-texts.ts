import { isRecord, parseJson } from '../core/json.js';
import type { BlobSeal, Erased } from '../core/store.js';
import type { TextTrace } from '../core/text-trace.js';
import type { Connection } from './connection.js';
import { readBlob } from './event-rows.js';
import { compactDatabase, replaceRow, type StoredRow } from './records.js';

/** Columns beside those of events that hold texts. A table is there once it was needed. */
const columns: readonly (readonly [table: string, column: string])[] = [
  ['sessions', 'title'],
  ['queue', 'text'],
  ['kept_messages', 'text'],
  ['stashed_prompts', 'text'],
  ['notes', 'content'],
  ['notes', 'tags'],
  ['scheduled_tasks', 'description'],
  ['scheduled_tasks', 'schedule_data'],
  ['scheduled_tasks', 'execution_data'],
  ['task_settings', 'grants'],
  ['task_runs', 'summary'],
  ['sync_state', 'row_text'],
];

const pageRows = 500;

/** The trace of no text. */
export const keptTexts: TextTrace = { text: (text) => text, deep: (value) => value };

/** Contents that are removed whatever they hold, by SHA-256 (hex), and how contents are sealed. */
interface ErasedContents {
  readonly contents: readonly string[];
  readonly seal: BlobSeal | null;
}

/** Removes what quotes the texts of `trace` from every event, title, message, note and task, and contents that hold
 * some, and wipes the old bytes from the file. Events keep the digests of their old texts, so that the chain stays
 * whole. */
export function eraseTexts(connection: Connection, trace: TextTrace, erased: ErasedContents): Erased {
  const { db, transact } = connection;
  const sessions = new Set<string>();
  const count = { events: 0, others: 0, contents: 0 };
  db.pragma('secure_delete = ON');
  transact(() => {
    count.events = eraseEvents(connection, trace, sessions);
    for (const [table, column] of columns) count.others += eraseColumn(connection, trace, table, column);
    count.contents = eraseContents(connection, trace, erased);
  });
  compactDatabase(connection);
  return { ...count, sessions: [...sessions] };
}

function eraseEvents(connection: Connection, trace: TextTrace, sessions: Set<string>): number {
  let changed = 0;
  const page = connection.sql<StoredRow>(
    `SELECT id, session_id, seq, kind, content, data_json, created_at, redacted FROM events
     WHERE id > ? AND kind NOT IN ('usage', 'agent_usage', 'tool_started', 'tools') ORDER BY id LIMIT ${pageRows}`,
  );
  for (let rows = page.all(0); rows.length > 0; rows = page.all(rows.at(-1)?.id ?? Infinity)) {
    for (const row of rows) {
      const content = row.content === null ? null : trace.text(row.content);
      const data = row.data_json === null ? null : erasedData(row.data_json, trace);
      if (content === row.content && data === row.data_json) continue;
      replaceRow(connection, row, { content, data_json: data });
      sessions.add(row.session_id);
      changed++;
    }
  }
  return changed;
}

/** Returns the data without the texts. A provider signed the reasoning, so that it goes as a whole. */
function erasedData(json: string, trace: TextTrace): string {
  const data: unknown = parseJson(json);
  const next = trace.deep(data);
  if (next === data) return json;
  if (!isRecord(data) || !isRecord(next) || data.reasoning === next.reasoning) return JSON.stringify(next);
  const { reasoning: _signed, ...rest } = next;
  return JSON.stringify(rest);
}

function eraseColumn({ sql }: Connection, trace: TextTrace, table: string, column: string): number {
  if (sql("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?").get(table) === undefined) return 0;
  const rows = sql<{ readonly text: string }>(
    `SELECT DISTINCT ${column} AS text FROM ${table} WHERE ${column} IS NOT NULL`,
  ).all();
  let changed = 0;
  for (const { text } of rows) {
    const next = trace.text(text);
    if (next === text) continue;
    if (table === 'notes')
      sql(`DELETE FROM notes_fts WHERE rowid IN (SELECT id FROM notes WHERE ${column} = ?)`).run(text);
    // A row of a session that was pushed is compared and sent again where there is none.
    const value = table === 'sync_state' ? null : next;
    changed += sql(`UPDATE ${table} SET ${column} = ? WHERE ${column} = ?`).run(value, text).changes;
    if (table === 'notes')
      sql(`INSERT INTO notes_fts (rowid, text) SELECT id, content || ' ' || tags FROM notes
           WHERE ${column} = ? AND NOT archived AND id NOT IN (SELECT rowid FROM notes_fts)`).run(next);
  }
  return changed;
}

/** Removes contents that are listed or that quote the texts. A change to such a file can no longer be undone, and such
 * an image is no longer sent. */
function eraseContents(connection: Connection, trace: TextTrace, { contents, seal }: ErasedContents): number {
  const { sql } = connection;
  let removed = 0;
  for (const { sha256 } of sql<{ readonly sha256: string }>('SELECT sha256 FROM blobs').all()) {
    const bytes = contents.includes(sha256) ? null : readBlob(connection, sha256, seal);
    if (bytes === null && !contents.includes(sha256)) continue;
    const text = bytes === null ? null : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
    if (text !== null && trace.text(text) === text) continue;
    sql('DELETE FROM blob_refs WHERE sha256 = ?').run(sha256);
    sql('DELETE FROM blobs WHERE sha256 = ?').run(sha256);
    removed++;
  }
  return removed;
}
