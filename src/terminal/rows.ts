import { applySgr, openSgr, sgrReset, type SgrState, withoutSgr } from './attributes.js';
import { certainWidth, clusters, isCertain, widestWidth } from './width.js';

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
  const certain = isCertain(withoutSgr(line));
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

/** Matches where a text without blanks may break: behind a character of two columns, but not before closing
 * punctuation. */
const betweenWide =
  /(?<=[\u3001-\u30ff\u4e00-\u9fff\uac00-\ud7a3\uff00-\uff60])(?![\u3001\u3002\uff0c\uff0e\uff1a\uff1b\uff01\uff1f\u300d\u300f\uff09\u30fc])/u;
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

  /** Adds a word, `apart` by a blank from what stands before it. */
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
