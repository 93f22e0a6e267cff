import { parseJson } from '../core/json.js';
import { hash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { ChainBreak, ChainReport } from '../core/store.js';
import type { Database } from './driver.js';

/** The fields of a stored event that its checksum and its hash cover. */
export interface HashedRow {
  readonly seq: number;
  readonly kind: string;
  readonly content: string | null;
  readonly data_json: string | null;
  readonly created_at: number;
}

/** Returns false for a row with a value of another type than the program writes: somebody changed the database. */
export function hasWrittenTypes({ seq, kind, content, data_json: data, created_at: createdAt }: HashedRow): boolean {
  const isWhole = Number.isSafeInteger(seq) && Number.isSafeInteger(createdAt);
  return isWhole && typeof kind === 'string' && isText(content) && isText(data);
}

function isText(value: unknown): boolean {
  return value === null || typeof value === 'string';
}

/** SHA-256 (hex) of content and data; null when there is none. A redacted event
 * keeps the digests of its old texts. */
interface EventDigests {
  readonly content: string | null;
  readonly data: string | null;
}

/** The CRC-32 (zlib's) of an event. It finds damage at almost no cost and is
 * compared at every read. */
export function eventChecksum(row: HashedRow): number {
  let sum = crc32(`${row.seq} ${row.kind} ${row.created_at}`);
  if (row.content !== null) sum = crc32(row.content, crc32('\nc', sum));
  return row.data_json === null ? sum : crc32(row.data_json, crc32('\nd', sum));
}

export function eventDigests(row: Pick<HashedRow, 'content' | 'data_json'>): EventDigests {
  return { content: digest(row.content), data: digest(row.data_json) };
}

/** Bytes of a link that are stored: 16 bytes of SHA-256 are enough against
 * forgery. Earlier versions stored all 32. */
const linkBytes = 16;
const wholeLinkBytes = 32;

/** The event's link in its session's chain: the first 16 bytes of a SHA-256
 * over the stored link before (none for the first event) and one line for each
 * of seq, kind, time and the two digests. It covers digests and not texts, so
 * a redacted text leaves the chain whole. */
export function chainLink(previous: Uint8Array | null, row: HashedRow, digests: EventDigests): Buffer {
  return Buffer.from(wholeLink(previous, row, digests), 'hex').subarray(0, linkBytes);
}

/** True when `stored` is the link of this event, in the length of this version
 * or of earlier ones. */
function isChainLink(stored: unknown, previous: Uint8Array | null, row: HashedRow, digests: EventDigests): boolean {
  if (!Buffer.isBuffer(stored)) return false;
  if (stored.length !== linkBytes && stored.length !== wholeLinkBytes) return false;
  return wholeLink(previous, row, digests).startsWith(stored.toString('hex'));
}

/** In hex, which is faster here than bytes. */
function wholeLink(previous: Uint8Array | null, row: HashedRow, digests: EventDigests): string {
  const line = `${row.seq}\n${row.kind}\n${row.created_at}\n${digests.content ?? '-'}\n${digests.data ?? '-'}\n`;
  // What is no link counts as none: the event after it starts a chain.
  const before = previous instanceof Uint8Array ? previous.length : 0;
  const bytes = Buffer.allocUnsafe(before + Buffer.byteLength(line));
  if (before > 0 && previous !== null) bytes.set(previous);
  bytes.write(line, before);
  return hash('sha256', bytes, 'hex');
}

function digest(text: string | null): string | null {
  return text === null ? null : hash('sha256', text, 'hex');
}

/** A stored event. `redacted` holds the digests of its old texts as JSON. */
export interface ChainRow extends HashedRow {
  readonly crc32: number | null;
  readonly hash: Buffer | null;
  readonly redacted: string | null;
}

const rowsAtOnce = 500;

/** Follows the chains of sessions. It shows damage and tampering. It cannot stop someone who rewrites all of it, and does
 * not notice events that are missing at the end of a session. */
export function verifyChains(db: Database, ids: readonly string[]): ChainReport {
  const next = db
    .prepare<[string, number], ChainValues>(
      `SELECT seq, kind, content, data_json, created_at, crc32, hash, redacted
       FROM events WHERE session_id = ? AND seq > ? ORDER BY seq LIMIT ${rowsAtOnce}`,
    )
    .raw();
  const rowsOf = function* (id: string): Generator<ChainRow> {
    for (let seq = -Infinity, more = true; more;) {
      const rows = next.all(id, seq);
      for (const values of rows) yield chainRowOf(values);
      seq = rows.at(-1)?.[0] ?? seq;
      more = rows.length === rowsAtOnce;
    }
  };
  // In one transaction: otherwise each statement locks the database and unlocks it.
  return db.transaction(() => verifySessions(ids, rowsOf))();
}

/** The columns of a `ChainRow`: a row of values is read faster than an object, and many rows faster than one. */
type ChainValues = readonly [
  seq: number,
  kind: string,
  content: string | null,
  data: string | null,
  createdAt: number,
  checksum: number | null,
  link: Buffer | null,
  redacted: string | null,
];

function chainRowOf([seq, kind, content, data, createdAt, checksum, link, redacted]: ChainValues): ChainRow {
  return { seq, kind, content, data_json: data, created_at: createdAt, crc32: checksum, hash: link, redacted };
}

/** Joins the reports on some sessions and on those after them. */
export function joinReports(one: ChainReport, other: ChainReport): ChainReport {
  return {
    sessions: one.sessions + other.sessions,
    events: one.events + other.events,
    redacted: one.redacted + other.redacted,
    breaks: [one.breaks, other.breaks].flat(),
    heads: [one.heads, other.heads].flat(),
  };
}

/** Follows the chain of rows from any source; `rowsOf` gives those of a session
 * in order of `seq`. */
export function verifySessions(ids: readonly string[], rowsOf: (id: string) => Iterable<ChainRow>): ChainReport {
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
    for (const row of rowsOf(id)) {
      report.events++;
      if (row.redacted !== null) report.redacted++;
      const kind = linkProblem(last, row);
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

/** Returns the problem with an event that follows `before`; null if it is as it was written. */
export function linkProblem(before: Pick<ChainRow, 'seq' | 'hash'> | null, row: ChainRow): ChainBreak['kind'] | null {
  if (row.hash === null) return 'unhashed';
  if (!hasWrittenTypes(row)) return 'content';
  if (isChainLink(row.hash, before?.hash ?? null, row, digestsOf(row))) return null;
  if (row.seq !== (before?.seq ?? 0) + 1) return 'missing';
  return row.redacted === null && row.crc32 !== eventChecksum(row) ? 'content' : 'chain';
}

/** The digests of an event; for a redacted one those of its old texts. */
export function digestsOf(row: Pick<ChainRow, 'content' | 'data_json' | 'redacted'>): EventDigests {
  if (row.redacted === null) return eventDigests(row);
  try {
    const { content = null, data = null } = parseJson(row.redacted) as Partial<EventDigests>;
    return { content, data };
  } catch {
    return { content: null, data: null };
  }
}
