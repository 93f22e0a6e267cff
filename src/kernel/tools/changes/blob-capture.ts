import type { ChangeCapture } from '../../core/file-changes.js';
import { sha256Of } from '../files/atomic-write.js';

const maxBlobBytes = 8 * 1024 * 1024;

/** Makes what keeps contents of files for undo. Contents that hold one of `secrets` are not kept. */
export function createCapture(
  secrets: readonly { readonly value: string }[],
  watch: ChangeCapture['watch'],
): ChangeCapture {
  return {
    hash: sha256Of,
    maxBlobBytes,
    holdsSecret: (bytes) =>
      secrets.some(({ value }) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).includes(value)),
    watch,
  };
}
