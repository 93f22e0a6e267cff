/** Returns true if two index files of git list the same entries: reading commands such as `git diff` write the times
 * that they saw into the index. A file that cannot be parsed counts as different. `hashBytes`: 20, or 32 in a
 * repository with SHA-256. Source: gitformat-index(5). */
export function sameIndexEntries(one: Buffer, other: Buffer): boolean {
  return [20, 32].some((hashBytes) => {
    const [a, b] = [entriesOf(one, hashBytes), entriesOf(other, hashBytes)];
    return a !== null && b !== null && a.length === b.length && a.every((entry, index) => entry === b[index]);
  });
}

const headerBytes = 12;
const statBytes = 40;
/** The offset of the mode in the facts of a file; git refreshes the other facts. */
const modeAt = 24;
const extended = 0x4000;

/** Returns mode, hash, flags and name of each entry; null for a file that is no index. */
function entriesOf(index: Buffer, hashBytes: number): readonly string[] | null {
  try {
    const version = index.readUInt32BE(4);
    if (index.toString('latin1', 0, 4) !== 'DIRC' || version < 2 || version > 4) return null;
    const entries: string[] = [];
    let place: Place = { at: headerBytes, name: '' };
    for (let left = index.readUInt32BE(8); left > 0; left--) {
      const { facts, at } = factsOf(index, place.at, hashBytes);
      place = version === 4 ? shortName(index, at, place.name) : paddedName(index, at, place.at);
      entries.push(`${facts} ${place.name}`);
    }
    return entries;
  } catch {
    return null; // it ends in the middle of an entry
  }
}

/** The name of an entry, and where the next one begins. */
interface Place {
  readonly at: number;
  readonly name: string;
}

function factsOf(index: Buffer, start: number, hashBytes: number): { readonly facts: string; readonly at: number } {
  const mode = index.readUInt32BE(start + modeAt);
  const hash = index.toString('hex', start + statBytes, start + statBytes + hashBytes);
  const at = start + statBytes + hashBytes;
  const flags = index.readUInt16BE(at) & 0xf000;
  const isLong = (flags & extended) !== 0;
  return { facts: `${mode} ${hash} ${flags} ${isLong ? index.readUInt16BE(at + 2) : 0}`, at: at + (isLong ? 4 : 2) };
}

function paddedName(index: Buffer, at: number, start: number): Place {
  const end = endOf(index, at);
  return { name: index.toString('latin1', at, end), at: start + Math.ceil((end + 1 - start) / 8) * 8 };
}

/** The name begins as the one before. */
function shortName(index: Buffer, from: number, before: string): Place {
  const { length, next } = cutLength(index, from);
  const end = endOf(index, next);
  if (length > before.length) throw new RangeError('a name is cut off after its start');
  return { name: before.slice(0, before.length - length) + index.toString('latin1', next, end), at: end + 1 };
}

function endOf(index: Buffer, from: number): number {
  const end = index.indexOf(0, from);
  if (end < 0) throw new RangeError('a name has no end');
  return end;
}

/** Reads how many bytes of the name before are cut off, as a number of variable width. */
function cutLength(index: Buffer, from: number): { readonly length: number; readonly next: number } {
  let at = from;
  let byte = index.readUInt8(at++);
  let length = byte & 0x7f;
  while ((byte & 0x80) !== 0) {
    byte = index.readUInt8(at++);
    length = ((length + 1) << 7) | (byte & 0x7f);
  }
  return { length, next: at };
}
