import type { VimCommand } from './vim-command.js';
import { linesBetween, type Region } from './vim-edits.js';
import { motions, wordEnd } from './vim-motions.js';
import { textObject } from './vim-objects.js';
import { endOfLine, isBreak, type Cells } from './vim-text.js';

/** What the operator of `command` works on. `target`: where its motion goes, null or undefined where that is
 * nowhere. */
export function regionOf(
  cells: Cells,
  at: number,
  command: VimCommand,
  target: number | null | undefined,
): Region | null {
  const { operator, name, count } = command;
  if (name === 'line') return linesFrom(cells, at, count ?? 1);
  if (name === 'object') return objectRegion(cells, at, command);
  if (operator === 'c' && isWord(name) && cells[at]?.kind !== 'blank') return changedWord(cells, at, command);
  return target === null || target === undefined ? null : upTo(cells, at, target, name);
}

function isWord(name: string): boolean {
  return name === 'w' || name === 'W';
}

function objectRegion(cells: Cells, at: number, { sought, around, count }: VimCommand): Region | null {
  const found = textObject(cells, at, sought, around, count ?? 1);
  return found && { ...found, lines: false };
}

function upTo(cells: Cells, at: number, target: number, name: string): Region {
  const span = motions[name]?.span;
  if (span === 'lines') return linesBetween(cells, at, target);
  const end = isWord(name) ? onThisLine(cells, at, target) : target;
  const [from, to] = [Math.min(at, end), Math.max(at, end)];
  return { from, to: span === 'with' ? Math.min(cells.length, to + 1) : withoutBreak(cells, from, to), lines: false };
}

/** A motion that stops at the start of a line takes no line break with it. */
function withoutBreak(cells: Cells, from: number, to: number): number {
  return to - 1 > from && isBreak(cells, to - 1) ? to - 1 : to;
}

function linesFrom(cells: Cells, at: number, count: number): Region {
  let last = at;
  for (let left = count - 1; left > 0; left--) last = Math.min(cells.length, endOfLine(cells, last) + 1);
  return linesBetween(cells, at, last);
}

/** `cw` leaves the blanks behind the word. */
function changedWord(cells: Cells, at: number, { name, count }: VimCommand): Region {
  if (at >= cells.length || isBreak(cells, at)) return { from: at, to: at, lines: false };
  const big = name === 'W';
  const end = wordEnd(cells, at, big);
  const more = (count ?? 1) - 1;
  const last = more > 0 ? (motions[big ? 'E' : 'e']?.go({ cells, at: end, count: more, sought: '' }) ?? end) : end;
  return { from: at, to: last + 1, lines: false };
}

/** `dw` on the last word of a line leaves the line break; of an empty line there is nothing else to take. */
function onThisLine(cells: Cells, at: number, target: number): number {
  if (isBreak(cells, at)) return Math.min(at + 1, target);
  return target > endOfLine(cells, at) ? lastBreak(cells, target) : target;
}

/** The line break before `place`, where only blanks stand between. */
function lastBreak(cells: Cells, place: number): number {
  let at = place - 1;
  while (cells[at]?.kind === 'blank') at--;
  return isBreak(cells, at) ? at : place;
}
