import { clusters } from '../terminal/rows.js';

/** A character as the reader sees it, and what it is to vim's words. `end` is where the next one begins. */
interface Cell {
  readonly at: number;
  readonly end: number;
  readonly text: string;
  readonly kind: 'word' | 'sign' | 'blank' | 'break';
}
/** A text as its cells. A place is an index of one, or their count: behind the last. */
export type Cells = readonly Cell[];

export function cellsOf(text: string): Cells {
  const cells: Cell[] = [];
  let at = 0;
  const put = (part: string): void => {
    cells.push({ at, end: at + part.length, text: part, kind: kindOf(part) });
    at += part.length;
  };
  for (const [index, line] of text.split('\n').entries()) {
    if (index > 0) put('\n');
    for (const cluster of clusters(line)) put(cluster.text);
  }
  return cells;
}

function kindOf(part: string): Cell['kind'] {
  if (part === '\n') return 'break';
  if (/^\s/u.test(part)) return 'blank';
  return /^[\p{L}\p{N}\p{M}_]/u.test(part) ? 'word' : 'sign';
}

/** Returns the offset of `place` in the text. */
export function offsetOf(cells: Cells, place: number): number {
  return cells[place]?.at ?? cells.at(-1)?.end ?? 0;
}

/** The cell that `offset` is in. */
export function placeOf(cells: Cells, offset: number): number {
  const found = cells.findIndex((cell) => cell.end > offset);
  return found < 0 ? cells.length : found;
}

export function isBreak(cells: Cells, place: number): boolean {
  return cells[place]?.kind === 'break';
}

/** The first place of the line. */
export function startOfLine(cells: Cells, place: number): number {
  let at = place;
  while (at > 0 && !isBreak(cells, at - 1)) at--;
  return at;
}

/** The line break that ends the line, or the end of the text. */
export function endOfLine(cells: Cells, place: number): number {
  let at = place;
  while (at < cells.length && !isBreak(cells, at)) at++;
  return at;
}

/** The first place of the line that is not blank. */
export function firstOfLine(cells: Cells, place: number): number {
  let at = startOfLine(cells, place);
  while (cells[at]?.kind === 'blank') at++;
  return at;
}

/** The first places of all lines. */
function lineStarts(cells: Cells): readonly number[] {
  return [0, ...cells.flatMap((cell, index) => (cell.kind === 'break' ? [index + 1] : []))];
}

/** Returns the nearest position that the cursor of normal mode may have: on a character, never behind the last one of a
 * line. */
export function resting(cells: Cells, place: number): number {
  const at = Math.max(0, Math.min(place, cells.length));
  const behind = at === cells.length || isBreak(cells, at);
  return behind && at > startOfLine(cells, at) ? at - 1 : at;
}

/** The start of a motion. `count` is null if none was typed; `sought` is the character of `f`, `t` and similar
 * motions. */
interface MotionStart {
  readonly cells: Cells;
  readonly at: number;
  readonly count: number | null;
  readonly sought: string;
}

/** `span`: what an operator takes between the two places: without the character at the later one, with it, or whole
 * lines. */
export interface Motion {
  readonly span: 'without' | 'with' | 'lines';
  readonly go: (start: MotionStart) => number | null;
}

type Same = (one: Cell | undefined, other: Cell | undefined) => boolean;

const isSpace = (cell: Cell | undefined): boolean => cell?.kind === 'blank' || cell?.kind === 'break';
const sameKind: Same = (one, other) => one?.kind === other?.kind;
/** Words of `W`: everything between blanks. */
const sameBig: Same = (one, other) => isSpace(one) === isSpace(other) && one !== undefined && other !== undefined;

const isEmptyLine = (cells: Cells, at: number): boolean => isBreak(cells, at) && (at === 0 || isBreak(cells, at - 1));

function nextWord(cells: Cells, from: number, same: Same): number {
  let at = from;
  if (!isSpace(cells[at])) while (at < cells.length && same(cells[from], cells[at])) at++;
  while (at < cells.length && isSpace(cells[at]) && (at === from || !isEmptyLine(cells, at))) at++;
  return at;
}

/** The last place of the word that `from` is in. */
export function wordEnd(cells: Cells, from: number, big: boolean): number {
  const same = big ? sameBig : sameKind;
  let at = from;
  while (at + 1 < cells.length && !isSpace(cells[at + 1]) && same(cells[at], cells[at + 1])) at++;
  return at;
}

