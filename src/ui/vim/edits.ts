import { change, type Editor, joinedUndo, moveTo } from '../editor/editor.js';
import {
  type Cells,
  cellsOf,
  endOfLine,
  firstOfLine,
  isBreak,
  motions,
  offsetOf,
  placeOf,
  resting,
  type Span,
  startOfLine,
  textObject,
  wordEnd,
} from './motions.js';

/** The text that was cut or copied last. The editor's own `killed` has it too; `lines` counts while the two texts are
 * equal. */
export interface Register {
  readonly text: string;
  readonly lines: boolean;
}

/** A part of the text to work on; `lines`: whole lines. */
export interface Region extends Span {
  readonly lines: boolean;
}

/** The whole lines that two places are in. */
export function linesBetween(cells: Cells, one: number, other: number): Region {
  return { from: startOfLine(cells, Math.min(one, other)), to: endOfLine(cells, Math.max(one, other)), lines: true };
}

/** The cursor where normal mode lets it stand. */
export function rest(editor: Editor): Editor {
  const cells = cellsOf(editor.text);
  const cursor = offsetOf(cells, resting(cells, placeOf(cells, editor.cursor)));
  return cursor === editor.cursor ? editor : moveTo(editor, cursor);
}

function spanText(cells: Cells, { from, to }: Span): string {
  return cells
    .slice(from, to)
    .map((cell) => cell.text)
    .join('');
}

export function yank(
  editor: Editor,
  cells: Cells,
  region: Region,
): { readonly editor: Editor; readonly register: Register } {
  const text = spanText(cells, region);
  return { editor: { ...editor, killed: text }, register: { text, lines: region.lines } };
}

/** Takes a region out. Of whole lines one line break goes too. */
export function remove(editor: Editor, cells: Cells, region: Region): Editor {
  const { from, to } = region;
  if (!region.lines) return change(editor, offsetOf(cells, from), offsetOf(cells, to), '');
  const [start, end] = to < cells.length ? [from, to + 1] : [Math.max(0, from - 1), to];
  const left = change(editor, offsetOf(cells, start), offsetOf(cells, end), '');
  const rest = cellsOf(left.text);
  return moveTo(left, offsetOf(rest, firstOfLine(rest, Math.min(from, rest.length))));
}

export function put(editor: Editor, register: Register, where: 'after' | 'before', count: number): Editor {
  const cells = cellsOf(editor.text);
  const at = placeOf(cells, editor.cursor);
  if (register.text === '' && !register.lines) return editor;
  if (register.lines) return putLines(editor, cells, at, register.text, where, count);
  const text = register.text.repeat(count);
  const into = where === 'after' && at < cells.length && !isBreak(cells, at) ? at + 1 : at;
  const done = change(editor, offsetOf(cells, into), offsetOf(cells, into), text);
  const last = cellsOf(text).at(-1)?.text.length ?? 0;
  return moveTo(done, text.includes('\n') ? offsetOf(cells, into) : done.cursor - last);
}

function putLines(
  editor: Editor,
  cells: Cells,
  at: number,
  lines: string,
  where: 'after' | 'before',
  count: number,
): Editor {
  const text = Array.from({ length: count }, () => lines).join('\n');
  const into = offsetOf(cells, where === 'after' ? endOfLine(cells, at) : startOfLine(cells, at));
  const done = change(editor, into, into, where === 'after' ? `\n${text}` : `${text}\n`);
  const next = cellsOf(done.text);
  return moveTo(done, offsetOf(next, firstOfLine(next, placeOf(next, where === 'after' ? into + 1 : into))));
}

/** Each character of a region by what `make` gives for it, line breaks as they are; the cursor at its start. */
export function mapRegion(editor: Editor, cells: Cells, { from, to }: Span, make: (char: string) => string): Editor {
  const text = cells
    .slice(from, to)
    .map((cell) => (cell.kind === 'break' ? '\n' : make(cell.text)))
    .join('');
  return moveTo(change(editor, offsetOf(cells, from), offsetOf(cells, to), text), offsetOf(cells, from));
}

/** Replaces each character of a region with `character`; the cursor is then on the last one. */
export function replaceCharacters(editor: Editor, cells: Cells, region: Span, character: string): Editor {
  const replaced = mapRegion(editor, cells, region, () => character);
  return moveTo(replaced, offsetOf(cells, region.from) + character.length * (region.to - region.from - 1));
}

/** Switches the case of a region; the cursor is then behind it. */
export function turnCase(editor: Editor, cells: Cells, region: Span): Editor {
  const turned = mapRegion(editor, cells, region, otherCase);
  const grown = turned.text.length - editor.text.length;
  return rest(moveTo(turned, turned.cursor + grown + offsetOf(cells, region.to) - offsetOf(cells, region.from)));
}

export function otherCase(char: string): string {
  const turned = char === char.toLowerCase() ? char.toUpperCase() : char.toLowerCase();
  return turned.length === char.length ? turned : char;
}

/** Puts this line and those below it together, a blank between them. */
export function joinLines(editor: Editor, count: number): Editor {
  let joined = editor;
  for (let left = Math.max(1, count - 1); left > 0; left--) {
    const cells = cellsOf(joined.text);
    const end = endOfLine(cells, placeOf(cells, joined.cursor));
    if (end >= cells.length) break;
    const next = firstOfLine(cells, end + 1);
    const none =
      cells[end - 1]?.kind === 'blank' ||
      end === startOfLine(cells, end) ||
      next >= cells.length ||
      isBreak(cells, next) ||
      cells[next]?.text === ')';
    const made = change(joined, offsetOf(cells, end), offsetOf(cells, next), none ? '' : ' ', joined !== editor);
    joined = moveTo(made, offsetOf(cells, end));
  }
  return joined;
}

