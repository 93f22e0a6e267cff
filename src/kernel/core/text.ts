import { parseJson } from './json.js';
const encoder = new TextEncoder();

/** The size of `text` in UTF-8, in bytes. A lone surrogate counts as U+FFFD (3 bytes). */
export function utf8Bytes(text: string): number {
  return Buffer.byteLength(text);
}

/** `text` with every lone surrogate replaced by U+FFFD, so that it survives UTF-8 and strict JSON parsers. */
export function wellFormed(text: string): string {
  return text.isWellFormed() ? text : text.toWellFormed();
}

/** Makes every string inside `value` well-formed, keys included. Returns `value` itself where nothing had to change. */
export function wellFormedDeep<T>(value: T): T {
  if (isWellFormedDeep(value)) return value;
  const text = JSON.stringify(value);
  if (text === undefined || !/\\ud[89a-f]/i.test(text)) return value;
  // JSON.stringify escapes exactly the lone surrogates; `\\\\` is matched first so that the text "\\ud800" stays what
  // it is.
  return parseJson(
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

/** Returns `text` without any of `characters` at its end. A regular expression such as `/\\n+$/` would try each run of
 * them again from each of its characters. */
export function withoutEnd(text: string, characters: string): string {
  let end = text.length;
  while (end > 0 && characters.includes(text.charAt(end - 1))) end--;
  return text.slice(0, end);
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
  const { read } = encoder.encodeInto(head, new Uint8Array(Math.max(0, maxBytes)));
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

/** With two edits a word of four letters becomes nearly any other. */
const shortWord = 4;

/** Finds the candidates that are close to `word`, nearest first, at most three of about the same distance. For a
 * short word the nearest one is at most one edit away. Case, `-`, `_` and spaces do not count. Ties keep the order of the candidates. */
export function nearest(word: string, candidates: readonly string[]): readonly string[] {
  const wanted = plain(word);
  const maxDistance = Math.max(2, Math.floor(word.length * 0.4));
  const near = candidates
    .map((candidate) => ({ candidate, distance: distanceUpTo(maxDistance, wanted, plain(candidate)) }))
    .filter(({ distance }) => distance <= maxDistance)
    .sort((one, other) => one.distance - other.distance);
  const best = near[0]?.distance ?? 0;
  if (wanted.length <= shortWord && best > 1) return [];
  return near
    .filter(({ distance }) => distance <= best + 1)
    .slice(0, 3)
    .map(({ candidate }) => candidate);
}

/** The nearest candidate, or null where none is close. */
export function nearestName(word: string, candidates: readonly string[]): string | null {
  return nearest(word, candidates)[0] ?? null;
}

/** `Did you mean a or b?`, or an empty text where nothing is close. */
export function didYouMean(word: string, candidates: readonly string[]): string {
  const names = nearest(word, candidates);
  return names.length === 0
    ? ''
    : `Did you mean ${names.slice(0, -1).join(', ')}${names.length > 1 ? ' or ' : ''}${names.at(-1) ?? ''}?`;
}

/** Infinity for texts that have nothing in common and for those farther apart than `max`. */
function distanceUpTo(max: number, from: string, to: string): number {
  if (Math.abs(from.length - to.length) > max) return Infinity;
  const distance = editDistance(from, to);
  return distance < Math.max(from.length, to.length) ? distance : Infinity;
}

/** Counts insertions, deletions, replacements and swaps of neighbours between two texts (optimal string alignment). */
export function editDistance(from: string, to: string): number {
  let beforeLast: readonly number[] = [];
  let last: readonly number[] = Array.from({ length: to.length + 1 }, (_item, index) => index);
  for (let i = 1; i <= from.length; i++) {
    const row = [i];
    for (let j = 1; j <= to.length; j++) {
      const same = from[i - 1] === to[j - 1];
      let cost = Math.min(at(last, j) + 1, at(row, j - 1) + 1, at(last, j - 1) + (same ? 0 : 1));
      if (i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1])
        cost = Math.min(cost, at(beforeLast, j - 2) + 1);
      row.push(cost);
    }
    beforeLast = last;
    last = row;
  }
  return at(last, to.length);
}

function at(row: readonly number[], index: number): number {
  return row[index] ?? Infinity;
}

function plain(text: string): string {
  return text.toLowerCase().replace(/[-_\s]/g, '');
}

/** The one list of characters that a reader does not see, for all code that shows, judges or sends text. Source: UAX
 * #44 (Default_Ignorable_Code_Point), UAX #9 (marks and controls), ECMA-48. */
type Range = readonly [number, number];

/** These characters control a terminal, reorder the text around them, or are invisible, and no script needs them: C0
 * except tab and line feed, DEL and C1, the soft hyphen, marks and controls of direction, Unicode line ends, invisible
 * operators, Hangul fillers, surrogates, the byte order mark, annotations, the object replacement, controls of
 * shorthand and music, tags and the supplementary variation selectors. Joiners and the variation selectors of emoji are
 * not among them. */
const deceptiveRanges: readonly Range[] = [
  [0x00, 0x08],
  [0x0b, 0x1f],
  [0x7f, 0x9f],
  [0xad, 0xad],
  [0x61c, 0x61c],
  [0x115f, 0x1160],
  [0x180e, 0x180e],
  [0x200b, 0x200b],
  [0x200e, 0x200f],
  [0x2028, 0x202e],
  [0x2060, 0x206f],
  [0x3164, 0x3164],
  [0xd800, 0xdfff],
  [0xfeff, 0xfeff],
  [0xffa0, 0xffa0],
  [0xfff0, 0xfffc],
  [0x1bca0, 0x1bca3],
  [0x1d173, 0x1d17a],
  [0xe0000, 0xe0fff],
];
/** A text that a person decides by may hold none of these: every character without a shape of its own, including blanks
 * that are drawn. */
const unseen = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800\ufffc]/u;
const everyUnseen = new RegExp(unseen, 'gu');

const deceptiveClass = deceptiveRanges
  .map(([from, to]) => `\\u{${from.toString(16)}}-\\u{${to.toString(16)}}`)
  .join('');
const everyDeceptive = new RegExp(`[${deceptiveClass}]`, 'gu');
const everyDeceptiveAndLayout = new RegExp(`[\\t\\n${deceptiveClass}]`, 'gu');

/** A quick test: false where `text` holds no deceptive character. May be true for a text without one. */
export function maybeDeceptive(text: string): boolean {
  return quick.test(text);
}

const fourDigits = (code: number): string => `\\u${code.toString(16).padStart(4, '0')}`;
const quick = new RegExp(
  `[${deceptiveRanges
    .filter(([, to]) => to <= 0xffff)
    .map(([from, to]) => `${fourDigits(from)}-${fourDigits(to)}`)
    .join('')}]`,
);

/** True for a character that must not reach a terminal as it is. */
export function isDeceptive(code: number): boolean {
  return deceptiveRanges.some(([from, to]) => code >= from && code <= to);
}

/** `text` with `by(code)` in the place of every deceptive character. */
export function replaceDeceptive(text: string, by: (code: number) => string): string {
  return maybeDeceptive(text) ? text.replace(everyDeceptive, (char) => by(char.codePointAt(0) ?? 0)) : text;
}

export function hasUnseen(text: string): boolean {
  return unseen.test(text);
}

export function replaceUnseen(text: string, by: (char: string) => string): string {
  return text.replace(everyUnseen, by);
}

/** Spells a character out in ASCII: `\x1b`, `\u202e`, `\u{e0041}`. */
export function escapeCode(code: number): string {
  if (code < 0x100) return `\\x${code.toString(16).padStart(2, '0')}`;
  return code < 0x10000 ? `\\u${code.toString(16).padStart(4, '0')}` : `\\u{${code.toString(16)}}`;
}

const shortEscapes: Readonly<Record<string, string>> = { '\t': '\\t', '\n': '\\n', '\r': '\\r' };

/** Writes `text` on one line, with every deceptive character spelt out. */
export function spelledLine(text: string): string {
  return text.replace(everyDeceptiveAndLayout, (char) => shortEscapes[char] ?? escapeCode(char.codePointAt(0) ?? 0));
}

/** Writes every deceptive character inside the strings of a JSON text as `\u…`: the value stays the same, and a
 * terminal obeys nothing in it. */
export function escapedJson(json: string): string {
  return replaceDeceptive(json, (code) => {
    const units = String.fromCodePoint(code);
    return Array.from({ length: units.length }, (_, index) => fourDigits(units.charCodeAt(index))).join('');
  });
}

/** The form of a name of a command: letters of any script, digits, `_` and `-`, with dots inside. The source of a regular
 * expression with the flag `u`. */
export const nameSource = String.raw`[\p{L}\p{N}][\p{L}\p{M}\p{N}_-]*(?:\.[\p{L}\p{M}\p{N}_-]+)*`;

/** Neither letters, digits, punctuation and symbols nor a plain blank. Marks are spelled out: they change or hide the
 * character before them. */
const unusual = /[^\p{L}\p{N}\p{P}\p{S} ]/gu;

/** Returns `text` on one line, with invisible characters spelled out: `\u{202e}`. */
export function spelledOut(text: string): string {
  const spelled = (character: string): string => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
  return replaceUnseen(text.replaceAll(unusual, spelled), spelled);
}
