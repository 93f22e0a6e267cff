import { existsSync } from 'node:fs';
import { readBounded } from '../../kernel/disk/bounded-file.js';
import { type Database, type Driver, loadDriver } from '../../kernel/store/driver.js';

type Row = Readonly<Record<string, unknown>>;

/** The conversations in a database of opencode, as rows. Source: the tables of opencode 1.18. */
interface OpencodeRows {
  readonly sessions: () => readonly Row[];
  readonly session: (id: string) => Row | null;
  /** `id` and `data`, which is JSON. */
  readonly messages: (session: string) => readonly Row[];
  readonly parts: (message: string) => readonly Row[];
}

/** Returns a function that opens a database of opencode for reading; it returns null for any other file. A file is
 * opened once. Throws as `loadDriver`. */
export async function opencodeOpener(): Promise<(file: string) => OpencodeRows | null> {
  const driver = await loadDriver();
  const opened = new Map<string, OpencodeRows | null>();
  return (file) => {
    const known = opened.get(file);
    if (known !== undefined) return known;
    const rows = openRows(driver, file);
    opened.set(file, rows);
    return rows;
  };
}

function openRows(driver: Driver, file: string): OpencodeRows | null {
  let db: Database | null = null;
  try {
    db = openForReading(driver, file);
    db.exec('SELECT 1 FROM session, message, part LIMIT 1');
  } catch {
    db?.close();
    return null;
  }
  const sessions = db.prepare<[], Row>('SELECT * FROM session ORDER BY id');
  const session = db.prepare<[string], Row>('SELECT * FROM session WHERE id = ?');
  const messages = db.prepare<[string], Row>('SELECT id, data FROM message WHERE session_id = ? ORDER BY id');
  const parts = db.prepare<[string], Row>('SELECT id, data FROM part WHERE message_id = ? ORDER BY id');
  return {
    sessions: () => sessions.all(),
    session: (id) => session.get(id) ?? null,
    messages: (id) => messages.all(id),
    parts: (id) => parts.all(id),
  };
}

const maxMemoryBytes = 48 * 1024 * 1024;

/** SQLite makes files beside a database in WAL mode, also where it only reads. One that nobody has open is read into
 * memory, which leaves the folder as it is. */
function openForReading(driver: Driver, file: string): Database {
  const whole = readBounded(file, { maxBytes: maxMemoryBytes, longer: 'refuse', links: 'follow' });
  if (existsSync(`${file}-wal`) || whole.kind !== 'read') return new driver(file, { readonly: true });
  const { bytes } = whole;
  // The two bytes of the header that say WAL: what is in memory has no such log.
  if (bytes.length > 20) bytes.fill(1, 18, 20);
  return new driver(bytes, { readonly: true });
}
