import { parseJson } from '../core/json.js';
import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';
import { setImmediate as turn, setTimeout as wait } from 'node:timers/promises';
import { promisify } from 'node:util';
import { deflateRawSync, inflateRaw, inflateRawSync } from 'node:zlib';
import type { Event } from '../core/event.js';
import { isRecord } from '../core/json.js';
import type { Blob, Synced, BlobSeal } from '../core/store.js';
import { wellFormed, wellFormedDeep } from '../core/text.js';
import type { Connection } from './connection.js';
import { sqliteCode, StoreError } from './errors.js';
import { chainLink, eventChecksum, eventDigests, hasWrittenTypes, type HashedRow } from './hash-chain.js';

/** Larger contents are compressed. */
const maxPlainBytes = 1024;

interface BlobRow {
  readonly size: number;
  readonly encoding: string;
  readonly bytes: Buffer;
}

export interface Contents {
  readonly blobs: readonly Blob[];
  readonly seal: BlobSeal | null;
}

/** Marks sealed contents. A nonce of 12 bytes, an authentication tag of 16
 * bytes and the encrypted contents follow. */
const sealMark = Buffer.from('agent-sealed-1\0');
const nonceBytes = 12;
const tagBytes = 16;

/** Stores one event and the contents it refers to in one commit. Throws as
 * `insertEvent` does. */
export function insertEventWithBlobs(
  connection: Connection,
  sessionId: string,
  event: Event,
  { blobs, seal }: Contents,
  synced: Synced,
): void {
  if (blobs.length === 0) {
    insertEvent(connection, sessionId, event, synced);
    return;
  }
  connection.transact(() => {
    insertBlobs(connection, { blobs, seal });
    insertEvent(connection, sessionId, event, synced);
  });
}

/** Does not write contents again that are stored already. */
export function insertBlobs({ sql }: Connection, { blobs, seal }: Contents): void {
  for (const { sha256, bytes } of blobs) {
    if (sql('SELECT 1 FROM blobs WHERE sha256 = ?').get(sha256) !== undefined) continue;
    if (seal?.holdsSecret(bytes)) {
      sql('INSERT INTO blobs (sha256, size, encoding, bytes) VALUES (?, ?, ?, ?)').run(
        sha256,
        bytes.byteLength,
        'raw',
        sealed(bytes, seal),
      );
      continue;
    }
    const packed = bytes.byteLength > maxPlainBytes ? deflateRawSync(bytes, { level: 3 }) : null;
    const small = packed !== null && packed.length < bytes.byteLength;
    sql('INSERT INTO blobs (sha256, size, encoding, bytes) VALUES (?, ?, ?, ?)').run(
      sha256,
      bytes.byteLength,
      small ? 'deflate' : 'raw',
      small ? packed : Buffer.from(bytes),
    );
  }
}

function sealed(bytes: Uint8Array, seal: BlobSeal): Buffer {
  const nonce = randomBytes(nonceBytes);
  const cipher = createCipheriv('aes-256-gcm', seal.key(), nonce);
  const hidden = Buffer.concat([cipher.update(deflateRawSync(bytes, { level: 3 })), cipher.final()]);
  return Buffer.concat([sealMark, nonce, cipher.getAuthTag(), hidden]);
}

/** Throws when the contents were sealed with another key or have changed since. */
function unsealed(bytes: Buffer, seal: BlobSeal): Buffer {
  const at = sealMark.length + nonceBytes;
  const decipher = createDecipheriv('aes-256-gcm', seal.key(), bytes.subarray(sealMark.length, at));
  decipher.setAuthTag(bytes.subarray(at, at + tagBytes));
  return inflateRawSync(Buffer.concat([decipher.update(bytes.subarray(at + tagBytes)), decipher.final()]));
}

/** Returns null when there are no such contents, or when the stored bytes have
 * changed. */
export function readBlob(connection: Connection, sha256: string, seal: BlobSeal | null): Uint8Array | null {
  const row = readBlobRow(connection, sha256);
  return row === null ? null : contentsOf(row, sha256, seal);
}

export function readBlobRow({ sql }: Connection, sha256: string): BlobRow | null {
  return sql<BlobRow>('SELECT size, encoding, bytes FROM blobs WHERE sha256 = ?').get(sha256) ?? null;
}

/** Smaller contents are unpacked faster than another thread is asked. */
const leastBytesElsewhere = 64 * 1024;
const mostBytesElsewhere = 16 * 1024 * 1024;
const inflateElsewhere = promisify(inflateRaw);

