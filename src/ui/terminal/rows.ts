import stringWidth from 'string-width';
import { eraseRight } from '../../kernel/console/theme.js';

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

/** For each code unit its columns where every terminal agrees on them; -1 where clusters, emoji or tables may differ. */
const certainWidths = new Int8Array(0x1_00_00).fill(-1);
for (const [from, to] of narrow) certainWidths.fill(1, from, to + 1);
for (const [from, to] of wide) certainWidths.fill(2, from, to + 1);

function certainWidth(code: number): number {
  return certainWidths[code] ?? -1;
}

/** True where the width of every character of `text` is the same on every terminal. */
function isCertain(text: string): boolean {
  for (let i = 0; i < text.length; i++) if (certainWidth(text.charCodeAt(i)) < 0) return false;
  return true;
}

/** Columns that `text` takes; SGR sequences count nothing. No tabs, no line breaks. */
export function textWidth(text: string): number {
  let width = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    const end = code === escape ? sgrEnd(text, at) : at;
    const columns = code === escape ? 0 : certainWidth(code);
    if (columns < 0 || end < 0) return uncertainWidth(text);
    width += columns;
    at = end;
  }
  return width;
}

const escape = 0x1b;

/** Returns the place of the last character of the SGR sequence that begins at `at`; -1 where there is none. */
function sgrEnd(text: string, at: number): number {
  if (text.charCodeAt(at + 1) !== 0x5b) return -1;
  let end = at + 2;
  // Digits, colons and semicolons.
  for (let code = text.charCodeAt(end); code >= 0x30 && code <= 0x3b; code = text.charCodeAt(end)) end++;
  return text.charCodeAt(end) === 0x6d ? end : -1;
}

/** The segmenter takes more time for each character of a longer text, so it gets so many code units at once. */
const mostSegmented = 512;

function uncertainWidth(text: string): number {
  if (text.length <= mostSegmented) return stringWidth(text);
  let width = 0;
  for (const cluster of clusters(withoutSgr(text))) width += cluster.width;
  return width;
}

const clusterWidths = new Map<string, number>();
const mostClusterWidths = 2_000;

function clusterWidth(cluster: string): number {
  const certain = cluster.length === 1 ? certainWidth(cluster.charCodeAt(0)) : -1;
  if (certain > 0) return certain;
  const known = clusterWidths.get(cluster);
  if (known !== undefined) return known;
  const width = stringWidth(cluster);
  if (cluster.length > 16) return width;
  if (clusterWidths.size >= mostClusterWidths) clusterWidths.clear();
  clusterWidths.set(cluster, width);
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
    for (const segment of uncertainClusters(text, at)) {
      yield { text: segment, width: clusterWidth(segment) };
      at += segment.length;
    }
  }
}

/** Returns the clusters from `from` to the next obvious one, or of a piece. */
function uncertainClusters(text: string, from: number): readonly string[] {
  const end = uncertainEnd(text, from);
  const segments = [...(segmenter ??= new Intl.Segmenter()).segment(text.slice(from, end))];
  // The last cluster of a piece may continue in the next one.
  if (end - from >= mostSegmented && end < text.length && segments.length > 1) segments.pop();
  return segments.map(({ segment }) => segment);
}

/** Returns the index, after `from`, of the first character that cannot join those before it, but no more than
 * `mostSegmented` or one beyond `from`. */
function uncertainEnd(text: string, from: number): number {
  const most = Math.min(text.length, from + mostSegmented);
  for (let at = from + 1; at < most; at++) {
    if (certainWidth(text.charCodeAt(at)) > 0 && (at + 1 === text.length || certainWidth(text.charCodeAt(at + 1)) > 0))
      return at;
  }
  const splitsPair = (text.charCodeAt(most - 1) & 0xfc00) === 0xd800 && (text.charCodeAt(most) & 0xfc00) === 0xdc00;
  return splitsPair ? most + 1 : most;
}