function nextEnd(cells: Cells, from: number, big: boolean): number {
  let at = from + 1;
  while (at < cells.length && isSpace(cells[at])) at++;
  return wordEnd(cells, Math.min(at, cells.length - 1), big);
}

function wordBack(cells: Cells, from: number, same: Same): number {
  let at = from - 1;
  while (at > 0 && isSpace(cells[at]) && !isEmptyLine(cells, at)) at--;
  while (at > 0 && !isSpace(cells[at]) && same(cells[at - 1], cells[at])) at--;
  return Math.max(0, at);
}

function repeated(step: (cells: Cells, at: number) => number): Motion['go'] {
  return ({ cells, at, count }) => {
    let place = at;
    for (let left = count ?? 1; left > 0; left--) {
      const next = step(cells, place);
      if (next === place) break;
      place = next;
    }
    return place === at ? null : place;
  };
}

function vertical(direction: -1 | 1): Motion['go'] {
  return ({ cells, at, count }) => {
    const starts = lineStarts(cells);
    const line = starts.findLastIndex((start) => start <= at);
    const target = Math.max(0, Math.min(starts.length - 1, line + direction * (count ?? 1)));
    if (target === line) return null;
    const start = starts[target] ?? 0;
    return Math.min(start + at - (starts[line] ?? 0), endOfLine(cells, start));
  };
}

/** To a line by its number from 1; the first or the last one where no number is typed. */
function toLine(unsaid: 'first' | 'last'): Motion['go'] {
  return ({ cells, count }) => {
    const starts = lineStarts(cells);
    const line = count === null ? (unsaid === 'first' ? 1 : starts.length) : Math.min(count, starts.length);
    return firstOfLine(cells, starts[line - 1] ?? 0);
  };
}

/** To a character of this line; `short` stops beside it. */
function seek(direction: -1 | 1, short: boolean): Motion['go'] {
  return ({ cells, at, count, sought }) => {
    let left = count ?? 1;
    if (isBreak(cells, at)) return null;
    for (let place = at + direction; place >= 0 && place < cells.length && !isBreak(cells, place); place += direction) {
      if (cells[place]?.text === sought && --left === 0) return short ? place - direction : place;
    }
    return null;
  };
}

function lineEnd({ cells, at, count }: MotionStart): number {
  const starts = lineStarts(cells);
  const line = starts.findLastIndex((start) => start <= at) + (count ?? 1) - 1;
  return endOfLine(cells, starts[Math.min(line, starts.length - 1)] ?? 0);
}

const left: Motion = {
  span: 'without',
  go: ({ cells, at, count }) => Math.max(startOfLine(cells, at), at - (count ?? 1)),
};
const right: Motion = {
  span: 'without',
  go: ({ cells, at, count }) => Math.min(endOfLine(cells, at), at + (count ?? 1)),
};
const down: Motion = { span: 'lines', go: vertical(1) };
const up: Motion = { span: 'lines', go: vertical(-1) };
const toStart: Motion = { span: 'without', go: ({ cells, at }) => startOfLine(cells, at) };
const toEnd: Motion = { span: 'without', go: lineEnd };

/** Motions by their keys. Null: it cannot go there. */
export const motions: Readonly<Record<string, Motion>> = {
  h: left,
  left: left,
  backspace: left,
  l: right,
  right: right,
  ' ': right,
  j: down,
  down: down,
  k: up,
  up: up,
  w: { span: 'without', go: repeated((cells, at) => nextWord(cells, at, sameKind)) },
  W: { span: 'without', go: repeated((cells, at) => nextWord(cells, at, sameBig)) },
  b: { span: 'without', go: repeated((cells, at) => wordBack(cells, at, sameKind)) },
  B: { span: 'without', go: repeated((cells, at) => wordBack(cells, at, sameBig)) },
  e: { span: 'with', go: (start) => repeated((cells, at) => nextEnd(cells, at, false))(start) ?? start.at },
  E: { span: 'with', go: (start) => repeated((cells, at) => nextEnd(cells, at, true))(start) ?? start.at },
  '0': toStart,
  home: toStart,
  $: toEnd,
  end: toEnd,
  '^': { span: 'without', go: ({ cells, at }) => firstOfLine(cells, at) },
  gg: { span: 'lines', go: toLine('first') },
  G: { span: 'lines', go: toLine('last') },
  f: { span: 'with', go: seek(1, false) },
  F: { span: 'without', go: seek(-1, false) },
  t: { span: 'with', go: seek(1, true) },
  T: { span: 'without', go: seek(-1, true) },
};

