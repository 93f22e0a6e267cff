/** From here on a text counts as long. */
const longChars = 65_536;
/** So much of a long text is encoded at once. */
const maxPieceChars = 32_768;
/** No character takes more in UTF-8, a pair of surrogates takes less. */
const maxBytesPerChar = 3;

/** The bytes of `JSON.stringify(object)` for one that holds long texts, such as a result with its output. These are
 * encoded piece by piece, so that there is never another copy of all of it. */
export function largeJson(object: Readonly<Record<string, unknown>>): Buffer {
  let bytes: Buffer = Buffer.allocUnsafeSlow(expectedBytes(object));
  let at = 0;
  const add = (text: string): void => {
    const mostBytes = text.length * maxBytesPerChar;
    if (bytes.length - at < mostBytes) bytes = longer(bytes, at, Math.max(mostBytes, at >> 1));
    at += bytes.write(text, at);
  };
  let opening = '{';
  for (const [key, value] of Object.entries(object)) {
    if (value === undefined) continue;
    add(`${opening}${JSON.stringify(key)}:`);
    opening = ',';
    if (!isLong(value)) {
      add(JSON.stringify(value));
      continue;
    }
    add('"');
    eachPiece(value, (piece) => {
      add(JSON.stringify(piece).slice(1, -1));
    });
    add('"');
  }
  add(opening === '{' ? '{}' : '}');
  return bytes.subarray(0, at);
}

export function isLong(value: unknown): value is string {
  return typeof value === 'string' && value.length > longChars;
}

/** A little more than the characters of its long texts. What is not written to takes no room. */
function expectedBytes(object: Readonly<Record<string, unknown>>): number {
  return Object.values(object).reduce<number>(
    (sum, value) => sum + (isLong(value) ? value.length * 1.125 : 0),
    longChars * maxBytesPerChar,
  );
}

function longer(bytes: Buffer, used: number, more: number): Buffer {
  const grown = Buffer.allocUnsafeSlow(used + more);
  bytes.copy(grown, 0, 0, used);
  return grown;
}

function eachPiece(text: string, take: (piece: string) => void): void {
  for (let from = 0; from < text.length;) {
    const end = from + maxPieceChars;
    const isSplit = end < text.length && isHighSurrogate(text.charCodeAt(end - 1));
    const piece = text.slice(from, isSplit ? end - 1 : end);
    take(piece);
    from += piece.length;
  }
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}
