import { close, fdatasync, openSync, statSync, writeSync } from 'node:fs';
import { maxJournalBytes, type Connection } from './connection.js';

const headerBytes = 32;
/** A page and what stands before it in the log. */
const frameBytes = 4096 + 24;
const leastRoomBytes = 64 * 1024;
const addedBytes = 256 * 1024;
const zeros = Buffer.alloc(16 * 1024);

/** Appends zeros to the write-ahead log of `file` where little room is left in it. A commit that makes the log longer
 * is synced together with the file system's own notes of that, one that writes over what is there is not, which takes
 * half the time. Recovery ends at the first frame that is none. Source: sqlite.org/walformat.html. The lock of a writer
 * is held meanwhile: nobody else writes behind what is there. Does without where that fails. */
export function keepLogRoom({ db, sql }: Connection, file: string): void {
  const path = `${file}-wal`;
  try {
    const frames = sql<{ readonly log: number }>('PRAGMA wal_checkpoint(NOOP)').get()?.log ?? -1;
    const usedBytes = headerBytes + frames * frameBytes;
    if (frames > 0 && usedBytes <= maxJournalBytes && sizeOf(path) - usedBytes < leastRoomBytes)
      db.transaction(() => {
        append(path);
      }).immediate();
  } catch {
    /* It saves time and nothing else; what is wrong shows at the next commit. */
  }
}

/** The next commit need not wait for all of it. */
function append(path: string): void {
  const log = openSync(path, 'r+');
  const done = (): void => {
    close(log, () => {
      /* Nothing depends on it. */
    });
  };
  try {
    const end = sizeOf(path);
    for (let at = 0; at < addedBytes; at += zeros.length) writeSync(log, zeros, 0, zeros.length, end + at);
    fdatasync(log, done);
  } catch (error) {
    done();
    throw error;
  }
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
