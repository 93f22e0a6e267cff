import {
  certainLength,
  commonPrefix,
  type CommonPrefix,
  emptyRow,
  isFilled,
  noPrefix,
  type Row,
  withErase,
} from './rows.js';

export interface RowPlace {
  readonly row: number;
  readonly column: number;
}

/** The first difference between rows: the row, how many of its code units are the same, and the attributes that are on
 * there. */
export interface ScreenChange {
  readonly row: number;
  readonly length: number;
  readonly open: string;
}

/** No row at all. */
const nowhere = -2;

/** Returns true if cells of `old` stay visible behind `row` unless they are erased. */
function leavesCells(old: Row, row: Row): boolean {
  return old.width > row.width || (isFilled(old) && !isFilled(row));
}

/** Turns rows into sequences that paint them over the present rows, and knows where the cursor is. */
export class RowPainter {
  #painted: readonly Row[] = [emptyRow];
  #row = 0;
  /** -1 if the terminal is about to wrap, so that nobody knows. */
  #column = 0;
  /** The last row erased in this frame. */
  #erased = nowhere;
  columns: number;

  constructor(columns: number) {
    this.columns = columns;
  }

  get painted(): readonly Row[] {
    return this.#painted;
  }
  get row(): number {
    return this.#row;
  }
  get column(): number {
    return this.#column;
  }

  /** Takes `rows` and the cursor as what is on the screen, whoever painted them. */
  assume(rows: readonly Row[], row: number, column: number): void {
    this.#painted = rows;
    this.#row = row;
    this.#column = column;
  }

  /** Returns what is painted; wrapped rows become one line. */
  lines(): readonly string[] {
    const lines: string[] = [];
    for (const { text, soft } of this.#painted) {
      if (soft && lines.length > 0) lines.push((lines.pop() ?? '') + text);
      else lines.push(text);
    }
    return lines;
  }

  /** Gives up the first `count` rows. */
  release(count: number): void {
    this.#painted = this.#painted.slice(count);
    this.#row -= count;
  }

