import { parseJson } from '../core/json.js';
import {
  chmodSync,
  closeSync,
  constants,
  copyFileSync,
  existsSync,
  fstatSync,
  openSync,
  readSync,
  writeSync,
} from 'node:fs';
import { removeDatabase } from './database-file.js';
import type { Database, Driver } from './driver.js';
import { eventChecksum, type HashedRow } from './hash-chain.js';
import { firstPageSource, noteTables, stashTables, syncTables, taskTables } from './migrations.js';

/** `altered`: events left out because they no longer match their checksum. */
export interface Salvaged {
  readonly sessions: number;
  readonly events: number;
  readonly altered: number;
}

type Row = Readonly<Record<string, unknown>>;

/** Ids without a row that are tried after the last one found. The highest id
 * from a bad page may be any number. */
const maxGap = 50_000;
const batch = 500;
const sessionColumns = ['id', 'parent_id', 'cwd', 'title', 'provider', 'model', 'created_at', 'updated_at'];
const eventColumns = ['id', 'session_id', 'seq', 'kind', 'content', 'data_json', 'created_at'];
const noteColumns = [
  'id',
  'scope',
  'directory_id',
  'content',
  'tags',
  'trust',
  'approved',
  'pinned',
  'archived',
  'session',
  'seq',
  'created_at',
  'updated_at',
];
const blobColumns = ['sha256', 'size', 'encoding', 'bytes'];

/** Copies every session and event that can be read from `damagedFile` into
 * `target` (empty, of the present schema), with their ids. A range that cannot
 * be read at once is read row by row, so that a bad page costs only its rows.
 * Events whose session is lost get a new session; events that do not match
 * their checksum are left out. Works on a copy named `copy`, which it removes;
 * `damagedFile` stays as it is. */
