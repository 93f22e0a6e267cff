import stringWidth from 'string-width';
import { withoutSgr } from './attributes.js';

/** Created for the first text that needs it, because that takes 10 ms. */
let segmenter: Intl.Segmenter | undefined;

/** Code units from..to whose width every terminal agrees on: Latin, Greek, Cyrillic, punctuation, boxes and our own
 * signs; kana, Han, Hangul. */
const narrow: readonly (readonly [number, number])[] = [
  [0x20, 0x7e],
  [0xa1, 0xac],
  [0xae, 0x2ff],
  [0x370, 0x482],
  [0x2010, 0x2027],
  [0x2190, 0x2193],
  [0x21aa, 0x21aa],
  [0x21bb, 0x21bb],
  [0x2500, 0x259f],
  [0x2714, 0x2714],
  [0x2718, 0x2718],
  [0x276f, 0x276f],
];
const wide: readonly (readonly [number, number])[] = [
  [0x3041, 0x3096],
  [0x30a1, 0x30fa],
  [0x4e00, 0x9fff],
  [0xac00, 0xd7a3],
];

/** Columns of one code unit where every terminal agrees on them; -1 where clusters, emoji or tables may differ. */
export function certainWidth(code: number): 1 | 2 | -1 {
  if (code >= 0x20 && code < 0x7f) return 1;
  if (narrow.some(([from, to]) => code >= from && code <= to)) return 1;
  return wide.some(([from, to]) => code >= from && code <= to) ? 2 : -1;
}

/** True where the width of every character of `text` is the same on every terminal. */
export function isCertain(text: string): boolean {
  for (let i = 0; i < text.length; i++) if (certainWidth(text.charCodeAt(i)) < 0) return false;
  return true;
}

/** Columns that `text` takes; SGR sequences count nothing. No tabs, no line breaks. */
export function textWidth(text: string): number {
  let width = 0;
  for (let i = 0; i < text.length; i++) {
    const columns = certainWidth(text.charCodeAt(i));
    const next = i + 1 < text.length ? text.charCodeAt(i + 1) : 0x20;
    if (columns < 0 || (certainWidth(next) < 0 && next !== 0x1b)) return stringWidth(text);
    width += columns;
  }
  return width;
}

/** Yields the grapheme clusters of `text` with their columns. The segmenter is slow, so it is used only where clusters
 * are not obvious. */
export function* clusters(text: string): Generator<{ readonly text: string; readonly width: number }> {
  for (let at = 0; at < text.length;) {
    const width = certainWidth(text.charCodeAt(at));
    if (width > 0 && (at + 1 === text.length || certainWidth(text.charCodeAt(at + 1)) > 0)) {
      yield { text: text[at] ?? '', width };
      at++;
      continue;
    }
    const end = uncertainEnd(text, at);
    for (const { segment } of (segmenter ??= new Intl.Segmenter()).segment(text.slice(at, end))) {
      const certain = segment.length === 1 ? certainWidth(segment.charCodeAt(0)) : -1;
      yield { text: segment, width: certain > 0 ? certain : stringWidth(segment) };
    }
    at = end;
  }
}

/** Returns the index, after `from`, of the first character that cannot join those before it. */
function uncertainEnd(text: string, from: number): number {
  for (let at = from + 1; at < text.length; at++) {
    if (certainWidth(text.charCodeAt(at)) > 0 && (at + 1 === text.length || certainWidth(text.charCodeAt(at + 1)) > 0))
      return at;
  }
  return text.length;
}

/** The most columns that any terminal gives `text`: one that knows no joined emoji shows each part of it by itself. */
export function widestWidth(text: string): number {
  if (!text.includes('\u200d')) return textWidth(text);
  return [...withoutSgr(text)].reduce((sum, char) => sum + stringWidth(char), 0);
}

/** Splits joined emoji into their parts. Terminals differ in the width of the whole, and a row that is wider than
 * expected leaves its end behind. Joiners between letters stay. */
export function unjoined(text: string): string {
  return text.includes('\u200d')
    ? text.replace(/(?<=[\p{Extended_Pictographic}\p{Emoji_Modifier}\ufe0f])\u200d(?=\p{Extended_Pictographic})/gu, '')
    : text;
}

/** `text` cut to `columns`, with `mark` at its end where something was left out. No SGR inside. */
export function fitWidth(text: string, columns: number, mark = '…'): string {
  if (textWidth(text) <= columns) return text;
  const room = columns - textWidth(mark);
  let width = 0;
  let kept = '';
  for (const cluster of clusters(text)) {
    if (width + cluster.width > room) break;
    width += cluster.width;
    kept += cluster.text;
  }
  return columns < 1 ? '' : kept + mark;
}

/** Tabs as spaces up to the next multiple of eight columns. */
export function expandTabs(line: string, stop = 8): string {
  if (!line.includes('\t')) return line;
  let out = '';
  let column = 0;
  for (const part of line.split(/(\t)/)) {
    const text = part === '\t' ? ' '.repeat(stop - (column % stop)) : part;
    out += text;
    column += textWidth(text);
  }
  return out;
}
