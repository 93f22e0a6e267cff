import { endOfLine, firstOfLine, isBreak, lineStarts, startOfLine, type Cell, type Cells } from './vim-text.js';

/** What a motion goes from. `count` is null where none was typed; `sought` is the character of `f`, `t` and kin. */
export interface MotionStart {
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