export function salvage(driver: Driver, damagedFile: string, copy: string, target: Database, nowMs: number): Salvaged {
  let altered = 0;
  try {
    const source = openReadableCopy(driver, damagedFile, copy, firstPages(driver, target));
    if (!source) return { sessions: 0, events: 0, altered };
    try {
      target.transaction(() => {
        copySessions(source, target);
        copyBlobs(source, target);
        copyNotes(source, target);
        copyTables(source, target, taskTables, ['scheduled_tasks', 'task_settings', 'task_runs']);
        copyTables(source, target, stashTables, ['stashed_prompts']);
        copyTables(source, target, syncTables, ['sync_state', 'sync_redactions']);
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
  const later = ['dir_id', 'api', 'base_url', 'moves', 'kind', 'parent_call_id'];
  const columns = [...sessionColumns, ...laterColumns(source, 'sessions', later)];
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

/** Damaged contents are noticed when they are read. */
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

/** Copies notes where there are any; their index is built from them. */
function copyNotes(source: Database, target: Database): void {
  const rows = [...readableRows(source, 'notes', noteColumns)].filter(
    (row) => typeof row['content'] === 'string' && typeof row['tags'] === 'string' && isJson(row['tags']),
  );
  if (rows.length === 0) return;
  target.exec(noteTables);
  const insert = target.prepare(
    `INSERT OR IGNORE INTO notes (${noteColumns.join(', ')}) VALUES (${noteColumns.map(() => '?').join(', ')})`,
  );
  for (const row of rows) insert.run(noteColumns.map((name) => row[name]));
  target.exec("INSERT INTO notes_fts (rowid, text) SELECT id, content || ' ' || tags FROM notes");
}

type LaterTable =
  | 'scheduled_tasks'
  | 'task_settings'
  | 'task_runs'
  | 'stashed_prompts'
  | 'sync_state'
  | 'sync_redactions';

/** Copies tables that not every database has, where they hold anything. */
function copyTables(source: Database, target: Database, schema: string, tables: readonly LaterTable[]): void {
  for (const table of tables) {
    const columns = columnsOf(source, table);
    const rows = columns.length === 0 ? [] : [...readableRows(source, table, columns)];
    if (rows.length === 0) continue;
    target.exec(schema);
    const insert = target.prepare(
      `INSERT OR IGNORE INTO ${table} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`,
    );
    for (const row of rows) insert.run(columns.map((name) => row[name]));
  }
}

/** Returns the number of events that were left out because of their checksum. */
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

/** Returns the columns of `names` that `table` has: an earlier version has fewer. */
function laterColumns(source: Database, table: 'sessions' | 'events', names: readonly string[]): readonly string[] {
  const present = columnsOf(source, table);
  return names.filter((name) => present.includes(name));
}

function columnsOf(source: Database, table: string): readonly string[] {
  return (
    attempt(() => source.prepare<[], string>(`SELECT name FROM pragma_table_info('${table}')`).pluck().all()) ?? []
  );
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
    parseJson(text);
    return true;
  } catch {
    return false;
  }
}

/** Yields rows in order of their rowid: in batches while that works, then one
 * at a time. */
function* readableRows(
  source: Database,
  table: 'sessions' | 'events' | 'blobs' | 'notes' | LaterTable,
  columns: readonly string[],
): Generator<Row> {
  const select = `SELECT rowid AS row_number, ${columns.join(', ')} FROM ${table} WHERE rowid`;
  const highest = attempt(() =>
    source.prepare<[], number>(`SELECT coalesce(max(rowid), 0) FROM ${table}`).pluck().get(),
  );
  const last = yield* rowsInBatches(source, select);
  if (highest === null || last < highest) yield* rowsAlone(source, select, last, highest);
}

/** Ends at the first batch that cannot be read or is out of order. Returns the
 * last rowid before it. */
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

/** Returns null when SQLite cannot read it. */
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

/** Returns first pages that can replace a lost one: of a database that grew,
 * and of one that was compacted, whose tables start on other pages. Compacts
 * `empty`, a database of the present schema without rows, to learn which. */
function firstPages(driver: Driver, empty: Database): readonly Buffer[] {
  const grown = firstPageSource(driver);
  empty.exec('VACUUM');
  const starts = empty
    .prepare<[], { readonly name: string; readonly rootpage: number }>(
      'SELECT name, rootpage FROM sqlite_schema WHERE rootpage > 0',
    )
    .all();
  const db = new driver(grown);
  try {
    db.unsafeMode();
    db.pragma('writable_schema = ON');
    const move = db.prepare('UPDATE sqlite_schema SET rootpage = ? WHERE name = ?');
    for (const { name, rootpage } of starts) move.run(rootpage, name);
    return [grown, db.serialize()];
  } finally {
    db.close();
  }
}

const magic = 'SQLite format 3\0';
const walMode = 2;
/** Offsets in the header. Source: sqlite.org/fileformat2.html, 1.3 "The
 * Database Header". */
const at = { pageSize: 16, writeVersion: 18, changeCounter: 24, pageCount: 28, versionValidFor: 92 } as const;

/** Opens a copy of a damaged database with a first page that SQLite accepts:
 * the page count is that of the file, which may be cut, and a lost page is
 * replaced by the first of `firstPages` that fits. Returns null when nothing
 * helps. The caller closes and removes the copy. */
function openReadableCopy(
  driver: Driver,
  damagedFile: string,
  copy: string,
  firstPages: readonly Buffer[],
): Database | null {
  copyFileSync(damagedFile, copy, constants.COPYFILE_FICLONE);
  chmodSync(copy, 0o600);
  if (existsSync(`${damagedFile}-wal`)) copyFileSync(`${damagedFile}-wal`, `${copy}-wal`, constants.COPYFILE_FICLONE);
  correctHeader(copy);
  const db = openReadable(driver, copy);
  if (db) return db;
  for (const page of firstPages) {
    replaceFirstPage(copy, page);
    const replaced = openReadable(driver, copy);
    if (replaced && holdsEvents(replaced)) return replaced;
    replaced?.close();
  }
  return null;
}

/** False when another table starts on the page of the events. Without events
 * there is nothing to save. */
function holdsEvents(db: Database): boolean {
  try {
    const row = db
      .prepare<[], readonly string[]>('SELECT typeof(session_id), typeof(kind), typeof(seq) FROM events LIMIT 1')
      .raw()
      .get();
    return row?.join() === 'text,text,integer';
  } catch {
    return false;
  }
}

/** Returns null when the schema cannot be read. */
function openReadable(driver: Driver, file: string): Database | null {
  let db: Database | null = null;
  try {
    db = new driver(file);
    db.pragma('cell_size_check = ON');
    db.prepare('SELECT events.id FROM events, sessions LIMIT 0').get();
    return db;
  } catch {
    db?.close();
    return null;
  }
}

function correctHeader(file: string): void {
  onFirstBytes(file, 100, (header, fileBytes) => {
    if (header.length < 100 || header.toString('latin1', 0, magic.length) !== magic) return null;
    const stored = header.readUInt16BE(at.pageSize);
    setPageCount(header, Math.floor(fileBytes / (stored === 1 ? 65_536 : Math.max(512, stored))));
    return header;
  });
}

function replaceFirstPage(file: string, fresh: Buffer): void {
  const pageBytes = fresh.readUInt16BE(at.pageSize);
  onFirstBytes(file, pageBytes, (_page, fileBytes) => {
    const pages = Math.floor(fileBytes / pageBytes);
    if (pages < 2) return null;
    const page = Buffer.from(fresh.subarray(0, pageBytes));
    page.fill(walMode, at.writeVersion, at.writeVersion + 2);
    setPageCount(page, pages);
    return page;
  });
}

function setPageCount(header: Buffer, pages: number): void {
  header.writeUInt32BE(pages, at.pageCount);
  header.copy(header, at.versionValidFor, at.changeCounter, at.changeCounter + 4);
}

function onFirstBytes(
  file: string,
  maxBytes: number,
  change: (bytes: Buffer, fileBytes: number) => Buffer | null,
): void {
  const descriptor = openSync(file, 'r+');
  try {
    const bytes = Buffer.alloc(maxBytes);
    const read = bytes.subarray(0, readSync(descriptor, bytes, 0, maxBytes, 0));
    const changed = change(read, fstatSync(descriptor).size);
    if (changed) writeSync(descriptor, changed, 0, changed.length, 0);
  } finally {
    closeSync(descriptor);
  }
}
