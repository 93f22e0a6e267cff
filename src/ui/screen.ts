import { commonPrefix, emptyRow, noPrefix, wrapLine, type Row } from './rows.js';

/** What stands below the scrollback. `cursor.line` indexes `lines`; `column` is the column in that line, which must not be wrapped. */
export interface Live {
  readonly lines: readonly string[];
  readonly cursor: { readonly line: number; readonly column: number };
}

/** What was lost to the scrollback when the terminal became smaller: whole live lines from the top, then columns of the next. */
export interface Lost { readonly lines: number; readonly columns: number }

/** The one writer to the terminal: lines that are printed once and then belong to the scrollback, and below them live lines of which only
 *  what changed is written. Lines are logical: the terminal wraps them. A committed line that stands already where the live one stood
 *  costs nothing. Never clears the screen, never touches what is above its anchor. See docs/decisions/0002-screen-writer.md. */
export interface Screen {
  /** Prints lines with the next `draw`. With `partial` the last of them goes on in the first live line (and in the next commit). */
  commit(lines: readonly string[], partial?: boolean): void;
  /** Writes one frame. Live rows beyond the height less two are left out at the top. */
  draw(live: Live): void;
  /** Takes the new size and moves back to the anchor; the next `draw` paints anew. */
  resize(size: ScreenSize): Lost;
  readonly size: ScreenSize;
  /** Writes a sequence that neither draws nor moves the cursor (clipboard, title). */
  control(sequence: string): void;
  /** Takes the live lines away and leaves the cursor at the start of an empty row. */
  close(): void;
  /** Forgets what is painted: the cursor stands at the start of an empty row (after another program drew). */
  restart(): void;
}

export interface ScreenSize { readonly columns: number; readonly rows: number }

export interface ScreenOptions {
  readonly write: (text: string) => void;
  readonly size: ScreenSize;
  readonly synchronized: boolean;
  readonly reflows: boolean;
  /** What a first frame has put on the terminal already. */
  readonly painted?: { readonly lines: readonly string[]; readonly line: number; readonly column: number };
}

const beginFrame = '\x1b[?2026h';
const endFrame = '\x1b[?2026l';
const hideCursor = '\x1b[?25l';
const showCursor = '\x1b[?25h';

export function createScreen(options: ScreenOptions): Screen {
  return new Writer(options);
}

class Writer implements Screen {
  readonly #write: (text: string) => void;
  readonly #synchronized: boolean;
  readonly #reflows: boolean;
  #size: ScreenSize;
  #painted: readonly Row[] = [emptyRow];
  #row = 0;
  /** -1 where the terminal waits to wrap and nobody can say. */
  #column = 0;
  #pending: string[] = [];
  #pendingPartial = false;
  /** Columns of the first live line that are committed already; 0 where it starts a line. */
  #headColumns = 0;
  #wrapped = new Map<string, readonly Row[]>();

  constructor(options: ScreenOptions) {
    this.#write = options.write;
    this.#size = options.size;
    this.#synchronized = options.synchronized;
    this.#reflows = options.reflows;
    if (options.painted) {
      this.#painted = this.#wrapAll(options.painted.lines, false);
      this.#row = options.painted.line;
      this.#column = options.painted.column;
    }
  }

