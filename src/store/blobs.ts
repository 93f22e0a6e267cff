import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import type { Event } from '../core/event.js';
import type { Blob, Synced } from '../core/store.js';
import type { Connection } from './connection.js';
import { insertEvent } from './event-rows.js';

/** Larger contents are compressed. */
const maxPlainBytes = 1024;

interface BlobRow {
  readonly encoding: string;
  readonly bytes: Buffer;
}

/** Encrypts contents that hold secrets, so that they cannot be read in the file. */
export interface BlobSeal {
  /** 32 bytes. */
  key(): Uint8Array;
  holdsSecret(bytes: Uint8Array): boolean;
}

interface Contents {
  readonly blobs: readonly Blob[];
  readonly seal: BlobSeal | null;
}

/** Marks sealed contents. A nonce of 12 bytes, an authentication tag of 16 bytes and the encrypted contents follow. */
const sealMark = Buffer.from('agent-sealed-1\0');
const nonceBytes = 12;
const tagBytes = 16;

/** Stores one event and the contents it refers to in one commit. Throws as `insertEvent` does. */
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
    insertBlobs(connection, blobs, seal);
    insertEvent(connection, sessionId, event, synced);
  });
}

/** Does not write contents again that are stored already. */
function insertBlobs({ sql }: Connection, blobs: readonly Blob[], seal: BlobSeal | null): void {
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

/** Returns null when there are no such contents, or when the stored bytes have changed. */
export function readBlob({ sql }: Connection, sha256: string, seal: BlobSeal | null): Uint8Array | null {
  const row = sql<BlobRow>('SELECT encoding, bytes FROM blobs WHERE sha256 = ?').get(sha256);
  if (!row) return null;
  const contents = contentsOf(row, sha256, (bytes) => bytes);
  if (contents !== null || seal === null || !row.bytes.subarray(0, sealMark.length).equals(sealMark)) return contents;
  return contentsOf(row, sha256, (bytes) => unsealed(bytes, seal));
}

function contentsOf(
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