/** Returns the region for the operator of `command`. `target`: the end of its motion, null or undefined if there is
 * none. */
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

/** The text typed between entering insert mode and leaving it. */
export interface Insertion {
  /** The editor with all of it as one step of undo, and what was typed; empty where more than typing happened. */
  end(editor: Editor): { readonly editor: Editor; readonly inserted: string };
}

/** `before` is what undo goes back to, `start` where typing began; what is typed is put in `times` times in all. */
export function createInsertion(before: Editor, start: Editor, times: number): Insertion {
  const head = start.text.slice(0, start.cursor);
  const tail = start.text.slice(start.cursor);
  const typedInto = (text: string): string => {
    const grown = text.length >= start.text.length && text.startsWith(head) && text.endsWith(tail);
    return grown ? text.slice(head.length, text.length - tail.length) : '';
  };
  return {
    end: (editor) => {
      const inserted = typedInto(editor.text);
      const whole =
        inserted !== '' && times > 1
          ? change(editor, editor.cursor, editor.cursor, inserted.repeat(times - 1))
          : editor;
      return { editor: joinedUndo(before, whole), inserted };
    },
  };
}

export type Operator = 'd' | 'c' | 'y';

/** A whole command of normal or visual mode. `name`: a motion, `line` (an operator twice), `object`, or what else its
 * key is called. */
export interface VimCommand {
  readonly operator: Operator | null;
  /** Null where none was typed. */
  readonly count: number | null;
  readonly name: string;
  /** The character behind `f`, `t`, `r` and kin, or the object's behind `i` and `a`. */
  readonly sought: string;
  readonly around: boolean;
}

/** Keys that stand for an operator and a motion. */
const shorthands: Readonly<Record<string, readonly [Operator, string]>> = {
  x: ['d', 'l'],
  delete: ['d', 'l'],
  X: ['d', 'h'],
  s: ['c', 'l'],
  S: ['c', 'line'],
  D: ['d', '$'],
  C: ['c', '$'],
  Y: ['y', 'line'],
};
const takesMore = new Set(['f', 'F', 't', 'T', 'r', 'g']);
const repeats = new Set([';', ',']);
const largestCount = 9_999;

/** The command that `keys` are; `more` where it is not complete, `none` where it cannot become one. In visual mode
 * operators stand for themselves. */
export function parseVim(keys: readonly string[], visual: boolean): VimCommand | 'more' | 'none' {
  const [count, behind] = countAt(keys, 0);
  const key = keys[behind];
  if (key === undefined) return 'more';
  const short = visual ? undefined : shorthands[key];
  if (short) return { operator: short[0], count, name: short[1], sought: '', around: false };
  return visual || !isOperator(key)
    ? parseNamedCommand(keys, behind, null, count, visual)
    : operated(keys, behind + 1, key, count);
}

/** Parses an operator by the keys behind it. */
function operated(
  keys: readonly string[],
  behind: number,
  operator: Operator,
  count: number | null,
): VimCommand | 'more' | 'none' {
  const [again, at] = countAt(keys, behind);
  const both = count === null && again === null ? null : Math.min(largestCount, (count ?? 1) * (again ?? 1));
  if (keys[at] === operator) return { operator, count: both, name: 'line', sought: '', around: false };
  const command = parseNamedCommand(keys, at, operator, both, true);
  return typeof command === 'string' || command.name === 'object' || motions[command.name] || repeats.has(command.name)
    ? command
    : 'none';
}

/** Parses a command by its name. `i` and `a` begin an object if `objects` is true; otherwise they are separate
 * commands. */
function parseNamedCommand(
  keys: readonly string[],
  at: number,
  operator: Operator | null,
  count: number | null,
  objects: boolean,
): VimCommand | 'more' | 'none' {
  const [key, next] = [keys[at], keys[at + 1]];
  const command = { operator, count, sought: '', around: false };
  if (key === undefined) return 'more';
  if (key === 'g' && next !== undefined) return next === 'g' ? { ...command, name: 'gg' } : 'none';
  const isObject = objects && (key === 'i' || key === 'a');
  if (!isObject && !takesMore.has(key)) return { ...command, name: key };
  if (next === undefined) return 'more';
  if (!isCharacter(next)) return 'none';
  return isObject
    ? { ...command, name: 'object', sought: next, around: key === 'a' }
    : { ...command, name: key, sought: next };
}

/** Names of keys are words in ASCII; a character of several code points is not. */
function isCharacter(key: string): boolean {
  return key.length === 1 || /[^\x20-\x7e]/.test(key);
}

function isOperator(key: string): key is Operator {
  return key === 'd' || key === 'c' || key === 'y';
}

function countAt(keys: readonly string[], from: number): readonly [number | null, number] {
  let at = from;
  let count: number | null = null;
  while (/^[0-9]$/.test(keys[at] ?? '') && (keys[at] !== '0' || count !== null)) {
    count = Math.min(largestCount, (count ?? 0) * 10 + Number(keys[at]));
    at++;
  }
  return [count, at];
}