  get size(): ScreenSize { return this.#size; }

  commit(lines: readonly string[], partial = false): void {
    if (lines.length === 0) return;
    const first = lines[0] ?? '';
    const open = this.#pending.length > 0 ? this.#pendingPartial : this.#headColumns > 0;
    if (open && first === '' && this.#pending.length === 0) { this.#closeHead(lines.slice(1), partial); return; }
    if (this.#pendingPartial && this.#pending.length > 0) this.#pending = [...this.#pending.slice(0, -1), (this.#pending.at(-1) ?? '') + first, ...lines.slice(1)];
    else this.#pending = [...this.#pending, ...lines];
    this.#pendingPartial = partial;
  }

  draw(live: Live): void {
    const committed = this.#wrapAll(this.#pending, this.#headColumns > 0);
    const continues = this.#pending.length > 0 ? this.#pendingPartial : this.#headColumns > 0;
    const head = this.#headAfter(committed);
    const all = live.lines.map((line, index) => this.#wrap(line, index === 0 && continues));
    const cursorRow = all.slice(0, live.cursor.line).reduce((sum, rows) => sum + rows.length, 0);
    const rows = all.flat();
    const most = Math.max(1, this.#size.rows - 1);
    const skipped = Math.max(0, rows.length - most);
    const target = [...committed, ...rows.slice(skipped)];
    this.#frame(target, committed.length + Math.max(0, cursorRow - skipped), live.cursor.column);
    this.#painted = target.slice(committed.length);
    this.#row -= committed.length;
    this.#pending = [];
    this.#headColumns = head;
    this.#wrapped = new Map(live.lines.map((line, index) => [line, all[index] ?? []]));
  }

  resize(size: ScreenSize): Lost {
    const old = this.#size;
    this.#size = size;
    this.#wrapped.clear();
    const lines = this.#logical();
    const reflow = this.#reflows && old.columns !== size.columns;
    const heights = lines.map((line) => (reflow ? this.#heightAt(line, size.columns) : line.rows));
    const above = heights.slice(0, this.#cursorLine(lines)).reduce((sum, rows) => sum + rows, 0);
    const inLine = this.#row - lines.slice(0, this.#cursorLine(lines)).reduce((sum, line) => sum + line.rows, 0);
    const up = above + Math.max(0, inLine);
    const below = heights.slice(this.#cursorLine(lines)).reduce((sum, rows) => sum + rows, 0) - Math.max(0, inLine) - 1;
    const lost = Math.max(0, up + 1 + below - size.rows);
    this.#backToAnchor(up - Math.min(lost, up), lost > 0);
    const result = this.#lostLines(lines, heights, lost);
    this.restart();
    this.#pendingPartial = false;
    return result;
  }

  control(sequence: string): void { this.#write(sequence); }

  close(): void {
    this.draw({ lines: [''], cursor: { line: 0, column: 0 } });
  }

  /** The open line turned out to be complete: what follows begins on a row of its own. */
  #closeHead(lines: readonly string[], partial: boolean): void {
    this.#headColumns = 0;
    this.commit(lines, partial);
  }

  restart(): void {
    this.#painted = [emptyRow];
    this.#row = 0;
    this.#column = 0;
    this.#headColumns = 0;
  }

  /** Columns of the open line that stand above the live region after `committed` has been printed. */
  #headAfter(committed: readonly Row[]): number {
    if (this.#pending.length === 0) return this.#headColumns;
    if (!this.#pendingPartial) return 0;
    const last = committed.slice(committed.findLastIndex((row) => !row.soft)).reduce((sum, row) => sum + row.width, 0);
    return last + (this.#pending.length === 1 ? this.#headColumns : 0);
  }

  /** Erases from the second column on: tmux takes `ESC[J` in the home position for a clear screen and puts what it erases into the scrollback. */
  #backToAnchor(up: number, lost: boolean): void {
    const offset = lost ? 0 : this.#headColumns % this.#size.columns;
    const rise = up > 0 ? `\x1b[${up}A` : '';
    this.#write(offset > 0 ? `\r${rise}\x1b[${offset}C\x1b[J\r\n` : `\r${rise}\x1b[C\x1b[J\r\x1b[K`);
  }

  /** The painted rows as the lines they were written as. */
  #logical(): { readonly width: number; rows: number }[] {
    const lines: { width: number; rows: number }[] = [];
    for (const row of this.#painted) {
      const last = lines.at(-1);
      if (row.soft && last) { last.width += row.width; last.rows++; } else lines.push({ width: row.width, rows: 1 });
    }
    const first = lines[0];
    if (first) first.width += this.#headColumns;
    return lines;
  }

  #heightAt(line: { readonly width: number }, columns: number): number {
    return Math.max(1, Math.ceil(line.width / columns));
  }

  #cursorLine(lines: readonly { readonly rows: number }[]): number {
    let row = 0;
    for (const [index, line] of lines.entries()) {
      row += line.rows;
      if (this.#row < row) return index;
    }
    return Math.max(0, lines.length - 1);
  }

  #lostLines(lines: readonly { readonly width: number }[], heights: readonly number[], lost: number): Lost {
    let rest = lost;
    for (const [index, height] of heights.entries()) {
      const printed = Math.min(rest * this.#size.columns, lines[index]?.width ?? 0) - (index === 0 ? this.#headColumns : 0);
      if (rest < height) return { lines: index, columns: Math.max(0, printed) };
      rest -= height;
    }
    return { lines: lines.length, columns: 0 };
  }

  #wrapAll(lines: readonly string[], continues: boolean): Row[] {
    return lines.flatMap((line, index) => this.#wrap(line, continues && index === 0));
  }

  #wrap(line: string, continues: boolean): readonly Row[] {
    const rows = this.#wrapped.get(line) ?? wrapLine(line, this.#size.columns);
    const first = rows[0];
    if (!first || first.soft === continues || line === '') return rows;
    return [{ ...first, soft: continues }, ...rows.slice(1)];
  }

  #frame(target: readonly Row[], cursorRow: number, cursorColumn: number): void {
    const startRow = this.#row;
    let out = '';
    let touched = 0;
    let elsewhere = false;
    for (let i = 0; i < target.length; i++) {
      const row = target[i] ?? emptyRow;
      const old = this.#painted[i];
      if (old && old.text === row.text && old.soft === row.soft) continue;
      out += this.#paintRow(target, i, row, old);
      touched++;
      elsewhere ||= i !== startRow;
    }
    if (this.#painted.length > target.length) {
      out += `${this.#moveTo(target.length, 0)}\x1b[J`;
      touched++;
      elsewhere = true;
    }
    out += this.#moveTo(cursorRow, cursorColumn);
    if (out === '') return;
    const quiet = touched > 1 || (touched === 1 && elsewhere);
    this.#write(quiet ? this.#asFrame(out) : out);
  }

  #asFrame(out: string): string {
    return this.#synchronized ? `${beginFrame}${hideCursor}${out}${showCursor}${endFrame}` : hideCursor + out + showCursor;
  }

  #paintRow(target: readonly Row[], index: number, row: Row, old: Row | undefined): string {
    if (row.soft && !old?.soft && index > 0) return this.#paintContinuation(target, index, row, old);
    if (!old) return this.#newRow(index) + this.#put(row, 0);
    // A row that becomes narrower is erased from its start: tmux counts cells erased behind a text as part of it when it rewraps.
    if ((old.soft && !row.soft) || old.width > row.width) return `${this.#moveTo(index, 0)}\x1b[K${this.#put(row, 0)}`;
    const same = old.certain && row.certain ? commonPrefix(old.text, row.text) : noPrefix;
    return this.#moveTo(index, same.columns) + same.open + this.#put(row, same.length);
  }

  /** A row that the terminal itself must wrap into, so that it knows the two as one line. */
  #paintContinuation(target: readonly Row[], index: number, row: Row, old: Row | undefined): string {
    const above = target[index - 1] ?? emptyRow;
    const erased = old !== undefined && old.width > row.width ? `${this.#moveTo(index, 0)}\x1b[K` : '';
    const waiting = this.#row === index - 1 && this.#column === -1;
    const lead = waiting ? '' : this.#moveTo(index - 1, 0) + this.#put(above, 0);
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

  /** The text of a row from code unit `from` on; the cursor stands where that begins. */
  #put(row: Row, from: number): string {
    this.#column = row.width >= this.#size.columns ? -1 : row.width;
    return row.text.slice(from);
  }

  #moveTo(row: number, column: number): string {
    const down = row - this.#row;
    const target = Math.min(column, this.#size.columns - 1);
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
