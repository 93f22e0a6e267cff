import { existsSync, linkSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { buildDraft, draftName, isMissingLinkSupport, removeDatabase, syncFolder } from './database-file.js';
import type { Driver } from './driver.js';
import { salvage, type Salvaged } from './salvage.js';
import { StoreError } from './store-error.js';

/** So many damaged files are kept; with one more the reader has to look. */
const maxKept = 3;

export interface Damage {
  readonly driver: Driver;
  readonly file: string;
  /** `it is empty (0 bytes)`. */
  readonly reason: string;
  readonly nowMs: number;
}

/** Puts a new database with all rows that can still be read in the place of a damaged one, which is kept as
 * `agent.db.corrupt-<time>` beside it. Returns what to tell the reader. The caller holds the repair lock and has the
 * file closed. Throws a StoreError `damaged` where three damaged files are kept already, SQLite's error where the new
 * one cannot be written. */
export function repairDatabase({ driver, file, reason, nowMs }: Damage): string {
  refuseTooMany(file, reason);
  const aside = asideName(file, nowMs);
  const draft = draftName(file);
  try {
    let saved: Salvaged = { sessions: 0, events: 0, altered: 0 };
    buildDraft(driver, draft, (db) => {
      saved = salvage(driver, file, draftName(file), db, nowMs);
    });
    exchange(file, draft, aside);
    return `The session database was damaged (${reason}). It is kept as ${aside}; ${count(saved.events, 'event')} of ${count(saved.sessions, 'session')} could be read and were saved into a new one${left(saved.altered)}.`;
  } finally {
    removeDatabase(draft);
  }
}

/** Moves a log whose database is gone out of the way: SQLite would replay it into the next one. Returns what to tell
 * the reader. */
export function moveStrayLogAside(file: string, nowMs: number): string {
  const aside = asideName(file, nowMs);
  renameSync(`${file}-wal`, `${aside}-wal`);
  rmSync(`${file}-shm`, { force: true });
  return `The session database ${file} is gone; what was left of it is kept as ${aside}-wal. A new one is started.`;
}

/** The log goes first: beside the new database it would be replayed into it. The name `file` never goes missing. */
function exchange(file: string, draft: string, aside: string): void {
  const logBytes = statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0;
  if (logBytes > 0) renameSync(`${file}-wal`, `${aside}-wal`);
  else rmSync(`${file}-wal`, { force: true });
  rmSync(`${file}-shm`, { force: true });
  try {
    linkSync(file, aside);
  } catch (error) {
    if (!isMissingLinkSupport(error)) throw error;
    renameSync(file, aside);
  }
  renameSync(draft, file);
  syncFolder(dirname(file));
}

function refuseTooMany(file: string, reason: string): void {
  const start = `${basename(file)}.corrupt-`;
  const kept = readdirSync(dirname(file)).filter((name) => name.startsWith(start) && !/-(wal|shm)$/.test(name));
  if (kept.length < maxKept) return;
  const names = kept.map((name) => join(dirname(file), name)).join(', ');
  throw new StoreError(
    'damaged',
    `The session database ${file} is damaged (${reason}), and ${kept.length} damaged ones are kept already`,
    `Look at ${names}; remove or move those you do not need, and start again.`,
  );
}

function asideName(file: string, nowMs: number): string {
  const time = new Date(nowMs).toISOString().replace(/[-:]/g, '').replace(/\.\d+/, '');
  let name = `${file}.corrupt-${time}`;
  for (let n = 2; existsSync(name) || statSync(`${name}-wal`, { throwIfNoEntry: false }); n++)
    name = `${file}.corrupt-${time}-${n}`;
  return name;
}

function left(altered: number): string {
  return altered === 0
    ? ''
    : `; ${count(altered, 'event')} did not match ${altered === 1 ? 'its' : 'their'} checksum and ${altered === 1 ? 'was' : 'were'} left out`;
}

function count(n: number, noun: string): string {
  return `${n} ${noun}${n === 1 ? '' : 's'}`;
}
