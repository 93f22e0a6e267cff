import { addAll } from '../../kernel/core/lists.js';
import { clusters, type Row, withoutSgr, wrapLine } from './rows.js';

export interface ScreenSize {
  readonly columns: number;
  readonly rows: number;
}

/** The content of the terminal, as its one writer knows it. */
export interface Standing {
  readonly size: ScreenSize;
  /** The last printed lines; `first` is the number of the first of them among all printed lines. */
  readonly printed: readonly string[];
  readonly first: number;
  /** The last printed line continues in the first row. */
  readonly open: boolean;
  readonly rows: readonly Row[];
  /** The row of `rows` that the cursor is in. */
  readonly row: number;
  readonly column: number;
}

/** The behaviour of a terminal when its width changes. It wraps every line again; or every line but the cursor's, and
 * moves the cursor with the rows below it (xterm.js); or it cuts rows and wraps nothing (xterm, the Linux console).
 * tmux 3.3a wraps every line and keeps the last row where it is, but may misplace its cursor: it breaks a line in two
 * where a wide character does not fit at the end of a row, and each such line puts its cursor one line too high. */
export type Reflow = 'all' | 'all as tmux' | 'all but the cursor' | 'none';

export interface ModelLine {
  readonly text: string;
  /** Its first row. */ readonly row: number;
  readonly heights: readonly number[];
}

/** A model of a terminal that understands only the sequences that the writer uses. It calculates where rows are after
 * output has met another size than it was made for. */
export interface TerminalModel {
  readonly size: ScreenSize;
  readonly cursor: { readonly row: number; readonly column: number };
  /** The row of the screen that the cursor should be in, as far as that is known. */
  readonly screenRow: number;
  /** The certainty of `screenRow`. */
  readonly rowIs: 'sure' | 'likely' | 'unknown';
  resize(size: ScreenSize): void;
  write(text: string): void;
  /** Returns the lines from `first` on; `heights` are the columns of their rows. */
  lines(): readonly ModelLine[];
  /** Returns a copy that continues as another kind of terminal, with the cursor in row `screenRow` of the screen. */
  copy(screenRow: number, reflow: Reflow, astray?: number): TerminalModel;
  /** Puts the cursor into row `screenRow` of the screen. */
  moveTo(screenRow: number): void;
}

/** `screenRow`: the row of the screen, counted from 0, that the cursor was in; null if unknown. `astray`: how many
 * lines too high the cursor of tmux gets when it wraps again. */
export function createTerminalModel(
  standing: Standing,
  screenRow: number | null,
  reflow: Reflow,
  astray = 0,
): TerminalModel {
  return Model.of(standing, screenRow, reflow, astray);
}

/** One string for each column; a wide character is followed by an empty one. */
interface Cells {
  cells: string[];
  soft: boolean;
}