/** Returns the contents of a row as `readBlob` does. Large ones are unpacked in other threads, several at a time. */
export async function openBlob(row: BlobRow, sha256: string, seal: BlobSeal | null): Promise<Uint8Array | null> {
  const { encoding, size, bytes } = row;
  if (encoding !== 'deflate' || size < leastBytesElsewhere || size > mostBytesElsewhere)
    return contentsOf(row, sha256, seal);
  try {
    // Room for all of it, and a byte more: a piece that is full would be followed by an empty one.
    const contents = await inflateElsewhere(bytes, { chunkSize: size + 1 });
    return createHash('sha256').update(contents).digest('hex') === sha256 ? contents : null;
  } catch {
    return null;
  }
}

function contentsOf(row: BlobRow, sha256: string, seal: BlobSeal | null): Uint8Array | null {
  const contents = contentsBy(row, sha256, (bytes) => bytes);
  if (contents !== null || seal === null || !row.bytes.subarray(0, sealMark.length).equals(sealMark)) return contents;
  return contentsBy(row, sha256, (bytes) => unsealed(bytes, seal));
}

function contentsBy(
  { encoding, bytes }: BlobRow,
  sha256: string,
  opened: (bytes: Buffer) => Buffer,
): Uint8Array | null {
  try {
    const contents = encoding === 'deflate' ? inflateRawSync(bytes) : opened(bytes);
    return createHash('sha256').update(contents).digest('hex') === sha256 ? contents : null;
  } catch {
    return null;
  }
}

/** Stores one event in one commit; a synced one also updates the session's
 * time. An equal event that is stored already counts as stored: a commit may
 * succeed and its answer be lost. Throws a StoreError `seq_taken` when another
 * event has this `seq`, `no_session` when the session has no row. */
