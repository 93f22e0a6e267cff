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
import type { Database, Driver } from './driver.js';

const magic = 'SQLite format 3\0';
const walMode = 2;
/** Offsets in the header. Source: sqlite.org/fileformat2.html, 1.3 "The Database Header". */
const at = { pageSize: 16, writeVersion: 18, changeCounter: 24, pageCount: 28, versionValidFor: 92 } as const;

/** Opens a copy of a damaged database in which the first page is made to make sense, so that SQLite reads on behind it:
 * its number of pages is that of the file (which may be cut), and where it is lost the first of `firstPages` that fits
 * takes its place. Returns null where nothing helps. The caller closes and removes the copy. */
export function openMended(
  driver: Driver,
  damagedFile: string,
  copy: string,
  firstPages: readonly Buffer[],
): Database | null {
  copyFileSync(damagedFile, copy, constants.COPYFILE_FICLONE);
  chmodSync(copy, 0o600);
  if (existsSync(`${damagedFile}-wal`)) copyFileSync(`${damagedFile}-wal`, `${copy}-wal`, constants.COPYFILE_FICLONE);
  mendHeader(copy);
  const db = openReadable(driver, copy);
  if (db) return db;
  for (const page of firstPages) {
    graftFirstPage(copy, page);
    const grafted = openReadable(driver, copy);
    if (grafted && holdsEvents(grafted)) return grafted;
    grafted?.close();
  }
  return null;
}

/** False where another table starts on the page that was taken for that of the events; without events there is nothing
 * to save. */
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

/** Null where not even the schema can be read. */
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

function mendHeader(file: string): void {
  onFirstBytes(file, 100, (header, fileBytes) => {
    if (header.length < 100 || header.toString('latin1', 0, magic.length) !== magic) return null;
    const stored = header.readUInt16BE(at.pageSize);
    setPageCount(header, Math.floor(fileBytes / (stored === 1 ? 65_536 : Math.max(512, stored))));
    return header;
  });
}

function graftFirstPage(file: string, fresh: Buffer): void {
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