/** The most columns that any terminal gives `text`: one that knows no joined emoji shows each part of it by itself. */
function widestWidth(text: string): number {
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

/** The SGR attributes that are on, each under the slot that its opposite clears. */
type SgrState = Map<string, string>;

const sgrReset = '\x1b[m';

/** Our own parameters, which no terminal has: the beginning of a link, followed by the number of its address, and its
 * end. */
const linkOn = '8888';
const linkOff = '8889';

const simpleSlots: Readonly<Record<string, string>> = {
  1: 'weight',
  2: 'dim',
  3: 'italic',
  4: 'underline',
  5: 'blink',
  6: 'blink',
  7: 'inverse',
  9: 'strike',
};
const clears: Readonly<Record<string, readonly string[]>> = {
  22: ['weight', 'dim'],
  23: ['italic'],
  24: ['underline'],
  25: ['blink'],
  27: ['inverse'],
  29: ['strike'],
  39: ['foreground'],
  49: ['background'],
};

/** Changes `state` by the parameters of one SGR sequence and ignores unknown ones. */
function applySgr(state: SgrState, parameters: string): void {
  const codes = parameters === '' ? ['0'] : parameters.split(';');
  for (let i = 0; i < codes.length; i++) {
    const code = codes[i] ?? '';
    if (code === linkOn) {
      state.set('link', codes.slice(i, i + 2).join(';'));
      i++;
    } else if (code === linkOff) state.delete('link');
    else if (code === '38' || code === '48') {
      const length = codes[i + 1] === '5' ? 3 : codes[i + 1] === '2' ? 5 : 1;
      state.set(code === '38' ? 'foreground' : 'background', codes.slice(i, i + length).join(';'));
      i += length - 1;
    } else applyCode(state, code);
  }
}

function applyCode(state: SgrState, code: string): void {
  const number = Number(code.split(':')[0]);
  if (code === '' || number === 0) {
    state.clear();
    return;
  }
  const slot = simpleSlots[number] ?? colorSlot(number);
  if (slot) state.set(slot, code);
  else for (const name of clears[number] ?? []) state.delete(name);
}

function colorSlot(number: number): string | undefined {
  if ((number >= 30 && number <= 38) || (number >= 90 && number <= 97)) return 'foreground';
  if ((number >= 40 && number <= 48) || (number >= 100 && number <= 107)) return 'background';
  return undefined;
}

/** Returns the sequence that switches on all of `state`; an empty text if that is nothing. */
function openSgr(state: SgrState): string {
  return state.size === 0 ? '' : `\x1b[${[...state.values()].join(';')}m`;
}

export function withoutSgr(text: string): string {
  return text.replace(/\x1b\[[0-9;:]*m/g, '');
}

/** Splits a styled text into lines that do not depend on each other: attributes that are on at a line end begin again
 * in the next line. */
export function splitStyledLines(text: string): string[] {
  const lines = text.split('\n');
  if (!text.includes('\x1b')) return lines;
  const state: SgrState = new Map();
  return lines.map((line) => {
    const open = openSgr(state);
    for (const match of line.matchAll(/\x1b\[([0-9;:]*)m/g)) applySgr(state, match[1] ?? '');
    return open + line + (state.size > 0 ? sgrReset : '');
  });
}

/** Hyperlinks on terminals that know them. Inside the program a link is an attribute like a colour, so that rows are
 * broken and compared with it; the output contains an OSC 8 sequence instead. Source: "Hyperlinks (a.k.a. HTML-like
 * anchors) in terminal emulators", Egmont Koblinger, OSC 8. */
export interface Links {
  /** Links a text without line breaks to `address`. Returns the text alone if the address may not be opened. */
  readonly paint: (address: string, text: string) => string;
  /** Returns the output with links as the terminal knows them. Texts must come in the order of writing. */
  translate(text: string): string;
}

const mostAddress = 2_000;

export function createLinks(): Links {
  const numbers = new Map<string, number>();
  const addresses: string[] = [];
  const state: SgrState = new Map();
  const numberOf = (address: string): number => {
    const known = numbers.get(address);
    if (known !== undefined) return known;
    numbers.set(address, addresses.length);
    return addresses.push(address) - 1;
  };
  return {
    paint: (address, text) => {
      const safe = safeAddress(address);
      return safe === null || text === '' ? text : `\x1b[${linkOn};${numberOf(safe)}m${text}\x1b[${linkOff}m`;
    },
    translate: (text) =>
      text.replace(/\x1b\[([0-9;:]*)m/g, (whole, parameters: string) => {
        const before = state.get('link');
        applySgr(state, parameters);
        const after = state.get('link');
        const rest = withoutLink(parameters, whole);
        if (before === after) return rest;
        const number = after?.split(';')[1];
        return `${rest}\x1b]8;;${number === undefined ? '' : (addresses[Number(number)] ?? '')}\x1b\\`;
      }),
  };
}

function withoutLink(parameters: string, whole: string): string {
  if (!parameters.includes('888')) return whole;
  const rest = parameters.replace(/(?:^|;)(?:8888;\d+|8889)(?=;|$)/g, '').replace(/^;/, '');
  return rest === '' ? '' : `\x1b[${rest}m`;
}

/** Returns an address in ASCII that a browser or a mail program opens; null for others. */
function safeAddress(address: string): string | null {
  if (!URL.canParse(address)) return null;
  const { protocol, href } = new URL(address);
  const opens = protocol === 'https:' || protocol === 'http:' || protocol === 'mailto:';
  return opens && href.length <= mostAddress && /^[\x21-\x7e]+$/.test(href) ? href : null;
}

/** One row of the terminal. `text` begins and ends without attributes. */
export interface Row {
  readonly text: string;
  readonly width: number;
  /** It continues the row above: the terminal wrapped, nobody wrote a line break. */
  readonly soft: boolean;
  /** The width of every character is certain, so a difference may start inside the row. */
  readonly certain: boolean;
}

export const emptyRow: Row = { text: '', width: 0, soft: false, certain: true };

/** Returns true if the ground of the row reaches the right edge. */
export function isFilled({ text }: Pick<Row, 'text'>): boolean {
  return text.includes(eraseRight);
}

/** Returns the text of a row as the terminal gets it. In a full row nothing may be erased: the cursor is still on its
 * last character. */
export function withErase(text: string, isFull: boolean): string {
  return text.includes(eraseRight) ? text.replaceAll(eraseRight, isFull ? '' : '\x1b[K') : text;
}

/** Returns the rows that a terminal of `columns` makes of one line by wrapping it. `line` contains no tabs and no line
 * breaks. */
export function wrapLine(line: string, columns: number): readonly Row[] {
  if (line === '') return [emptyRow];
  const ascii = /^[\x20-\x7e]*$/.test(line);
  if (ascii) return sliceRows(line, Math.max(1, columns));
  return wrapStyled(line, Math.max(1, columns));
}

function sliceRows(line: string, columns: number): Row[] {
  const rows: Row[] = [];
  for (let at = 0; at < line.length; at += columns) {
    const text = line.slice(at, at + columns);
    rows.push({ text, width: text.length, soft: at > 0, certain: true });
  }
  return rows;
}

function wrapStyled(line: string, columns: number): Row[] {
  const rows: Row[] = [];
  const state: SgrState = new Map();
  let text = '';
  let width = 0;
  const plain = withoutSgr(line);
  const certain = isCertain(plain);
  if (certain && textWidth(plain) <= columns) return [fittingRow(line, textWidth(plain))];
  const close = (): void => {
    rows.push({ text: state.size > 0 ? text + sgrReset : text, width, soft: rows.length > 0, certain });
    text = openSgr(state);
    width = 0;
  };
  for (const part of line.split(/(\x1b\[[0-9;:]*m)/)) {
    if (part.startsWith('\x1b[')) {
      applySgr(state, part.slice(2, -1));
      text += part;
      continue;
    }
    for (const cluster of clusters(part)) {
      if (width + cluster.width > columns && width > 0) close();
      text += cluster.text;
      width += cluster.width;
    }
  }
  close();
  return rows;
}

/** Returns the only row of a line whose characters are certain. */
function fittingRow(line: string, width: number): Row {
  const state: SgrState = new Map();
  for (const match of line.matchAll(/\x1b\[([0-9;:]*)m/g)) applySgr(state, match[1] ?? '');
  const text = state.size > 0 ? line + sgrReset : line;
  return { text, width, soft: false, certain: true };
}

/** Matches where a text without blanks may break: behind a character of two columns, but not before closing
 * punctuation. */
const closing = '\\u3001\\u3002\\uff0c\\uff0e\\uff1a\\uff1b\\uff01\\uff1f\\u300d\\u300f\\uff09\\u30fc';
const betweenWide = new RegExp(
  `(?<=[\\u3001-\\u30ff\\u4e00-\\u9fff\\uac00-\\ud7a3\\uff00-\\uff60])(?![${closing}])`,
  'u',
);
const anyWide = /[\u3001-\u30ff\u4e00-\u9fff\uac00-\ud7a3\uff00-\uff60]/;

/** Breaks `line` at blanks into lines of at most `columns`; those after the first begin with `indent` blanks. A longer
 * word stays whole: the terminal wraps it, and it is copied whole. Attributes that are on at a break end there and
 * begin again in the next line. `line` contains no tabs and no line breaks. */
export function wrapWords(line: string, columns: number, indent = 0): string[] {
  if (line.length <= columns && !anyWide.test(line) && isCertain(line)) return [line];
  const room = Math.max(8, columns);
  const rows = new WordRows(room, Math.min(indent, Math.floor(room / 2)));
  for (const [index, word] of line.split(' ').entries()) {
    const parts = anyWide.test(word) ? word.split(betweenWide) : [word];
    for (const [at, part] of parts.entries()) rows.add(part, index > 0 && at === 0);
  }
  return rows.end();
}

class WordRows {
  readonly #columns: number;
  readonly #indent: number;
  readonly #state: SgrState = new Map();
  readonly #rows: string[] = [];
  #text = '';
  #width = 0;
  #empty = true;

  constructor(columns: number, indent: number) {
    this.#columns = columns;
    this.#indent = indent;
  }

  /** Adds a word, `apart` by a blank from the text before it. */
  add(word: string, apart: boolean): void {
    const width = widestWidth(word);
    const blank = apart && !(this.#empty && this.#rows.length > 0) ? 1 : 0;
    if (!this.#empty && this.#width + blank + width > this.#columns) this.#break();
    else if (blank > 0) this.#put(' ', 1);
    this.#put(word, width);
    this.#empty &&= width === 0;
    for (const match of word.matchAll(/\x1b\[([0-9;:]*)m/g)) applySgr(this.#state, match[1] ?? '');
  }

  end(): string[] {
    return [...this.#rows, this.#text];
  }

  #put(text: string, width: number): void {
    this.#text += text;
    this.#width += width;
  }

  #break(): void {
    this.#rows.push(this.#state.size > 0 ? this.#text + sgrReset : this.#text);
    this.#text = ' '.repeat(this.#indent) + openSgr(this.#state);
    this.#width = this.#indent;
    this.#empty = true;
  }
}

/** Returns `line` without its first `count` columns, and keeps its attributes. */
export function dropColumns(line: string, count: number): string {
  const state: SgrState = new Map();
  let dropped = 0;
  let rest = '';
  for (const part of line.split(/(\x1b\[[0-9;:]*m)/)) {
    if (part.startsWith('\x1b[')) {
      if (dropped < count) applySgr(state, part.slice(2, -1));
      else rest += part;
      continue;
    }
    for (const cluster of clusters(part)) {
      if (dropped >= count) {
        rest += rest === '' ? openSgr(state) + cluster.text : cluster.text;
        continue;
      }
      dropped += cluster.width;
    }
  }
  return rest;
}

/** Returns the first `count` columns of `line`, and ends its attributes. */
export function takeColumns(line: string, count: number): string {
  const state: SgrState = new Map();
  let taken = 0;
  let text = '';
  for (const part of line.split(/(\x1b\[[0-9;:]*m)/)) {
    if (part.startsWith('\x1b[')) {
      applySgr(state, part.slice(2, -1));
      text += part;
      continue;
    }
    for (const cluster of clusters(part)) {
      if (taken + cluster.width > count) return state.size > 0 ? text + sgrReset : text;
      text += cluster.text;
      taken += cluster.width;
    }
  }
  return text;
}

/** The common beginning of two certain rows: its length in code units and in columns, and the attributes that are on at
 * its end. */
export interface CommonPrefix {
  readonly length: number;
  readonly columns: number;
  readonly open: string;
}

export const noPrefix: CommonPrefix = { length: 0, columns: 0, open: '' };

export function commonPrefix(left: string, right: string): CommonPrefix {
  const end = Math.min(left.length, right.length);
  let same = 0;
  while (same < end && left.charCodeAt(same) === right.charCodeAt(same)) same++;
  const state: SgrState = new Map();
  let columns = 0;
  let at = 0;
  while (at < same) {
    if (right.charCodeAt(at) !== 0x1b) {
      columns += certainWidth(right.charCodeAt(at));
      at++;
      continue;
    }
    const close = right.indexOf('m', at);
    if (close < 0 || close >= same) break;
    applySgr(state, right.slice(at + 2, close));
    at = close + 1;
  }
  return { length: at, columns, open: openSgr(state) };
}

/** Returns how many code units at the start of a row have a certain width, whatever follows them. */
export function certainLength(text: string): number {
  for (let at = 0, last = 0; at < text.length;) {
    const close = text.charCodeAt(at) === 0x1b ? text.indexOf('m', at) + 1 : 0;
    if (close > 0) {
      at = close;
      continue;
    }
    // An uncertain character may join the one before it.
    if (certainWidth(text.charCodeAt(at)) < 0) return last;
    last = at;
    at++;
  }
  return text.length;
}