export function insertEvent(
  { sql, transact, chainEnd }: Connection,
  sessionId: string,
  event: Event,
  synced: Synced,
): void {
  const row = rowOfEvent(event);
  const digests = eventDigests(row);
  const isNext = chainEnd.sessionId === sessionId && chainEnd.seq === row.seq - 1;
  let link: Buffer | null = null;
  const insert = (): void => {
    const before = isNext
      ? chainEnd.link
      : (sql<{ readonly hash: Buffer | null }>(
          'SELECT hash FROM events WHERE session_id = ? AND seq < ? ORDER BY seq DESC LIMIT 1',
        ).get(sessionId, row.seq)?.hash ?? null);
    link = chainLink(before, row, digests);
    sql(
      `INSERT INTO events (session_id, seq, kind, content, data_json, created_at, crc32, hash)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
    ).run(sessionId, row.seq, row.kind, row.content, row.data_json, row.created_at, eventChecksum(row), link);
    if (synced === 'now') sql('UPDATE sessions SET updated_at = ? WHERE id = ?').run(row.created_at, sessionId);
  };
  try {
    // A statement alone is a transaction of its own.
    if (isNext && synced === 'later') insert();
    else transact(insert);
    Object.assign(chainEnd, { sessionId, seq: row.seq, link });
  } catch (error) {
    const code = sqliteCode(error);
    if (code === 'SQLITE_CONSTRAINT_FOREIGNKEY') throw noSession(sessionId, error);
    if (code !== 'SQLITE_CONSTRAINT_UNIQUE') throw error;
    if (!isStored({ sql }, sessionId, row)) throw seqTaken(sessionId, row.seq, error);
  }
}

/** Turns `data` into JSON text without lone surrogates, or null. */
export function dataJson(data: unknown): string | null {
  if (data === null || data === undefined) return null;
  return JSON.stringify(wellFormedDeep(data));
}

export function seqTaken(sessionId: string, seq: number, cause?: unknown): StoreError {
  return new StoreError(
    'seq_taken',
    `Another process has written event ${seq} of session ${sessionId}`,
    'Resume with --fork to continue from here in a new session.',
    cause,
  );
}

export function noSession(sessionId: string, cause?: unknown): StoreError {
  return new StoreError('no_session', `There is no session ${sessionId}`, 'Run: agent sessions list', cause);
}

/** Turns an event into its row. */
export function rowOfEvent(event: Event): HashedRow {
  return {
    seq: event.seq,
    kind: wellFormed(event.kind),
    content: event.content === null ? null : wellFormed(event.content),
    data_json: dataJson(event.kind === 'usage' ? packedUsage(event.seq, event.data) : event.data),
    created_at: event.createdAt,
  };
}

function isStored({ sql }: Pick<Connection, 'sql'>, sessionId: string, row: HashedRow): boolean {
  const same = sql(
    `SELECT 1 FROM events WHERE session_id = ? AND seq = ? AND kind = ? AND content IS ?
       AND data_json IS ? AND created_at = ?`,
  ).get(sessionId, row.seq, row.kind, row.content, row.data_json, row.created_at);
  return same !== undefined;
}

export interface EventRow {
  readonly seq: number;
  readonly kind: string;
  readonly content: string | null;
  readonly data_json: string | null;
  readonly created_at: number;
  readonly crc32: number | null;
  readonly redacted: string | null;
}
interface Page {
  readonly text: string | null;
  readonly last: number | null;
  readonly bytes: number;
}

interface ReadEvents {
  readonly events: readonly Event[];
  /** The `seq` of each event that has changed since it was written. */
  readonly altered: readonly number[];
  /** The last event whose checksum was compared; null when all were. */
  readonly checkedTo: number | null;
}

/** Events whose checksum is compared while they are read. `checkRest` compares
 * those of a longer session later. */
const checkedAtOnce = 4000;
/** The session is on the screen by then. */
const checkedAfterMs = 1000;
const pageRows = 500;
/** A larger page is read row by row. */
const maxPageBytes = 16 * 1024 * 1024;
const selectRows = `SELECT seq, kind, content, data_json, created_at, crc32, redacted
  FROM events WHERE session_id = ? AND seq > ? ORDER BY seq LIMIT ?`;

/** Returns all events of a session in order of `seq`. Throws a StoreError
 * `damaged` for data that is not JSON. */
export function readEvents(connection: Connection, sessionId: string): ReadEvents {
  const rows = connection.sql<EventRow>(selectRows).all(sessionId, Number.MIN_SAFE_INTEGER, checkedAtOnce);
  const events = rows.map(eventOfRow);
  const altered = rows.filter(isAltered).map((row) => row.seq);
  if (rows.length < checkedAtOnce) return { events, altered, checkedTo: null };
  const checkedTo = events.at(-1)?.seq ?? 0;
  for (
    let last = checkedTo, page = readPage(connection, sessionId, last);
    page.length > 0;
    page = readPage(connection, sessionId, last)
  ) {
    for (const event of page) events.push(event);
    last = page.at(-1)?.seq ?? Number.MAX_SAFE_INTEGER;
  }
  return { events, altered, checkedTo };
}

/** Returns the last `count` events of a session in order of `seq`. Throws as
 * `readEvents` does. */
export function readTail({ sql }: Connection, sessionId: string, count: number): readonly Event[] {
  const newestFirst = sql<EventRow>(
    `SELECT seq, kind, content, data_json, created_at, crc32, redacted
     FROM events WHERE session_id = ? ORDER BY seq DESC LIMIT ?`,
  ).all(sessionId, rowLimit(count));
  return newestFirst.toReversed().map(eventOfRow);
}

/** Returns the first `count` events after the event `seq`. */
export function readPageAfter({ sql }: Connection, sessionId: string, seq: number, count: number): readonly Event[] {
  return sql<EventRow>(selectRows).all(sessionId, seq, rowLimit(count)).map(eventOfRow);
}

/** SQLite takes no fraction and no infinity as a LIMIT. */
export function rowLimit(limit: number): number {
  return Math.max(0, Math.min(Math.floor(limit), 0x7fffffff));
}

/** Compares the checksums of the events after `from` in small slices, so that
 * it never blocks the thread for long. Ends early when `connection()` returns
 * null. Returns the `seq` of each event that has changed. */
export async function checkRest(
  connection: () => Connection | null,
  sessionId: string,
  from: number,
): Promise<readonly number[]> {
  const altered: number[] = [];
  await wait(checkedAfterMs, undefined, { ref: false });
  for (let last = from; ;) {
    await turn();
    const rows = connection()?.sql<EventRow>(selectRows).all(sessionId, last, pageRows) ?? [];
    for (const row of rows) if (isAltered(row)) altered.push(row.seq);
    if (rows.length < pageRows) return altered;
    last = rows.at(-1)?.seq ?? last;
  }
}

/** Reads many rows as one JSON text, which costs half: SQLite writes it and V8
 * parses it at once. */
function readPage({ sql }: Connection, sessionId: string, after: number): readonly Event[] {
  const rows = () => sql<EventRow>(selectRows).all(sessionId, after, pageRows).map(eventOfRow);
  const { bytes } =
    sql<Page>(`SELECT coalesce(sum(octet_length(data_json)), 0) + coalesce(sum(octet_length(content)), 0) AS bytes
    FROM (SELECT data_json, content FROM events WHERE session_id = ? AND seq > ? ORDER BY seq LIMIT ${pageRows})`).get(
      sessionId,
      after,
    ) ?? { bytes: 0 };
  if (bytes > maxPageBytes) return rows();
  try {
    const page = sql<Page>(`SELECT group_concat('{"seq":' || seq || ',"kind":' || json_quote(kind) || ',"content":'
        || json_quote(content)
        || ',"data":' || coalesce(data_json, 'null') || ',"createdAt":' || created_at || '}', ',') AS text
      FROM (SELECT seq, kind, content, data_json, created_at FROM events WHERE session_id = ? AND seq > ? ORDER BY seq
          LIMIT ${pageRows})`).get(sessionId, after);
    return (parseJson(`[${page?.text ?? ''}]`) as readonly Event[]).map(whole);
  } catch {
    return rows();
  }
}

/** Throws a StoreError `damaged` for data that is not JSON. */
export function eventOfRow(row: EventRow): Event {
  return whole({
    seq: row.seq,
    kind: textOrNull(row.kind) ?? '',
    content: textOrNull(row.content),
    data: parseData(textOrNull(row.data_json)),
    createdAt: Number.isFinite(row.created_at) ? Math.trunc(row.created_at) : 0,
  });
}

/** Returns a stored value as text, also where a change from outside has given it another type. */
function textOrNull(value: string | number | Uint8Array | null): string | null {
  if (value === null || typeof value === 'string') return value;
  return value instanceof Uint8Array ? Buffer.from(value).toString() : String(value);
}

function whole(event: Event): Event {
  return event.kind === 'usage' ? { ...event, data: fullUsage(event.seq, event.data) } : event;
}

/** A redacted event has no checksum of its own; an event from before there were
 * checksums has none either. */
export function isAltered(row: EventRow): boolean {
  if (!hasWrittenTypes(row)) return true;
  return row.crc32 !== null && row.redacted === null && row.crc32 !== eventChecksum(row);
}

function parseData(text: string | null): unknown {
  if (text === null) return null;
  try {
    return parseJson(text);
  } catch (error) {
    throw new StoreError(
      'damaged',
      'An event contains data that is not JSON',
      'Start the program again: it moves the file aside and saves what can be read.',
      error,
    );
  }
}

/** The message about altered events, for the user. */
export function alteredNotice(sessionId: string, altered: readonly number[]): string {
  const shown = altered.slice(0, 5).join(', ') + (altered.length > 5 ? ', …' : '');
  const subject = `${altered.length === 1 ? 'Event' : 'Events'} ${shown} of session ${sessionId}`;
  const verb = altered.length === 1 ? 'is' : 'are';
  return `${subject} ${verb} not as written: the checksum does not match. Run: agent audit verify`;
}

/** The counts that a stored `usage` event, the most frequent row of all, leaves
 * out when they are 0. */
const counts = ['input_tokens', 'output_tokens', 'cache_read_tokens', 'cache_write_tokens'] as const;

/** Packs the data of the `usage` event `seq`: without counts that are 0, an
 * unknown cost, and a response that is named after this very event. Data of
 * another shape stays as it is. */
function packedUsage(seq: number, data: unknown): unknown {
  if (
    !isUsage(data) ||
    !counts.every((name) => typeof data[name] === 'number') ||
    typeof data.response_id !== 'string' ||
    data.cost_usd === undefined
  )
    return data;
  const packed: Record<string, unknown> = {};
  for (const name of Object.keys(data)) {
    const value = data[name];
    const isSilent =
      value === 0
        ? isCount(name)
        : value === null
          ? name === 'cost_usd'
          : name === 'response_id' && value === ownResponse(seq);
    if (!isSilent) packed[name] = value;
  }
  return packed;
}

/** Restores what `packedUsage` left out. */
function fullUsage(seq: number, data: unknown): unknown {
  if (!isUsage(data)) return data;
  const {
    response_id = ownResponse(seq),
    provider,
    model,
    input_tokens = 0,
    output_tokens = 0,
    cache_read_tokens = 0,
    cache_write_tokens = 0,
    cost_usd = null,
    ...rest
  } = data;
  return {
    response_id,
    provider,
    model,
    input_tokens,
    output_tokens,
    cache_read_tokens,
    cache_write_tokens,
    cost_usd,
    ...rest,
  };
}

function isUsage(data: unknown): data is Readonly<Record<string, unknown>> {
  return isRecord(data) && typeof data.provider === 'string' && typeof data.model === 'string';
}

function isCount(name: string): boolean {
  return (counts as readonly string[]).includes(name);
}

function ownResponse(seq: number): string {
  return `r${seq}`;
}
