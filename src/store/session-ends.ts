import { existsSync, realpathSync } from 'node:fs';
import { readdir, rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { SessionEnd, SessionEnds } from '../core/store.js';
import { readBoundedText } from '../disk/bounded-file.js';
import { isAlive } from './lease.js';

/** The sessions written to last are remembered. */
const maxEnds = 100;
let drafts = 0;

/** The ends are stored outside the database, in `agent.db.marks` beside it: SQLite itself does not notice when its log is
 * cut or deleted, or when an older copy of the database is put back. A file that is missing or damaged has none.
 *
 * The file is renamed into place, not synced: after a power cut an older one may stand there, which says less and
 * nothing wrong. Two processes at once may lose one of their ends until the next turn. Nothing is written where it
 * cannot be. The thread is not blocked: on some file systems a rename over a file waits for the disk. */
export function sessionEnds(database: string): SessionEnds {
  return {
    list: () => readEnds(database),
    note: async (end) => {
      const others = readEnds(database).filter(({ sessionId }) => sessionId !== end.sessionId);
      await write(database, [end, ...others].slice(0, maxEnds));
    },
    forget: async (sessionId) => {
      const ends = readEnds(database);
      const rest = ends.filter((end) => end.sessionId !== sessionId);
      if (rest.length < ends.length) await write(database, rest);
    },
  };
}

function readEnds(database: string): readonly SessionEnd[] {
  try {
    const stored: unknown = JSON.parse(
      readBoundedText(endsFile(database), { maxBytes: 1_048_576, longer: 'refuse', links: 'follow' }) ?? '[]',
    );
    return Array.isArray(stored) ? stored.flatMap(endOf) : [];
  } catch {
    return [];
  }
}

async function write(database: string, ends: readonly SessionEnd[]): Promise<void> {
  const file = endsFile(database);
  const draft = `${file}.${process.pid}-${++drafts}`;
  try {
    await writeFile(draft, JSON.stringify(ends.map(({ sessionId, seq, cwd }) => [sessionId, seq, cwd])), {
      mode: 0o600,
    });
    await rename(draft, file);
    await removeAbandoned(file);
  } catch {
    await rm(draft, { force: true }).catch(() => undefined);
  }
}

/** Removes drafts of processes that were killed before they could rename them. */
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

/** Follows a link, as the store does. */
function endsFile(database: string): string {
  return `${existsSync(database) ? realpathSync(database) : database}.marks`;
}

function endOf(stored: unknown): readonly SessionEnd[] {
  if (!Array.isArray(stored)) return [];
  const [sessionId, seq, cwd] = stored as readonly unknown[];
  return typeof sessionId === 'string' && typeof seq === 'number' && typeof cwd === 'string'
    ? [{ sessionId, seq, cwd }]
    : [];
}