/** The motion that seeks the other way. */
export const opposite: Readonly<Record<string, string>> = { f: 'F', F: 'f', t: 'T', T: 't' };

/** A part of a text: from a place up to another, that one not included. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

const pairs: Readonly<Record<string, readonly [open: string, close: string]>> = {
  '(': ['(', ')'],
  ')': ['(', ')'],
  b: ['(', ')'],
  '[': ['[', ']'],
  ']': ['[', ']'],
  '{': ['{', '}'],
  '}': ['{', '}'],
  B: ['{', '}'],
  '<': ['<', '>'],
  '>': ['<', '>'],
};

/** The text object `name` at a place: what is inside it, or with what is around it. `count`: so many words, or so many
 * brackets outwards. Null where there is none. */
export function textObject(cells: Cells, at: number, name: string, around: boolean, count: number): Span | null {
  if (name === 'w' || name === 'W') return words(cells, at, name === 'W', around, count);
  if (name === '"' || name === "'" || name === '`') return quoted(cells, at, name, around);
  const pair = pairs[name];
  return pair ? bracketed(cells, at, pair, around, count) : null;
}

function words(cells: Cells, at: number, big: boolean, around: boolean, count: number): Span | null {
  const first = word(cells, at, big, around);
  let to = first?.to ?? 0;
  for (let left = count - 1; left > 0; left--) to = word(cells, to, big, around)?.to ?? to;
  return first && { from: first.from, to };
}

function word(cells: Cells, at: number, big: boolean, around: boolean): Span | null {
  if (at >= cells.length || isBreak(cells, at)) return around ? null : { from: at, to: at };
  const kind = (cell: Cell | undefined): string => (big && cell?.kind === 'sign' ? 'word' : (cell?.kind ?? 'break'));
  const run = (from: number): Span => {
    let [start, end] = [from, from + 1];
    while (start > 0 && kind(cells[start - 1]) === kind(cells[from])) start--;
    while (end < cells.length && kind(cells[end]) === kind(cells[from])) end++;
    return { from: start, to: end };
  };
  const inner = run(at);
  if (!around) return inner;
  const next = cells[inner.to];
  if (kind(cells[at]) === 'blank')
    return next && !isBreak(cells, inner.to) ? { from: inner.from, to: run(inner.to).to } : inner;
  return withBlanks(cells, inner);
}

/** With the blanks behind it; where there are none, with those before it. */
function withBlanks(cells: Cells, { from, to }: Span): Span {
  let [start, end] = [from, to];
  while (cells[end]?.kind === 'blank') end++;
  if (end === to) while (cells[start - 1]?.kind === 'blank') start--;
  return { from: start, to: end };
}

/** Quotes pair up from the start of the line; the pair around the cursor, else the next one. */
function quoted(cells: Cells, at: number, quote: string, around: boolean): Span | null {
  const signs: number[] = [];
  const end = endOfLine(cells, at);
  for (let place = startOfLine(cells, at); place < end; place++) {
    if (cells[place]?.text === '\\') place++;
    else if (cells[place]?.text === quote) signs.push(place);
  }
  for (let index = 0; index + 1 < signs.length; index += 2) {
    const [open = 0, close = 0] = signs.slice(index, index + 2);
    if (close >= at) return around ? withBlanks(cells, { from: open, to: close + 1 }) : { from: open + 1, to: close };
  }
  return null;
}

function bracketed(
  cells: Cells,
  at: number,
  [open, close]: readonly [string, string],
  around: boolean,
  count: number,
): Span | null {
  let from = match(cells, cells[at]?.text === close ? at - 1 : at, open, close, -1) ?? nextOnLine(cells, at, open);
  for (let left = count - 1; left > 0 && from !== null; left--) from = match(cells, from - 1, open, close, -1);
  const to = from === null ? null : match(cells, from + 1, close, open, 1);
  if (from === null || to === null) return null;
  return around ? { from, to: to + 1 } : { from: from + 1, to };
}

function nextOnLine(cells: Cells, at: number, sign: string): number | null {
  const end = endOfLine(cells, at);
  for (let place = at; place < end; place++) if (cells[place]?.text === sign) return place;
  return null;
}

/** The nearest `wanted` in that direction that is not paired off by an `other` on the way. */
function match(cells: Cells, start: number, wanted: string, other: string, direction: -1 | 1): number | null {
  let depth = 0;
  for (let place = start; place >= 0 && place < cells.length; place += direction) {
    const text = cells[place]?.text;
    if (text === wanted && depth-- === 0) return place;
    if (text === other) depth++;
  }
  return null;
}
