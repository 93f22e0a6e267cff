import type { Connection } from '../../kernel/store/connection.js';
import { broughtIn } from '../../kernel/store/search-events.js';
import type { ServerRows, TablePlace, TableSet } from '../../kernel/store/tables.js';

/** Finds the sessions whose calls changed a file, without a look at the others. */
export interface ChangedFileRows {
  /** Returns the ids of sessions with a result that lists a change of this path. It may return others, too. */
  sessionsOfPath(path: string): Promise<readonly string[]>;
  /** Returns the ids of sessions with a change from or to some of these contents (SHA-256, hex). */
  sessionsOfContents(sha256: readonly string[]): Promise<readonly string[]>;
  /** Returns the ids of sessions that changed files below a directory, since a time (unix ms). */
  sessionsBelow(directory: string, sinceMs: number): Promise<readonly string[]>;
  /** Returns when files below a directory were changed first (unix ms); null: never. */
  firstChangeBelow(directory: string): Promise<number | null>;
  /** Returns the ids of sessions that were imported from other programs and name the file in the arguments of a call. */
  importedSessions(fileName: string): Promise<readonly string[]>;
  /** Returns the moves of directories that sessions have noted, as JSON. */
  moves(): Promise<readonly string[]>;
}

export const changedFileTables: TableSet<ChangedFileRows | null> = {
  name: 'changed-files',
  open: (place) => Promise.resolve(rowsAt(place)),
};

/** Null: the store has no tables, so all its sessions are looked at. */
function rowsAt(place: TablePlace): ChangedFileRows | null {
  if (place.kind === 'sqlite') return localRows(place.read);
  return place.kind === 'server' ? serverRows(place.connection.rows) : null;
}

interface Found {
  readonly id: string;
}

/** The expression of the index `events_changes`. */
const hasChanges = `kind = 'tool_result' AND instr(data_json, '"changes"') > 0`;

function localRows(read: <T>(work: (connection: Connection) => T) => Promise<T>): ChangedFileRows {
  const ids = (sql: string, ...values: readonly (string | number)[]): Promise<readonly string[]> =>
    read((connection) =>
      connection
        .sql<Found>(sql)
        .all(...values)
        .map(({ id }) => id),
    );
  return {
    sessionsOfPath: (path) =>
      ids(`SELECT DISTINCT session_id AS id FROM events WHERE ${hasChanges} AND instr(data_json, ?) > 0`, quoted(path)),
    sessionsOfContents: (sha256) =>
      ids(
        'SELECT DISTINCT session_id AS id FROM blob_refs WHERE sha256 IN (SELECT value FROM json_each(?))',
        JSON.stringify(sha256),
      ),
    sessionsBelow: (directory, sinceMs) =>
      ids(
        `SELECT DISTINCT session_id AS id FROM events
         WHERE ${hasChanges} AND created_at >= ? AND instr(data_json, ?) > 0`,
        sinceMs,
        beginning(directory),
      ),
    firstChangeBelow: (directory) =>
      read(
        ({ sql }) =>
          sql<{ readonly at: number | null }>(
            `SELECT min(created_at) AS at FROM events WHERE ${hasChanges} AND instr(data_json, ?) > 0`,
          ).get(beginning(directory))?.at ?? null,
      ),
    importedSessions: (fileName) =>
      ids(
        `SELECT DISTINCT session_id AS id FROM events WHERE session_id IN (${broughtIn})
         AND kind = 'tool_call' AND instr(data_json, ?) > 0`,
        fileName,
      ),
    moves: () => ids('SELECT moves AS id FROM sessions WHERE moves IS NOT NULL'),
  };
}

function serverRows(rows: ServerRows): ChangedFileRows {
  const ids = async (sql: string, ...values: readonly (string | number)[]): Promise<readonly string[]> =>
    (await rows<Found>(sql, values)).map(({ id }) => id);
  return {
    sessionsOfPath: (path) =>
      ids(
        `SELECT DISTINCT session_id AS id FROM agent.events WHERE kind = 'tool_result' AND strpos(data_json, $1) > 0`,
        quoted(path),
      ),
    // Only functions of the server read which session refers to which contents.
    sessionsOfContents: (sha256) =>
      ids(
        `SELECT DISTINCT session_id AS id FROM agent.events WHERE kind = 'tool_result' AND strpos(data_json, '"changes"') > 0
         AND EXISTS (SELECT FROM json_array_elements_text($1::json) one(sha256) WHERE strpos(data_json, one.sha256) > 0)`,
        JSON.stringify(sha256),
      ),
    sessionsBelow: (directory, sinceMs) =>
      ids(
        `SELECT DISTINCT session_id AS id FROM agent.events
         WHERE kind = 'tool_result' AND created_at >= $1 AND strpos(data_json, $2) > 0`,
        sinceMs,
        beginning(directory),
      ),
    firstChangeBelow: async (directory) => {
      const [found] = await rows<{ readonly at: string | null }>(
        `SELECT min(created_at) AS at FROM agent.events WHERE kind = 'tool_result' AND strpos(data_json, $1) > 0`,
        [beginning(directory)],
      );
      return found?.at == null ? null : Number(found.at);
    },
    importedSessions: (fileName) =>
      ids(
        `SELECT DISTINCT c.session_id AS id FROM agent.events i JOIN agent.events c ON c.session_id = i.session_id
         WHERE i.kind = 'import' AND c.kind = 'tool_call' AND strpos(c.data_json, $1) > 0`,
        fileName,
      ),
    moves: () => ids('SELECT moves AS id FROM agent.sessions WHERE moves IS NOT NULL'),
  };
}

/** Returns a path as JSON writes it. */
function quoted(path: string): string {
  return JSON.stringify(path);
}

function beginning(directory: string): string {
  return `${JSON.stringify(directory).slice(0, -1)}/`;
}
