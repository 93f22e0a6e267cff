import { endOfLine, isBreak, startOfLine, type Cell, type Cells } from './vim-text.js';

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
