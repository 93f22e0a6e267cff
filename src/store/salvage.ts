import { removeDatabase } from './database-file.js';
import type { Database, Driver } from './driver.js';
import { eventChecksum, type HashedRow } from './event-hash.js';
import { firstPages } from './first-page.js';
import { openMended } from './mended-copy.js';

/** `altered`: events left out because they no longer match their checksum. */
export interface Salvaged {
  readonly sessions: number;
  readonly events: number;
  readonly altered: number;
}

type Row = Readonly<Record<string, unknown>>;

/** So many ids without a row are tried after the last one found; the highest id read from a bad page may be
 * anything. */
const maxGap = 50_000;
const batch = 500;
const sessionColumns = ['id', 'parent_id', 'cwd', 'title', 'provider', 'model', 'created_at', 'updated_at'];
const eventColumns = ['id', 'session_id', 'seq', 'kind', 'content', 'data_json', 'created_at'];
const blobColumns = ['sha256', 'size', 'encoding', 'bytes'];

/** Copies every session and event that can be read from `damagedFile` into `target` (empty, of the present schema),
 * with their ids. Where a range of rows cannot be read at once, each row is looked up alone, so that a bad page costs
 * only the rows on it. Events whose session's row is lost get one made up; events that do not match their checksum are
 * left out. Reads a copy named `copy`, which is removed; `damagedFile` is not touched. */
export function salvage(driver: Driver, damagedFile: string, copy: string, target: Database, nowMs: number): Salvaged {
  let altered = 0;
  try {
    const source = openMended(driver, damagedFile, copy, firstPages(driver, target));
    if (!source) return { sessions: 0, events: 0, altered };
    try {
      target.transaction(() => {
        copySessions(source, target);
        copyBlobs(source, target);
        altered = copyEvents(source, target, nowMs);
      })();
    } finally {
      source.close();
    }
  } finally {
    removeDatabase(copy);
  }
  return { sessions: countRows(target, 'sessions'), events: countRows(target, 'events'), altered };
}

function copySessions(source: Database, target: Database): void {
  const columns = [...sessionColumns, ...laterColumns(source, 'sessions', ['dir_id', 'api', 'base_url', 'moves'])];
  const insert = target.prepare(
    `INSERT OR IGNORE INTO sessions (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`,
  );
  for (const row of readableRows(source, 'sessions', columns)) {
    if (
      typeof row['id'] === 'string' &&
      typeof row['cwd'] === 'string' &&
      isTime(row['created_at']) &&
      isTime(row['updated_at'])
    ) {
      insert.run(columns.map((name) => row[name]));
    }
  }
}

/** Contents that are damaged are found out when they are asked for. */
function copyBlobs(source: Database, target: Database): void {
  const insert = target.prepare(
    `INSERT OR IGNORE INTO blobs (${blobColumns.join(', ')}) VALUES (${blobColumns.map(() => '?').join(', ')})`,
  );
  for (const row of readableRows(source, 'blobs', blobColumns)) {
    const isBlob =
      typeof row['sha256'] === 'string' &&
      Number.isInteger(row['size']) &&
      (row['encoding'] === 'raw' || row['encoding'] === 'deflate') &&
      Buffer.isBuffer(row['bytes']);
    if (isBlob) insert.run(blobColumns.map((name) => row[name]));
  }
}

/** Gives the number of events left out because of their checksum. */
function copyEvents(source: Database, target: Database, nowMs: number): number {
  const columns = [...eventColumns, ...laterColumns(source, 'events', ['crc32', 'hash', 'redacted'])];
  const insert = target.prepare(
    `INSERT OR IGNORE INTO events (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`,
  );
  const owner = target.prepare<[unknown]>('SELECT 1 FROM sessions WHERE id = ?');
  const adopt = target.prepare(
    "INSERT INTO sessions (id, cwd, title, created_at, updated_at) VALUES (?, '/', 'Recovered session', ?, ?)",
  );
  let altered = 0;
  for (const row of readableRows(source, 'events', columns)) {
    if (!isEvent(row)) continue;
    if (!isUnaltered(row)) {
      altered++;
      continue;
    }
    if (owner.get(row['session_id']) === undefined) adopt.run(row['session_id'], row['created_at'], nowMs);
    insert.run(columns.map((name) => row[name]));
  }
  return altered;
}

/** Those of `names` that `table` has: a database of an earlier version does not have all of them. */
function laterColumns(source: Database, table: 'sessions' | 'events', names: readonly string[]): readonly string[] {
  const present =
    attempt(() => source.prepare<[], string>(`SELECT name FROM pragma_table_info('${table}')`).pluck().all()) ?? [];
  return names.filter((name) => present.includes(name));
}

function isUnaltered(row: Row): boolean {
  const sum = row['crc32'] ?? null;
  return sum === null || (row['redacted'] ?? null) !== null || sum === eventChecksum(row as Row & HashedRow);
}

/** A row read from a bad page may hold anything. */
function isEvent(row: Row): boolean {
  const text = row['data_json'];
  return (
    typeof row['session_id'] === 'string' &&
    Number.isInteger(row['seq']) &&
    typeof row['kind'] === 'string' &&
    isTime(row['created_at']) &&
    isTextOrNull(row['content']) &&
    isTextOrNull(text) &&
    (text === null || isJson(text))
  );
}

function isTextOrNull(value: unknown): value is string | null {
  return value === null || typeof value === 'string';
}

function isTime(value: unknown): boolean {
  return Number.isInteger(value);
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Rows in order of their rowid: in batches as long as that works, then one at a time. */
function* readableRows(
  source: Database,
  table: 'sessions' | 'events' | 'blobs',
  columns: readonly string[],
): Generator<Row> {
  const select = `SELECT rowid AS row_number, ${columns.join(', ')} FROM ${table} WHERE rowid`;
  const highest = attempt(() =>
    source.prepare<[], number>(`SELECT coalesce(max(rowid), 0) FROM ${table}`).pluck().get(),
  );
  const last = yield* rowsInBatches(source, select);
  if (highest === null || last < highest) yield* rowsAlone(source, select, last, highest);
}

/** Ends at the first batch that cannot be read, or that is out of order; returns the last rowid before it. */
function* rowsInBatches(source: Database, select: string): Generator<Row, number> {
  const next = attempt(() => source.prepare<[number], Row>(`${select} > ? ORDER BY rowid LIMIT ${batch}`));
  for (let last = 0; ;) {
    const rows = attempt(() => next?.all(last)) ?? [];
    const end = rowNumber(rows.at(-1));
    if (end <= last) return last;
    yield* rows;
    last = end;
  }
}

function* rowsAlone(source: Database, select: string, last: number, highest: number | null): Generator<Row> {
  const one = attempt(() => source.prepare<[number], Row>(`${select} = ?`));
  if (!one) return;
  const limit = highest ?? Number.MAX_SAFE_INTEGER;
  let end = Math.min(limit, last + maxGap);
  for (let id = last + 1; id <= end; id++) {
    const row = attempt(() => one.get(id));
    if (!row || rowNumber(row) !== id) continue;
    end = Math.min(limit, id + maxGap);
    yield row;
  }
}

function rowNumber(row: Row | undefined): number {
  return Number(row?.['row_number'] ?? 0);
}

/** Null where SQLite cannot read it; that is what is being found out. */
function attempt<T>(read: () => T | undefined): T | null {
  try {
    return read() ?? null;
  } catch {
    return null;
  }
}

function countRows(db: Database, table: 'sessions' | 'events'): number {
  return db.prepare<[], number>(`SELECT count(*) FROM ${table}`).pluck().get() ?? 0;
}
