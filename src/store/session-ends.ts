import { existsSync, realpathSync } from 'node:fs';
import { readdir, rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { readBoundedText } from '../disk/bounded-file.js';
import { isAlive } from './lease.js';

/** How far a session was known to be on disk. `cwd` is absolute. */
export interface Mark {
  readonly sessionId: string;
  readonly seq: number;
  readonly cwd: string;
}

/** So many sessions are remembered, those written to last. */
const maxMarks = 100;
let drafts = 0;

/** Marks are kept outside the database, in `agent.db.marks` beside it: SQLite itself does not notice when its log is
 * cut or deleted, or when an older copy of the database is put back. A file that is missing or damaged has none. Newest
 * first. */
export function readMarks(database: string): readonly Mark[] {
  try {
    const stored: unknown = JSON.parse(
      readBoundedText(marksFile(database), { maxBytes: 1_048_576, longer: 'refuse', links: 'follow' }) ?? '[]',
    );
    return Array.isArray(stored) ? stored.flatMap(markOf) : [];
  } catch {
    return [];
  }
}

/** Replaces the mark of that session. The file is renamed into place, not synced: after a power cut an older one may
 * stand there, which says less and nothing wrong. Two processes at once may lose one of their marks until the next
 * turn. Does nothing where it cannot be written; never rejects. The thread is not blocked: on some file systems a
 * rename over a file waits for the disk. */
export async function setMark(database: string, mark: Mark): Promise<void> {
  await write(
    database,
    [mark, ...readMarks(database).filter(({ sessionId }) => sessionId !== mark.sessionId)].slice(0, maxMarks),
  );
}

/** Forgets a session, as one that was deleted on purpose. Never rejects. */
export async function dropMark(database: string, sessionId: string): Promise<void> {
  const marks = readMarks(database);
  const rest = marks.filter((mark) => mark.sessionId !== sessionId);
  if (rest.length < marks.length) await write(database, rest);
}

async function write(database: string, marks: readonly Mark[]): Promise<void> {
  const file = marksFile(database);
  const draft = `${file}.${process.pid}-${++drafts}`;
  try {
    await writeFile(draft, JSON.stringify(marks.map(({ sessionId, seq, cwd }) => [sessionId, seq, cwd])), {
      mode: 0o600,
    });
    await rename(draft, file);
    await removeAbandoned(file);
  } catch {
    await rm(draft, { force: true }).catch(() => undefined);
  }
}

/** Drafts of processes that were killed before they could put them in place. */
async function removeAbandoned(file: string): Promise<void> {
  const start = `${basename(file)}.`;
  for (const name of await readdir(dirname(file))) {
    const pid = name.startsWith(start)
      ? Number(/^\d+(?=-\d+$)/.exec(name.slice(start.length))?.[0] ?? Number.NaN)
      : Number.NaN;
    if (!Number.isNaN(pid) && pid !== process.pid && !isAlive(pid))
      await rm(join(dirname(file), name), { force: true });
  }
}

/** A link is followed, as the store does. */
function marksFile(database: string): string {
  return `${existsSync(database) ? realpathSync(database) : database}.marks`;
}

function markOf(stored: unknown): readonly Mark[] {
  if (!Array.isArray(stored)) return [];
  const [sessionId, seq, cwd] = stored as readonly unknown[];
  return typeof sessionId === 'string' && typeof seq === 'number' && typeof cwd === 'string'
    ? [{ sessionId, seq, cwd }]
    : [];
}
