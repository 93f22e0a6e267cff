import { blobSchema } from './blob-schema.js';
import { compactSchema } from './compact-schema.js';
import { directorySchema } from './directory-schema.js';
import type { Database, Driver } from './driver.js';
import { chainOldEvents, recordSchema } from './migration-record.js';
import { queueSchema } from './queue-schema.js';
import { StoreError } from './store-error.js';

/** `after` runs in the same transaction. */
interface Migration {
  readonly sql: string;
  readonly after?: (db: Database) => void;
}

/** Numbered from 1 and append-only: a released entry never changes. `PRAGMA user_version` is the number of the last one
 * applied. `sessions` and `events` are a public format (contracts 2); `leases` is ours. */
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
  /** Which wire and which server a session speaks; null where that is not known, as for every session from before. */
  { sql: 'ALTER TABLE sessions ADD COLUMN api TEXT; ALTER TABLE sessions ADD COLUMN base_url TEXT;' },
  /** JSON `[{"from", "to", "last_seq"}]`: how the session's directory was moved; null where it was not. */
  { sql: 'ALTER TABLE sessions ADD COLUMN moves TEXT;' },
];

/** The schema this program writes. */
export const schemaVersion = migrations.length;

/** The number of migrations `db` has seen. */
export function userVersion(db: Database): number {
  const version = db.pragma('user_version', { simple: true });
  return typeof version === 'number' ? version : 0;
}

/** Brings `db` to `schemaVersion`, each step in a transaction of its own: a kill leaves the schema before it or after
 * it. Two processes may do this at once. Throws a StoreError for a newer database and for one of another program. */
export function migrate(db: Database, file: string): void {
  const step = db.transaction(() => {
    const version = userVersion(db);
    refuseNewer(version, file);
    const migration = migrations[version];
    if (migration === undefined) return false;
    if (version === 0 && db.prepare('SELECT 1 FROM sqlite_schema LIMIT 1').get() !== undefined) {
      throw new StoreError(
        'foreign',
        `${file} is a database of another program; it was not touched`,
        'Move it away, or set AGENT_HOME to another folder.',
      );
    }
    db.exec(migration.sql);
    migration.after?.(db);
    db.pragma(`user_version = ${version + 1}`);
    return true;
  });
  let more = true;
  while (more) more = step.immediate();
}

/** Throws a StoreError `newer` for a schema this program does not know. */
export function refuseNewer(version: number, file: string): void {
  if (version <= schemaVersion) return;
  throw new StoreError(
    'newer',
    `${file} was written by a newer version of this program (schema ${version}, this one knows ${schemaVersion}); it was not touched`,
    'Update the program, or set AGENT_HOME to another folder.',
  );
}

/** An empty database whose first page can stand in for a lost one: the tables that matter, where every database has
 * them, and no more than fits on one page. They come first in every database, whatever was added later, so that they
 * start on the same pages. */
export function firstPageSource(driver: Driver): Buffer {
  const db = new driver(':memory:');
  try {
    db.exec(migrations[0]?.sql ?? '');
    db.exec(
      'ALTER TABLE events ADD COLUMN crc32 INTEGER; ALTER TABLE events ADD COLUMN hash BLOB; ALTER TABLE events ADD COLUMN redacted TEXT;',
    );
    return db.serialize();
  } finally {
    db.close();
  }
}
