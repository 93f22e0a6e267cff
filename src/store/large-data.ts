import { isRecord } from '../core/json.js';
import { wellFormedDeep } from '../core/text.js';

/** What is longer is encoded in pieces. */
const maxPieceChars = 32_768;
/** A control character is the longest: `\u001b`. */
const maxBytesPerChar = 6;

/** The bytes of `JSON.stringify(data)` for an object that holds a very long text, such as a result with its output: made piece by piece, so that there is never another
 *  copy of all of it. Lone surrogates are replaced. Null for everything else. */
export function largeDataJson(data: unknown): Buffer | null {
  if (!isRecord(data) || !Object.values(data).some(isLarge)) return null;
  const fields = Object.entries(wellFormedDeep(data)).filter(([, value]) => value !== undefined)
    .map(([key, value]) => ({ name: `${JSON.stringify(key)}:`, large: isLarge(value) ? value : '', json: isLarge(value) ? '' : JSON.stringify(value) }));
  // Only what is written to takes room.
  const bytes = Buffer.allocUnsafeSlow(fields.reduce((sum, { name, large, json }) => sum + (name.length + large.length + json.length + 4) * maxBytesPerChar, 2));
  let at = 0;
  for (const { name, large, json } of fields) {
    at += bytes.write(`${at === 0 ? '{' : ','}${name}${json}`, at);
    if (large !== '') at = writeText(bytes, at, large);
  }
  at += bytes.write('}', at);
  return bytes.subarray(0, at);
}

function isLarge(value: unknown): value is string {
  return typeof value === 'string' && value.length > maxPieceChars * 2;
}

/** Gives where the closing quote ends. */
function writeText(bytes: Buffer, start: number, text: string): number {
  let at = start + bytes.write('"', start);
  for (let from = 0; from < text.length;) {
    const end = from + maxPieceChars;
    const isSplit = end < text.length && text.charCodeAt(end - 1) >= 0xd800 && text.charCodeAt(end - 1) <= 0xdbff;
    const piece = text.slice(from, isSplit ? end - 1 : end);
    at += bytes.write(JSON.stringify(piece).slice(1, -1), at);
    from += piece.length;
  }
  return at + bytes.write('"', at);
}