const sequence = /\x1b\[([?>]?[\d;]*)([A-Za-z])|[\r\n\b]|[^\x1b\r\n\b]+|\x1b/g;

class Model implements TerminalModel {
  size: ScreenSize;
  readonly #reflow: Reflow;
  #rows: Cells[];
  #row: number;
  /** As many as the size has columns: the next character wraps. */
  #column: number;
  #top: number;
  readonly #astray: number;
  rowIs: 'sure' | 'likely' | 'unknown' = 'likely';
  #grown = false;

  constructor(
    size: ScreenSize,
    reflow: Reflow,
    astray: number,
    rows: Cells[],
    cursor: { readonly row: number; readonly column: number },
    top: number,
  ) {
    this.size = size;
    this.#astray = astray;
    this.#reflow = reflow;
    this.#rows = rows;
    this.#row = cursor.row;
    this.#column = cursor.column;
    this.#top = top;
  }

  static of(
    { size, printed, open, rows: live, row, column }: Standing,
    screenRow: number | null,
    reflow: Reflow,
    astray: number,
  ): Model {
    const rows: Cells[] = printed
      .flatMap((line) => wrapLine(line, size.columns))
      .map(({ text, soft }) => ({ cells: cellsOf(text), soft }));
    const anchor = rows.length;
    for (const [index, { text, soft }] of live.entries())
      rows.push({ cells: cellsOf(text), soft: index === 0 ? open && anchor > 0 : soft });
    const top = screenRow === null ? Math.max(0, rows.length - size.rows) : anchor + row - screenRow;
    return new Model(
      size,
      reflow,
      astray,
      rows,
      { row: anchor + row, column: column < 0 ? size.columns : column },
      top,
    );
  }

  moveTo(screenRow: number): void {
    this.#row = Math.max(0, this.#top + screenRow);
  }

  copy(screenRow: number, reflow: Reflow, astray = 0): TerminalModel {
    const rows = this.#rows.map(({ cells, soft }) => ({ cells: [...cells], soft }));
    return new Model(this.size, reflow, astray, rows, { row: this.#row, column: this.#column }, this.#row - screenRow);
  }

  get screenRow(): number {
    return this.#row - this.#top;
  }

  get cursor(): { readonly row: number; readonly column: number } {
    return { row: this.#row, column: Math.min(this.#column, this.size.columns - 1) };
  }

  lines(): readonly ModelLine[] {
    const lines: { text: string; row: number; heights: number[] }[] = [];
    for (const [index, { cells, soft }] of this.#rows.entries()) {
      const last = lines.at(-1);
      if (!soft || !last) lines.push({ text: cells.join(''), row: index, heights: [cells.length] });
      else {
        last.text += cells.join('');
        last.heights.push(cells.length);
      }
    }
    return lines;
  }

  resize(size: ScreenSize): void {
    const more = size.rows - this.size.rows;
    // A lower window loses the rows below the cursor first, then moves the top into the scrollback; a higher one takes
    // them back.
    if (more < 0) {
      const below = Math.max(0, this.#top + this.size.rows - 1 - this.#row);
      this.#rows.length = Math.min(
        this.#rows.length,
        Math.max(this.#row + 1, this.#top + this.size.rows - Math.min(below, -more)),
      );
      this.#top += Math.max(0, -more - below);
    } else if (this.#top > 0) this.#top -= more;
    this.#grown ||= more > 0;
    const from = this.size.columns;
    this.size = size;
    if (from !== size.columns) this.#rewrap(size.columns);
  }

  write(text: string): void {
    for (const [whole, parameters = '', final] of text.matchAll(sequence)) {
      if (final !== undefined) this.#control(final, parameters);
      else if (whole === '\r') this.#column = 0;
      else if (whole === '\n') this.#down();
      else if (whole === '\b') this.#column = Math.max(0, this.cursor.column - 1);
      else if (whole !== '\x1b') this.#put(whole);
    }
  }

  #rewrap(columns: number): void {
    if (this.#reflow === 'none') {
      this.#column = this.cursor.column;
      return;
    }
    const rows: Cells[] = [];
    const before = this.#row;
    const atEnd = this.#column >= this.#here().cells.length;
    let after = before;
    for (const group of this.#groups()) {
      const held = before >= group.from && before < group.from + group.rows.length;
      const start = rows.length;
      const kept = held && this.#reflow === 'all but the cursor';
      const next = kept
        ? group.rows.map(({ cells, soft }) => ({ cells: cells.slice(0, columns), soft }))
        : wrapCells(
            group.rows.flatMap(({ cells }) => cells),
            columns,
          );
      addAll(rows, next);
      if (!held) continue;
      const inLine = before - group.from;
      const offset = group.rows.slice(0, inLine).reduce((sum, { cells }) => sum + cells.length, 0) + this.#column;
      if (kept) after = start + inLine;
      else after = start + this.#place(next, offset);
    }
    // Rows inserted or removed below the cursor move it as well.
    if (this.#reflow === 'all but the cursor') after = Math.max(0, before + rows.length - this.#rows.length);
    if (this.#reflow === 'all as tmux') {
      this.#anchor(rows, after, atEnd);
      return;
    }
    this.#column = Math.min(this.#column, columns - 1);
    this.#rows = rows;
    this.#top = Math.max(this.#top + Math.min(0, after - before), after - this.size.rows + 1);
    this.#row = after;
  }

  /** Keeps the last row of the screen in place and puts the cursor where tmux thinks it is. */
  #anchor(rows: Cells[], cursor: number, atEnd: boolean): void {
    const { size } = this;
    const below = Math.max(0, this.#top + size.rows - this.#rows.length);
    this.#rows = rows;
    this.#top = rows.length + below - size.rows;
    // Nobody knows how many rows a higher window takes back from the scrollback.
    this.rowIs = this.#top >= 0 && !this.#grown ? 'sure' : 'unknown';
    this.#row = cursor;
    const group = this.#groups().findLast(({ from }) => from <= cursor);
    const line =
      group && this.#astray > 0
        ? this.#groups()
            .filter(({ from }) => from < group.from)
            .at(-this.#astray)
        : undefined;
    if (line && atEnd) {
      this.#row = line.from + line.rows.length - 1;
      this.#column = this.#here().cells.length;
    } else if (line && group) this.#row = line.from + this.#place(line.rows, this.#offsetIn(group));
    this.#column = this.#row < this.#top ? 0 : Math.min(this.#column, size.columns - 1);
    this.#row = Math.max(this.#row, this.#top);
  }

  /** Returns the columns of its line before the cursor. */
  #offsetIn({ from, rows }: { readonly from: number; readonly rows: readonly Cells[] }): number {
    return rows.slice(0, this.#row - from).reduce((sum, { cells }) => sum + cells.length, 0) + this.#column;
  }

  /** Returns the row of a line that holds column `offset` of it, and puts the cursor into the column in that row. */
  #place(rows: readonly Cells[], offset: number): number {
    let rest = offset;
    for (const [index, { cells }] of rows.entries()) {
      if (rest < cells.length || index === rows.length - 1) {
        this.#column = rest;
        return index;
      }
      rest -= cells.length;
    }
    return 0;
  }

  #groups(): { readonly from: number; readonly rows: Cells[] }[] {
    const groups: { readonly from: number; readonly rows: Cells[] }[] = [];
    for (const [index, row] of this.#rows.entries()) {
      const last = groups.at(-1);
      if (row.soft && last) last.rows.push(row);
      else groups.push({ from: index, rows: [row] });
    }
    return groups;
  }

  #put(text: string): void {
    for (const { text: cluster, width } of clusters(text)) {
      if (width > 0 && this.#column + width > this.size.columns) {
        this.#down();
        this.#here().soft = true;
        this.#column = 0;
      }
      const { cells } = this.#here();
      while (cells.length < this.#column) cells.push(' ');
      if (width === 0) {
        cells[this.#column - 1] = (cells[this.#column - 1] ?? '') + cluster;
        continue;
      }
      cells[this.#column] = cluster;
      if (width === 2) cells[this.#column + 1] = '';
      this.#column += width;
    }
  }

  #here(): Cells {
    while (this.#rows.length <= this.#row) this.#rows.push({ cells: [], soft: false });
    return this.#rows[this.#row] ?? { cells: [], soft: false };
  }

  #down(): void {
    this.#row++;
    this.#top = Math.max(this.#top, this.#row - this.size.rows + 1);
    this.#here().soft = false;
  }

  #control(final: string, parameters: string): void {
    const count = Math.max(1, Number(parameters) || 1);
    const last = this.size.columns - 1;
    if (final === 'A') this.#row = Math.max(this.#top, 0, this.#row - count);
    else if (final === 'B') this.#row = Math.min(this.#top + this.size.rows - 1, this.#row + count);
    else if (final === 'C') this.#column = Math.min(last, this.#column + count);
    else if (final === 'G') this.#column = Math.min(last, count - 1);
    else if (final === 'K' || final === 'J') this.#erase(final === 'J');
  }

  #erase(below: boolean): void {
    const row = this.#here();
    row.cells.length = Math.min(row.cells.length, this.cursor.column);
    if (this.#column === 0) row.soft = false;
    if (below) this.#rows.length = this.#row + 1;
  }
}

function cellsOf(text: string): string[] {
  const cells: string[] = [];
  for (const { text: cluster, width } of clusters(withoutSgr(text))) {
    if (width === 0)
      addAll(
        cells,
        cells.splice(-1).map((cell) => cell + cluster),
      );
    else cells.push(cluster, ...(width === 2 ? [''] : []));
  }
  return cells;
}

function wrapCells(cells: readonly string[], columns: number): Cells[] {
  const rows: Cells[] = [{ cells: [], soft: false }];
  for (let at = 0; at < cells.length;) {
    const width = cells[at + 1] === '' ? 2 : 1;
    const last = rows.at(-1);
    if (last && (last.cells.length + width <= columns || last.cells.length === 0))
      addAll(last.cells, cells.slice(at, at + width));
    else rows.push({ cells: cells.slice(at, at + width), soft: true });
    at += width;
  }
  return rows;
}
