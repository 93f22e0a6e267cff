/** Which characters a reader does not see: the one list for everything that shows, judges or sends text. Source: UAX
 * #44 (Default_Ignorable_Code_Point), UAX #9 (marks and controls), ECMA-48. */
type Range = readonly [number, number];

/** They steer a terminal, reorder what stands around them, or stand there unseen, and no script needs them to be read:
 * C0 but tab and line feed, DEL and C1, the soft hyphen, marks and controls of direction, Unicode line ends, invisible
 * operators, fillers of Hangul, surrogates, the byte order mark, annotations, the replacement of an object, controls of
 * shorthand and music, tags and the supplementary variation selectors. Joiners and the variation selectors of emoji are
 * none of them. */
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
/** What a person decides by may hold none of these: of all that has no shape of its own nothing passes, blanks that are
 * drawn included. */
const unseen = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800\ufffc]/u;
const everyUnseen = new RegExp(unseen, 'gu');

const deceptiveClass = deceptiveRanges
  .map(([from, to]) => `\\u{${from.toString(16)}}-\\u{${to.toString(16)}}`)
  .join('');
const everyDeceptive = new RegExp(`[${deceptiveClass}]`, 'gu');
const everyDeceptiveAndLayout = new RegExp(`[\\t\\n${deceptiveClass}]`, 'gu');

/** A quick look: true where `text` may hold a deceptive character, also one outside the first plane, and false where it
 * holds none. */
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

/** `\x1b`, `\u202e`, `\u{e0041}`: a character spelt out in ASCII. */
export function escapeCode(code: number): string {
  if (code < 0x100) return `\\x${code.toString(16).padStart(2, '0')}`;
  return code < 0x10000 ? `\\u${code.toString(16).padStart(4, '0')}` : `\\u{${code.toString(16)}}`;
}

const shortEscapes: Readonly<Record<string, string>> = { '\t': '\\t', '\n': '\\n', '\r': '\\r' };

/** `text` on one line, every deceptive character spelt out. */
export function spelledLine(text: string): string {
  return text.replace(everyDeceptiveAndLayout, (char) => shortEscapes[char] ?? escapeCode(char.codePointAt(0) ?? 0));
}

/** JSON with every deceptive character inside its strings as `\u…`: the same value, and nothing that a terminal
 * obeys. */
export function escapedJson(json: string): string {
  return replaceDeceptive(json, (code) => {
    const units = String.fromCodePoint(code);
    return Array.from({ length: units.length }, (_, index) => fourDigits(units.charCodeAt(index))).join('');
  });
}
