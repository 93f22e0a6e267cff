import { isRecord, parseJson } from '../core/json.js';
import { readBounded } from '../disk/bounded-file.js';

/** A JSON file that must hold an object. */
export type JsonObjectFile =
  | { readonly kind: 'object'; readonly value: Readonly<Record<string, unknown>> }
  | { readonly kind: 'missing' }
  /** `reason`: a clause, such as `it is not a JSON object`. */
  | { readonly kind: 'broken'; readonly reason: string };

const maxBytes = 4 * 1024 * 1024;

/** Reads a file of at most 4 MiB that others wrote. Throws nothing. */
export function readJsonObject(path: string): JsonObjectFile {
  const found = readBounded(path, { maxBytes, longer: 'refuse', links: 'follow' });
  if (found.kind === 'missing') return found;
  if (found.kind === 'refused') return { kind: 'broken', reason: found.reason };
  try {
    const value: unknown = parseJson(found.bytes.toString('utf8').replace(/^\uFEFF/, ''));
    return isRecord(value) ? { kind: 'object', value } : { kind: 'broken', reason: 'it is not a JSON object' };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return { kind: 'broken', reason: `it is not valid JSON: ${reason}` };
  }
}
