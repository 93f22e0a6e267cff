import { wellFormedDeep } from '../../core/text.js';

/** Turns the parts of request bodies into bytes, keeping those that a request shares with the one before: a request of
 * a long conversation costs what is new in it. The bytes of a call are overwritten by the next one, so it serves one
 * request at a time. */
export interface BodyEncoder {
  encode(parts: readonly string[]): Uint8Array;
}

/** A surrogate that `JSON.stringify` had to escape because it stands alone. */
const loneSurrogate = /(?<!\\)(?:\\\\)*\\ud[89a-f]/;

export function createBodyEncoder(): BodyEncoder {
  let known: readonly string[] = [];
  /** Of each known part, where it ends in `bytes`. */
  const ends: number[] = [];
  let bytes = Buffer.alloc(0);
  /** The first part that may hold a lone surrogate. */
  let suspectFrom = Number.POSITIVE_INFINITY;

  const makeRoom = (size: number, kept: number): void => {
    if (size <= bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(size * 2);
    bytes.copy(larger, 0, 0, kept);
    bytes = larger;
  };

  return {
    encode(parts) {
      const same = sharedCount(known, parts);
      const start = ends[same - 1] ?? 0;
      ends.length = same;
      let end = start;
      for (let index = same; index < parts.length; index++) ends.push((end += Buffer.byteLength(parts[index] ?? '')));
      const text = parts.slice(same).join('');
      makeRoom(end, start);
      bytes.write(text, start);
      known = parts;
      if (same <= suspectFrom) suspectFrom = hasLoneSurrogate(text) ? same : Number.POSITIVE_INFINITY;
      const body = bytes.subarray(0, end);
      return suspectFrom === Number.POSITIVE_INFINITY ? body : repaired(body.toString());
    },
  };
}

/** The same for one request alone. */
export function encodeBody(parts: readonly string[]): Uint8Array {
  const text = parts.join('');
  return hasLoneSurrogate(text) ? repaired(text) : Buffer.from(text);
}

/** Strict servers reject a lone surrogate. */
function repaired(text: string): Uint8Array {
  return Buffer.from(JSON.stringify(wellFormedDeep(JSON.parse(text) as unknown)));
}

function hasLoneSurrogate(text: string): boolean {
  return text.includes('\\ud') && loneSurrogate.test(text);
}

function sharedCount(known: readonly string[], parts: readonly string[]): number {
  const most = Math.min(known.length, parts.length);
  let count = 0;
  while (count < most && known[count] === parts[count]) count++;
  return count;
}
