const encoder = new TextEncoder();

/** The size of `text` in UTF-8, in bytes. A lone surrogate counts as U+FFFD (3 bytes). */
export function utf8Bytes(text: string): number {
  let bytes = text.length;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code < 0x80) continue;
    if (code < 0x800) bytes += 1;
    else if (code < 0xd800 || code > 0xdbff) bytes += 2;
    else if (isLow(text.charCodeAt(i + 1))) { bytes += 2; i++; }
    else bytes += 2;
  }
  return bytes;
}

/** `text` with every lone surrogate replaced by U+FFFD, so that it survives UTF-8 and strict JSON parsers. */
export function wellFormed(text: string): string {
  return text.isWellFormed() ? text : text.toWellFormed();
}

/** Every string inside `value` made well-formed, keys included. Returns `value` itself where nothing had to change. */
export function wellFormedDeep<T>(value: T): T {
  const text = JSON.stringify(value);
  if (text === undefined || !/\\ud[89a-f]/i.test(text)) return value;
  // JSON.stringify escapes exactly the lone surrogates; `\\\\` is matched first so that the text "\\ud800" stays what it is.
  return JSON.parse(text.replace(/\\(?:(ud[89a-f][0-9a-f]{2})|[^])/gi, (escape, surrogate: string | undefined) => (surrogate ? '\\ufffd' : escape))) as T;
}

/** The first line of `text`, cut to `max` characters with `…` where something was left out. */
export function firstLine(text: string, max: number): string {
  const end = text.search(/[\r\n]/);
  const line = end < 0 ? text : text.slice(0, end);
  const shown = line.length > max ? wellFormed(line.slice(0, max - 1)) : line;
  return shown.length < text.length ? `${shown}…` : shown;
}

/** The longest prefix of `text` that takes at most `maxBytes` of UTF-8; never splits a code point. */
export function headBytes(text: string, maxBytes: number): string {
  if (text.length * 3 <= maxBytes) return text;
  const target = new Uint8Array(Math.max(0, maxBytes));
  const { read } = encoder.encodeInto(text, target);
  return text.slice(0, read);
}

/** The longest suffix of `text` that takes at most `maxBytes` of UTF-8; never splits a code point. */
export function tailBytes(text: string, maxBytes: number): string {
  let bytes = 0;
  let start = text.length;
  while (start > 0) {
    const low = isLow(text.charCodeAt(start - 1)) && isHigh(text.charCodeAt(start - 2));
    const next = start - (low ? 2 : 1);
    bytes += utf8Bytes(text.slice(next, start));
    if (bytes > maxBytes) break;
    start = next;
  }
  return text.slice(start);
}

function isHigh(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}

function isLow(code: number): boolean {
  return code >= 0xdc00 && code <= 0xdfff;
}
