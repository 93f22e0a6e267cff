import { createHash } from 'node:crypto';
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import type { Event } from '../core/event.js';
import type { Blob, Synced } from '../core/store.js';
import type { Connection } from './connection.js';
import { insertEvent } from './event-rows.js';

/** Contents up to this size are stored as they are. */
const maxPlainBytes = 1024;

interface BlobRow { readonly encoding: string; readonly bytes: Buffer }

/** One event and the contents it refers to, in one commit. Throws as `insertEvent` does. */
export function insertEventWithBlobs(connection: Connection, sessionId: string, event: Event, blobs: readonly Blob[], synced: Synced): void {
  if (blobs.length === 0) { insertEvent(connection, sessionId, event, synced); return; }
  connection.transact(() => {
    insertBlobs(connection, blobs);
    insertEvent(connection, sessionId, event, synced);
  });
}

/** Contents that are there already are not written again. */
function insertBlobs({ sql }: Connection, blobs: readonly Blob[]): void {
  for (const { sha256, bytes } of blobs) {
    if (sql('SELECT 1 FROM blobs WHERE sha256 = ?').get(sha256) !== undefined) continue;
    const packed = bytes.byteLength > maxPlainBytes ? deflateRawSync(bytes, { level: 3 }) : null;
    const small = packed !== null && packed.length < bytes.byteLength;
    sql('INSERT INTO blobs (sha256, size, encoding, bytes) VALUES (?, ?, ?, ?)').run(sha256, bytes.byteLength, small ? 'deflate' : 'raw', small ? packed : Buffer.from(bytes));
  }
}

/** Null where there are no such contents, and where the stored bytes are no longer what they were. */
export function readBlob({ sql }: Connection, sha256: string): Uint8Array | null {
  const row = sql<BlobRow>('SELECT encoding, bytes FROM blobs WHERE sha256 = ?').get(sha256);
  return row ? contentsOf(row, sha256) : null;
}

function contentsOf({ encoding, bytes }: BlobRow, sha256: string): Uint8Array | null {
  try {
    const contents = encoding === 'deflate' ? inflateRawSync(bytes) : bytes;
    return createHash('sha256').update(contents).digest('hex') === sha256 ? contents : null;
  } catch {
    return null;
  }
}
