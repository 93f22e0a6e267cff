import { clusters } from '../width.js';

/** A character as the reader sees it, and what it is to vim's words. `end` is where the next one begins. */
export interface Cell {
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

/** Where `place` is in the text. */
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
export function lineStarts(cells: Cells): readonly number[] {
  return [0, ...cells.flatMap((cell, index) => (cell.kind === 'break' ? [index + 1] : []))];
}

/** Where the cursor of normal mode may stand: on a character, never behind the last one of a line. */
export function resting(cells: Cells, place: number): number {
  const at = Math.max(0, Math.min(place, cells.length));
  const behind = at === cells.length || isBreak(cells, at);
  return behind && at > startOfLine(cells, at) ? at - 1 : at;
}
