// What repairs a damaged database. It is loaded with the first damage.
import { existsSync, linkSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { buildDraft, draftName, isMissingLinkSupport, removeDatabase, syncFolder } from './database-file.js';
import type { Driver } from './driver.js';
import { StoreError } from './errors.js';
import { salvage, type Salvaged } from './salvage.js';

/** Most damaged files that stay beside the database. With one more the user has
 * to act. */
const maxDamagedFiles = 3;

interface Damage {
  readonly driver: Driver;
  readonly file: string;
  /** `it is empty (0 bytes)`. */
  readonly reason: string;
  readonly nowMs: number;
}

/** Replaces a damaged database by a new one with all rows that can still be
 * read. The damaged one stays as `agent.db.corrupt-<time>` beside it. Returns
 * a message for the user. The caller holds the repair lock and has closed the
 * file. Throws a StoreError `damaged` when three damaged files are there
 * already, SQLite's error when the new one cannot be written. */
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
    const read = `${count(saved.events, 'event')} of ${count(saved.sessions, 'session')} could be read`;
    return (
      `The session database was damaged (${reason}). It was moved to ${aside}; ` +
      `${read} and were saved into a new one${leftOut(saved.altered)}.`
    );
  } finally {
    removeDatabase(draft);
  }
}

/** Moves a log whose database is gone aside: SQLite would replay it into the
 * next database. Returns a message for the user. */
export function moveStrayLogAside(file: string, nowMs: number): string {
  const aside = asideName(file, nowMs);
  renameSync(`${file}-wal`, `${aside}-wal`);
  rmSync(`${file}-shm`, { force: true });
  return `The session database ${file} is gone; its remains were saved as ${aside}-wal. Started a new database.`;
}

/** Moves the log first: beside the new database SQLite would replay it. There
 * is a file of the name `file` at every moment. */
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
  const damaged = readdirSync(dirname(file)).filter((name) => name.startsWith(start) && !/-(wal|shm)$/.test(name));
  if (damaged.length < maxDamagedFiles) return;
  const names = damaged.map((name) => join(dirname(file), name)).join(', ');
  throw new StoreError(
    'damaged',
    `The session database ${file} is damaged (${reason}), and ${damaged.length} damaged ones already exist`,
    `Check ${names}, remove or move those you do not need, and start again.`,
  );
}

function asideName(file: string, nowMs: number): string {
  const time = new Date(nowMs).toISOString().replace(/[-:]/g, '').replace(/\.\d+/, '');
  let name = `${file}.corrupt-${time}`;
  for (let n = 2; existsSync(name) || statSync(`${name}-wal`, { throwIfNoEntry: false }); n++)
    name = `${file}.corrupt-${time}-${n}`;
  return name;
}

function leftOut(altered: number): string {
  if (altered === 0) return '';
  const [its, was] = altered === 1 ? ['its', 'was'] : ['their', 'were'];
  return `; ${count(altered, 'event')} did not match ${its} checksum and ${was} left out`;
}

function count(n: number, noun: string): string {
  return `${n} ${noun}${n === 1 ? '' : 's'}`;
}
