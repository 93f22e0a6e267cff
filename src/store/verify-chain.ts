import type { Database } from './driver.js';
import { eventChecksum, eventDigests, type EventDigests, type HashedRow, isChainLink } from './event-hash.js';

/** The first place in a session where the record is not what was written. */
export interface ChainBreak {
  readonly sessionId: string;
  readonly seq: number;
  /** `content`: the event itself was changed. `chain`: it is whole, but not what followed the event before it.
   * `missing`: events between it and the one before are gone. `unhashed`: it was not written by this program. */
  readonly kind: 'content' | 'chain' | 'missing' | 'unhashed';
  /** Unix milliseconds, as the event says. */
  readonly createdAt: number;
}

export interface ChainReport {
  readonly sessions: number;
  readonly events: number;
  readonly redacted: number;
  /** At most one of each session, in order of session ids. */
  readonly breaks: readonly ChainBreak[];
  /** The last link of each session (hex): whoever keeps it elsewhere can tell later that nothing before it has
   * changed. */
  readonly heads: readonly { readonly sessionId: string; readonly seq: number; readonly hash: string }[];
}

interface ChainRow extends HashedRow {
  readonly crc32: number | null;
  readonly hash: Buffer | null;
  readonly redacted: string | null;
}

/** Follows the chain of one session, or of all. It shows damage and tampering; it cannot stop one who rewrites all of
 * it, and events that are missing at the end of a session leave no trace in it. */
export function verifyChain(db: Database, sessionId: string | null): ChainReport {
  const ids =
    sessionId === null ? db.prepare<[], string>('SELECT id FROM sessions ORDER BY id').pluck().all() : [sessionId];
  const select = db.prepare<[string], ChainRow>(
    'SELECT seq, kind, content, data_json, created_at, crc32, hash, redacted FROM events WHERE session_id = ? ORDER BY seq',
  );
  const report = {
    sessions: 0,
    events: 0,
    redacted: 0,
    breaks: [] as ChainBreak[],
    heads: [] as ChainReport['heads'][number][],
  };
  for (const id of ids) {
    report.sessions++;
    let last: ChainRow | null = null;
    for (const row of select.iterate(id)) {
      report.events++;
      if (row.redacted !== null) report.redacted++;
      const kind = problem(last, row);
      if (kind !== null) {
        report.breaks.push({ sessionId: id, seq: row.seq, kind, createdAt: row.created_at });
        last = null;
        break;
      }
      last = row;
    }
    if (last?.hash) report.heads.push({ sessionId: id, seq: last.seq, hash: last.hash.toString('hex') });
  }
  return report;
}

function problem(before: ChainRow | null, row: ChainRow): ChainBreak['kind'] | null {
  if (row.hash === null) return 'unhashed';
  if (isChainLink(row.hash, before?.hash ?? null, row, digestsOf(row))) return null;
  if (row.seq !== (before?.seq ?? 0) + 1) return 'missing';
  return row.redacted === null && row.crc32 !== eventChecksum(row) ? 'content' : 'chain';
}

/** Of a redacted event those that were kept in place of its texts. */
function digestsOf(row: ChainRow): EventDigests {
  if (row.redacted === null) return eventDigests(row);
  try {
    const { content = null, data = null } = JSON.parse(row.redacted) as Partial<EventDigests>;
    return { content, data };
  } catch {
    return { content: null, data: null };
  }
}
