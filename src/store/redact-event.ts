import { loadDriver, type Database } from './driver.js';
import { eventChecksum, eventDigests, type HashedRow } from './event-hash.js';
import { asStoreError } from './store-error.js';

interface StoredRow extends HashedRow {
  readonly id: number;
  readonly session_id: string;
  readonly redacted: string | null;
}

/** Puts `content` and `data` in the place of an event and of its copies in forks, with the digests of what stood there,
 * so that the chain stays whole; drops file contents that only it referred to, its words from the index, and what is
 * left of all that in the file. Gives the number of events changed. Throws a StoreError, `busy` where another program
 * uses the database. */
export async function redactEvent(
  file: string,
  sessionId: string,
  seq: number,
  replacement: { readonly content: string | null; readonly data: unknown },
): Promise<number> {
  const driver = await loadDriver();
  try {
    const db = new driver(file, { timeout: 5000 });
    try {
      db.pragma('secure_delete = ON');
      const changed = db
        .transaction(() =>
          replaceAll(
            db,
            sessionId,
            seq,
            replacement.content,
            replacement.data === null ? null : JSON.stringify(replacement.data),
          ),
        )
        .immediate();
      db.exec("INSERT INTO events_fts(events_fts) VALUES ('optimize'); VACUUM");
      db.pragma('wal_checkpoint(TRUNCATE)');
      return changed;
    } finally {
      db.close();
    }
  } catch (error) {
    throw asStoreError(error, file);
  }
}

function replaceAll(
  db: Database,
  sessionId: string,
  seq: number,
  content: string | null,
  dataJson: string | null,
): number {
  const rows = db
    .prepare<
      [string, number],
      StoredRow
    >(`SELECT id, session_id, seq, kind, content, data_json, created_at, redacted FROM events e
    WHERE EXISTS (SELECT 1 FROM events x WHERE x.session_id = ? AND x.seq = ? AND (x.id = e.id OR x.hash = e.hash))`)
    .all(sessionId, seq);
  for (const row of rows) {
    const next = { ...row, content, data_json: dataJson };
    db.prepare('UPDATE events SET content = ?, data_json = ?, crc32 = ?, redacted = ? WHERE id = ?').run(
      content,
      dataJson,
      eventChecksum(next),
      row.redacted ?? JSON.stringify(eventDigests(row)),
      row.id,
    );
    db.prepare('DELETE FROM events_fts WHERE rowid = ?').run(row.id);
    db.prepare(`DELETE FROM blob_refs WHERE session_id = ? AND sha256 NOT IN
      (SELECT sha256 FROM v_files WHERE session_id = ? AND what <> 'seen' AND sha256 IS NOT NULL UNION SELECT sha256_before FROM v_files WHERE session_id = ? AND sha256_before IS NOT NULL)`).run(
      row.session_id,
      row.session_id,
      row.session_id,
    );
  }
  return rows.length;
}
