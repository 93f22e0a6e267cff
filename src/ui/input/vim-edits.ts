import { change, moveTo, type Editor } from './editor.js';
import type { Span } from './vim-objects.js';
import {
  cellsOf,
  endOfLine,
  firstOfLine,
  isBreak,
  offsetOf,
  placeOf,
  resting,
  startOfLine,
  type Cells,
} from './vim-text.js';

/** What was cut or copied last. It stands in the editor's own `killed` too; `lines` counts as long as that is the same
 * text. */
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

export function textOf(cells: Cells, { from, to }: Span): string {
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
  const text = textOf(cells, region);
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