  /** Paints `target`. `quiet` is true if more than the cursor's row changed. */
  paint(target: readonly Row[], cursor: RowPlace): { readonly out: string; readonly quiet: boolean } {
    const startRow = this.#row;
    this.#erased = nowhere;
    let out = '';
    let touched = 0;
    let elsewhere = false;
    for (let i = 0; i < target.length; i++) {
      const row = target[i] ?? emptyRow;
      const old = this.#painted[i];
      if (old && old.text === row.text && old.soft === row.soft && !(row.soft && this.#erased === i - 1)) continue;
      out += this.#paintRow(target, i, row, old);
      touched++;
      elsewhere ||= i !== startRow;
    }
    if (this.#painted.length > target.length) {
      out += `${this.#moveTo(target.length, 0)}\x1b[J`;
      touched++;
      elsewhere = true;
    }
    out += this.#moveTo(cursor.row, cursor.column);
    this.#painted = target;
    return { out, quiet: touched > 1 || (touched === 1 && elsewhere) };
  }

  /** Moves the cursor to the first difference from `target`; `append` continues from there. */
  goToChange(target: readonly Row[]): { readonly out: string; readonly change: ScreenChange } {
    const last = Math.min(target.length, this.#painted.length) - 1;
    const first = target.findIndex(
      (row, index) =>
        index >= last || row.text !== this.#painted[index]?.text || row.soft !== this.#painted[index].soft,
    );
    // If a row now continues the one above, the terminal itself must wrap into it.
    const joins = first > 0 && target[first]?.soft === true && this.#painted[first]?.soft !== true;
    const index = joins ? first - 1 : first;
    const prefix = joins ? noPrefix : this.#certainPrefix(this.#painted[index] ?? emptyRow, target[index] ?? emptyRow);
    return {
      out: this.#moveTo(index, prefix.columns),
      change: { row: index, length: prefix.length, open: prefix.open },
    };
  }

  /** Returns the common beginning of two rows, as far as its width is certain; nothing if it is all of a row. */
  #certainPrefix(old: Row, row: Row): CommonPrefix {
    if (old.soft !== row.soft) return noPrefix;
    const common = commonPrefix(old.text.slice(0, certainLength(old.text)), row.text.slice(0, certainLength(row.text)));
    return common.columns < this.columns ? common : noPrefix;
  }

  /** Erases from the cursor on, which is at `change`, and writes the rest of `target` without moving up in it. Its
   * lines are right even if the size changes before the terminal reads this. */
  append(target: readonly Row[], change: ScreenChange, cursor: RowPlace): string {
    const first = target[change.row] ?? emptyRow;
    // In the home position tmux would move what is erased into the scrollback, and a row that is erased as a whole
    // would not continue the one above.
    let out = this.#column > 0 ? '\x1b[J' : `\x1b[C\x1b[J\r${first.soft ? '' : '\x1b[K'}`;
    out += change.open + this.#put(first, change.length);
    for (let index = change.row + 1; index < target.length; index++) {
      const row = target[index] ?? emptyRow;
      out += (row.soft ? '' : '\r\n') + this.#put(row, 0);
    }
    this.#row = target.length - 1;
    out += this.#moveTo(cursor.row, cursor.column);
    this.#painted = target;
    return out;
  }

  #paintRow(target: readonly Row[], index: number, row: Row, old: Row | undefined): string {
    if (row.soft && index > 0 && this.#comesApart(index, row, old))
      return this.#paintContinuation(target, index, row, old);
    if (!old) return this.#newRow(index) + this.#put(row, 0);
    // A row that becomes narrower is erased from its start: when tmux wraps again it counts cells erased behind a text
    // as part of it.
    if ((old.soft && !row.soft) || leavesCells(old, row)) {
      this.#erased = index;
      return `${this.#moveTo(index, 0)}\x1b[K${this.#put(row, 0)}`;
    }
    const same = old.certain && row.certain ? commonPrefix(old.text, row.text) : noPrefix;
    return this.#moveTo(index, same.columns) + same.open + this.#put(row, same.length);
  }

  /** Returns whether the row no longer continues the one above, because one of the two is erased from its start. */
  #comesApart(index: number, row: Row, old: Row | undefined): boolean {
    return !old?.soft || leavesCells(old, row) || this.#erased === index - 1;
  }

  /** Writes a row that the terminal itself must wrap into, so that it takes the two for one line. */
  #paintContinuation(target: readonly Row[], index: number, row: Row, old: Row | undefined): string {
    const above = target[index - 1] ?? emptyRow;
    const erased = old !== undefined && leavesCells(old, row) ? `${this.#moveTo(index, 0)}\x1b[K` : '';
    const waiting = this.#row === index - 1 && this.#column === -1;
    const lead = waiting ? '' : this.#moveTo(index - 1, 0) + this.#put(above, 0);
    this.#erased = erased === '' ? nowhere : index;
    this.#row = index;
    this.#column = 0;
    return erased + lead + this.#put(row, 0);
  }

  #newRow(index: number): string {
    const move = this.#row === index - 1 ? '' : this.#moveTo(index - 1, 0);
    this.#row = index;
    this.#column = 0;
    return `${move}\r\n`;
  }

  /** Returns the text of a row from code unit `from` on. The cursor is where that begins. */
  #put(row: Row, from: number): string {
    this.#column = row.width >= this.columns ? -1 : row.width;
    return withErase(row.text.slice(from), this.#column < 0);
  }

  #moveTo(row: number, column: number): string {
    const down = row - this.#row;
    const target = Math.min(column, this.columns - 1);
    let out = '';
    if (down < 0) out = down === -1 ? '\x1b[A' : `\x1b[${-down}A`;
    else if (down > 0) out = down === 1 ? '\x1b[B' : `\x1b[${down}B`;
    if (target !== this.#column) {
      if (target === 0) out += '\r';
      else if (target === this.#column - 1) out += '\b';
      else out += `\x1b[${target + 1}G`;
    }
    this.#row = row;
    this.#column = target;
    return out;
  }
}
