import { hash } from 'node:crypto';
import { crc32 } from 'node:zlib';

/** What the checksum and the hash of an event cover, as it is stored. A large text may be there as the bytes of its
 * UTF-8. */
export interface HashedRow {
  readonly seq: number;
  readonly kind: string;
  readonly content: string | null;
  readonly data_json: string | Uint8Array | null;
  readonly created_at: number;
}

/** SHA-256 (hex) of content and data; null where there is none. After a redaction those of what stood there before are
 * kept in their place. */
export interface EventDigests {
  readonly content: string | null;
  readonly data: string | null;
}

/** CRC-32 (zlib's) of an event: finds damage, costs next to nothing, is looked at with every read. */
export function eventChecksum(row: HashedRow): number {
  let sum = crc32(`${row.seq} ${row.kind} ${row.created_at}`);
  if (row.content !== null) sum = crc32(row.content, crc32('\nc', sum));
  return row.data_json === null ? sum : crc32(row.data_json, crc32('\nd', sum));
}

export function eventDigests(row: Pick<HashedRow, 'content' | 'data_json'>): EventDigests {
  return { content: digest(row.content), data: digest(row.data_json) };
}

/** So much of a link is stored: nobody finds another event for 16 bytes of SHA-256 either. Earlier versions stored all
 * 32. */
const linkBytes = 16;
const wholeLinkBytes = 32;

/** The event's link in its session's chain: the first 16 bytes of a SHA-256 over the link before (as it is stored; none
 * for the first) and one line for each of seq, kind, time and the two digests. It covers digests and not the texts, so
 * that a redacted text leaves the chain whole. */
export function chainLink(previous: Uint8Array | null, row: HashedRow, digests: EventDigests): Buffer {
  return wholeLink(previous, row, digests).subarray(0, linkBytes);
}

/** Whether `stored` is the link of this event, in the length of this version or of earlier ones. */
export function isChainLink(
  stored: Uint8Array,
  previous: Uint8Array | null,
  row: HashedRow,
  digests: EventDigests,
): boolean {
  if (stored.length !== linkBytes && stored.length !== wholeLinkBytes) return false;
  return wholeLink(previous, row, digests).subarray(0, stored.length).equals(stored);
}

function wholeLink(previous: Uint8Array | null, row: HashedRow, digests: EventDigests): Buffer {
  const line = Buffer.from(
    [row.seq, row.kind, row.created_at, digests.content ?? '-', digests.data ?? '-', ''].join('\n'),
  );
  return hash('sha256', previous === null ? line : Buffer.concat([previous, line]), 'buffer');
}

function digest(text: string | Uint8Array | null): string | null {
  return text === null ? null : hash('sha256', text, 'hex');
}
