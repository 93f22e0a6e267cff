const encoder = new TextEncoder();

/** The size of `text` in UTF-8, in bytes. A lone surrogate counts as U+FFFD (3 bytes). */
export function utf8Bytes(text: string): number {
  return Buffer.byteLength(text);
}

/** `text` with every lone surrogate replaced by U+FFFD, so that it survives UTF-8 and strict JSON parsers. */
export function wellFormed(text: string): string {
  return text.isWellFormed() ? text : text.toWellFormed();
}

/** Every string inside `value` made well-formed, keys included. Returns `value` itself where nothing had to change. */
export function wellFormedDeep<T>(value: T): T {
  if (isWellFormedDeep(value)) return value;
  const text = JSON.stringify(value);
  if (text === undefined || !/\\ud[89a-f]/i.test(text)) return value;
  // JSON.stringify escapes exactly the lone surrogates; `\\\\` is matched first so that the text "\\ud800" stays what
  // it is.
  return JSON.parse(
    text.replace(/\\(?:(ud[89a-f][0-9a-f]{2})|[^])/gi, (escape, surrogate: string | undefined) =>
      surrogate ? '\\ufffd' : escape,
    ),
  ) as T;
}

function isWellFormedDeep(value: unknown): boolean {
  if (typeof value === 'string') return value.isWellFormed();
  if (typeof value !== 'object' || value === null) return true;
  return Array.isArray(value)
    ? value.every(isWellFormedDeep)
    : Object.entries(value).every(([key, item]) => key.isWellFormed() && isWellFormedDeep(item));
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
  let end = Math.min(text.length, Math.max(0, maxBytes)); // no character takes less than a byte
  if (isHigh(text.charCodeAt(end - 1)) && isLow(text.charCodeAt(end))) end--;
  const head = text.slice(0, end);
  if (utf8Bytes(head) <= maxBytes) return head;
  const { read } = encoder.encodeInto(head, new Uint8Array(maxBytes));
  return head.slice(0, read);
}

/** The longest suffix of `text` that takes at most `maxBytes` of UTF-8; never splits a code point. */
export function tailBytes(text: string, maxBytes: number): string {
  let start = Math.max(0, text.length - Math.max(0, maxBytes)); // no character takes less than a byte
  if (start > 0 && isLow(text.charCodeAt(start)) && isHigh(text.charCodeAt(start - 1))) start++;
  const tail = text.slice(start);
  const excess = utf8Bytes(tail) - Math.max(0, maxBytes);
  if (excess <= 0) return tail;
  const { read, written } = encoder.encodeInto(tail, new Uint8Array(excess));
  return tail.slice(written < excess ? read + String.fromCodePoint(tail.codePointAt(read) ?? 0).length : read);
}

function isHigh(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}

function isLow(code: number): boolean {
  return code >= 0xdc00 && code <= 0xdfff;
}
