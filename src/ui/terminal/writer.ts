import { type ScreenChange, RowPainter, type RowPlace } from './painter.js';
import type { Reflow, ScreenSize, Standing } from './reflow.js';
import { createSentOutput, type CursorPlace, placeAfter, type SentOutput, wayTo } from './resize.js';
import { dropColumns, emptyRow, type Row, takeColumns, textWidth, wrapLine } from './rows.js';
import type { TerminalAnswer, Painted } from './streams.js';

export type { ScreenSize } from './reflow.js';

/** The lines below the scrollback. `cursor.line` indexes `lines`; `column` is the column in that line, which must not
 * wrap. */
export interface LiveArea {
  readonly lines: readonly string[];
  /** The number of first lines whose text will move into the scrollback; 0 if missing. */
  readonly text?: number;
  readonly cursor: { readonly line: number; readonly column: number };
}

/** The part of the live lines that moved into the scrollback when the terminal became smaller: whole lines from the
 * top, then columns of the next line. */
export interface Lost {
  readonly lines: number;
  readonly columns: number;
}

interface ScreenOptions {
  readonly write: (text: string) => void;
  readonly size: ScreenSize;
  readonly synchronized: boolean;
  /** Returns the possible behaviours of the terminal at a resize, the likeliest first. */
  readonly reflow: () => readonly Reflow[];
  /** Returns the sequence that asks the terminal where it is; null if it must not be asked now. Missing: it is never
   * asked. */
  readonly question?: (urgent: boolean) => string | null;
  /** Returns true if it answers so fast that a frame may wait for it. */
  readonly quick?: () => boolean;
  /** The lines that the first frame painted. */
  readonly painted?: Painted;
  /** Called before each frame is written, with its rows above the cursor that a later frame removes. */
  readonly onFrame?: ((rowsAbove: number) => void) | undefined;
}

const beginFrame = '\x1b[?2026h';
const endFrame = '\x1b[?2026l';
const hideCursor = '\x1b[?25l';
const showCursor = '\x1b[?25h';
/** After this many characters without an answer the terminal will not answer any more. */
const mostWaiting = 262_144;

/** A frame that adds more rows than this is written in two steps if the terminal answers at once. Rows that scroll off
 * the screen cannot be repaired, so they must not meet an unexpected size. */
const mostAtOnce = 1;

interface Frame {
  readonly target: readonly Row[];
  readonly cursor: RowPlace;
  readonly committed: number;
  readonly printed: Printable;
  /** The live rows of text that will move into the scrollback. */
  readonly textRows: number;
}

interface Waiting {
  readonly frame: Frame;
  readonly change: ScreenChange;
  readonly textLines: number;
}

/** The only writer to the terminal. It prints lines once, which then belong to the scrollback, and keeps live lines
 * below them, of which it writes only the changes. Lines are logical: the terminal wraps them. A committed line that is
 * on the screen as a live line already costs nothing. It never clears the screen and never touches what is above the
 * live lines. See docs/decisions/0002-screen-writer.md. */
export class Writer {
  readonly #options: ScreenOptions;
  readonly #painter: RowPainter;
  readonly #sent: SentOutput;
  #size: ScreenSize;
  #pending: string[] = [];
  #pendingPartial = false;
  /** Columns of the first live line that are committed already; 0 if it starts a line. */
  #headColumns = 0;
  #textLines = 0;
  readonly #printed = new PrintedLines();
  #lastAnswer: TerminalAnswer | null = null;
  /** The place to continue from after a new size. The cursor moves there; nothing else has changed yet. */
  #aim: CursorPlace | null = null;
  /** A frame that waits for an answer. The terminal has received only the way to its first change. */
  #waiting: Waiting | null = null;
  #wrapped = new Map<string, readonly Row[]>();

  constructor(options: ScreenOptions) {
    this.#options = options;
    this.#size = options.size;
    this.#painter = new RowPainter(options.size.columns);
    if (options.painted) {
      // Where output that meets another size takes them, they are printed again.
      this.#print(options.painted.printed ?? [], false);
      const { lines } = options.painted;
      // It was painted at another width if that has changed since.
      const isCut = options.reflow()[0] === 'none';
      const rows = this.#wrapAll(isCut ? lines.map((line) => takeColumns(line, this.#size.columns)) : lines, false);
      this.#painter.assume(rows, rows.length - 1, options.painted.column);
    }
    this.#sent = createSentOutput(this.#standing(), options.reflow);
  }

  get size(): ScreenSize {
    return this.#size;
  }

  /** Prints lines with the next `draw`. If `partial`, the last of them continues in the first live line and in the next
   * commit. */
  commit(lines: readonly string[], partial = false): void {
    if (lines.length === 0) return;
    const first = lines[0] ?? '';
    const open = this.#pending.length > 0 ? this.#pendingPartial : this.#headColumns > 0;
    if (open && first === '' && this.#pending.length === 0) {
      this.#closeHead(lines.slice(1), partial);
      return;
    }
    if (this.#pendingPartial && this.#pending.length > 0)
      this.#pending = [...this.#pending.slice(0, -1), (this.#pending.at(-1) ?? '') + first, ...lines.slice(1)];
    else this.#pending = [...this.#pending, ...lines];
    this.#pendingPartial = partial;
  }

  /** Writes one frame. Live rows beyond the height less two are left out at the top. Returns true if the terminal is
   * asked first where it is: then `settle` writes the frame, and nothing else may be drawn before. */
  draw(live: LiveArea): boolean {
    const printed = printable(this.#pending, this.#pendingPartial, {
      next: live.lines[0] ?? '',
      columns: this.#size.columns,
      head: this.#headColumns,
    });
    const committed = this.#wrapAll(printed.lines, this.#headColumns > 0);
    const lines = live.lines.map((line, index) => (index === 0 ? printed.rest + line : line));
    const all = lines.map((line, index) => this.#wrap(line, index === 0 && printed.head > 0));
    const cursorRow = all.slice(0, live.cursor.line).reduce((sum, rows) => sum + rows.length, 0);
    const rows = all.flat();
    const most = Math.max(1, this.#size.rows - 1);
    const skipped = Math.max(0, rows.length - most);
    const target = [...committed, ...rows.slice(skipped)];
    this.#wrapped = new Map(lines.map((line, index) => [line, all[index] ?? []]));
    const textLines = skipped > 0 ? 0 : (live.text ?? 0);
    const frame = {
      target,
      textRows: all.slice(0, textLines).reduce((sum, wrapped) => sum + wrapped.length, 0),
      cursor: { row: committed.length + Math.max(0, cursorRow - skipped), column: live.cursor.column },
      committed: committed.length,
      printed,
    };
    const many = target.length - this.#painter.painted.length > mostAtOnce;
    if (many && this.#options.quick?.() === true && this.#goToChange(frame, textLines)) return true;
    this.#textLines = textLines;
    this.#frame(frame);
    return false;
  }

  /** Takes the new size and moves back to the first live line, assuming that the terminal has read all that was
   * written. The next `draw` paints all live lines. */
  resize(size: ScreenSize): Lost {
    this.#waiting = null;
    this.#aim = null;
    const place = placeAfter(this.#standing(), size, this.#options.reflow()[0] ?? 'all');
    this.#size = size;
    this.#write(wayTo(place));
    const lost = this.#goOn(place);
    this.#sent.restart(this.#standing());
    return lost;
  }

  /** Asks the terminal where it is. Returns false if it must not be asked. */
  ask(): boolean {
    const question = this.#options.question?.(true) ?? null;
    if (question === null) return false;
    this.#options.write(question);
    this.#sent.asked(this.#standing(), false);
    return true;
  }

  /** Takes the answer to the oldest question. Returns false if the terminal had another size than expected. */
  answered(answer: TerminalAnswer): boolean {
    this.#lastAnswer = answer;
    return this.#sent.answered(answer);
  }

  /** Ends the wait for answers. If rows have moved, it takes the size that the terminal reported, drops a waiting frame
   * and moves back to where the screen is still right; returns null if nothing has moved. `asked`: the terminal is
   * asked whether it has got there, and nothing may be drawn before the next `settle`. */
  settle(): Lost | 'asked' | null {
    const waiting = this.#waiting;
    const aim = this.#aim;
    this.#waiting = null;
    this.#aim = null;
    const place = this.#sent.place(this.#standing());
    if (!place || !this.#lastAnswer) {
      if (waiting) this.#append(waiting);
      return aim ? this.#arrive(aim) : null;
    }
    this.#size = this.#lastAnswer.size;
    if (this.#aimAt(place)) return 'asked';
    this.#write(wayTo(place));
    return this.#goOn(place);
  }

  /** Moves to where the screen is still right, and asks: the size may have changed again, and erasing cannot be
   * undone. */
  #aimAt(place: CursorPlace): boolean {
    const question = this.#options.quick?.() === true ? (this.#options.question?.(true) ?? null) : null;
    if (question === null) return false;
    this.#aim = place;
    this.#sent.wrote(wayTo(place));
    this.#sent.asked(this.#standing(), true);
    this.#options.write(wayTo(place) + question);
    return true;
  }

  #arrive(place: CursorPlace): Lost {
    const lost = this.#goOn(place);
    this.#sent.restart(this.#standing(), this.#lastAnswer?.row ?? null);
    return lost;
  }

  /** Writes a sequence that neither draws nor moves the cursor (clipboard, title). */
  control(sequence: string): void {
    this.#options.write(sequence);
  }

  /** Removes the live lines and leaves the cursor at the start of an empty row. */
  close(): void {
    this.draw({ lines: [''], cursor: { line: 0, column: 0 } });
  }

  /** Forgets what is painted. The cursor is at the start of an empty row, because another program drew. */
  restart(size: ScreenSize): void {
    this.#waiting = null;
    this.#aim = null;
    this.#size = size;
    this.#painter.columns = size.columns;
    this.#painter.assume([emptyRow], 0, 0);
    this.#wrapped.clear();
    this.#headColumns = 0;
    this.#textLines = 0;
    this.#printed.forget();
    this.#sent.restart(this.#standing());
  }

  /** Ends the open line: what follows begins on a row of its own. */
  #closeHead(lines: readonly string[], partial: boolean): void {
    this.#headColumns = 0;
    this.commit(lines, partial);
  }

  #standing(): Standing {
    const { painted, row, column } = this.#painter;
    return {
      size: this.#size,
      printed: this.#printed.lines,
      first: this.#printed.first,
      open: this.#headColumns > 0,
      rows: painted,
      row,
      column,
    };
  }

  /** Prints again what is missing from the cursor on. It erases from the second column on: tmux takes `ESC[J` in the
   * home position for a clear screen and moves what it erases into the scrollback. */
  #goOn({ line, offset }: CursorPlace): Lost {
    const live = this.#printed.end - (this.#headColumns > 0 ? 1 : 0);
    const again = line < live || (line === live && offset < this.#headColumns);
    const lost = again
      ? { lines: 0, columns: 0 }
      : this.#textOf({ lines: line - live, columns: offset - (line === live ? this.#headColumns : 0) });
    if (again) this.#printAgain(line, offset);
    else this.#takeLost(line - live, offset);
    const left = again ? lost : this.#dropLost(lost);
    const soft = this.#headColumns > 0;
    this.#write(`\x1b[C\x1b[J\r${soft ? '' : '\x1b[K'}`);
    this.#painter.columns = this.#size.columns;
    // The first column of a row that continues may still hold something. Erasing it would separate the row from the one
    // above.
    this.#painter.assume([soft ? { text: ' ', width: 1, soft, certain: false } : emptyRow], 0, 0);
    this.#wrapped.clear();
    return left;
  }

  /** Returns the part of it that was text on its way into the scrollback. Its last line may have grown since it was
   * painted, so that line counts by its columns. */
  #textOf(lost: Lost): Lost {
    if (lost.lines < this.#textLines) return lost;
    if (this.#textLines === 0) return { lines: 0, columns: 0 };
    return { lines: this.#textLines - 1, columns: textWidth(this.#painter.lines()[this.#textLines - 1] ?? '') };
  }

  /** Drops the beginning of what waits to be printed, because it is on the screen already. */
  #dropLost(lost: Lost): Lost {
    // A last line that continues is the beginning of the first live line.
    const count = this.#pending.length - (this.#pendingPartial && this.#pending.length > 0 ? 1 : 0);
    const goesOn = textWidth(this.#pending[count] ?? '');
    if (lost.lines > count || (lost.lines === count && lost.columns >= goesOn)) {
      this.#pending = [];
      return { lines: lost.lines - count, columns: lost.columns - (lost.lines === count ? goesOn : 0) };
    }
    this.#pending = this.#pending
      .slice(lost.lines)
      .map((text, index) => (index === 0 ? dropColumns(text, lost.columns) : text));
    return { lines: 0, columns: 0 };
  }

  #printAgain(line: number, offset: number): void {
    const again = this.#printed.takeBack(line, offset);
    const added = this.#pending;
    const addedPartial = this.#pendingPartial;
    this.#pending = again.map((text, index) => (index === 0 ? dropColumns(text, offset) : text));
    this.#pendingPartial = this.#headColumns > 0;
    this.#headColumns = offset;
    this.commit(added, addedPartial);
  }

  /** Counts live lines that the terminal has pushed off its top as printed. */
  #takeLost(count: number, offset: number): void {
    const lines = this.#painter.lines();
    const open = this.#headColumns > 0;
    const goesOn = offset > 0 && count < this.#textLines;
    const before = count === 0 && open ? this.#headColumns : 0;
    this.#print(
      [...lines.slice(0, count), ...(goesOn ? [takeColumns(lines[count] ?? '', offset - before)] : [])],
      open,
    );
    this.#headColumns = goesOn ? offset : 0;
  }

  #print(lines: readonly string[], open: boolean): void {
    this.#printed.add(lines, open, 2 * this.#size.rows);
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

  #write(text: string): void {
    this.#options.write(text);
    this.#sent.wrote(text);
  }

  #frame(frame: Frame): void {
    const { out, quiet } = this.#painter.paint(frame.target, frame.cursor);
    this.#painted(frame);
    if (out === '') return;
    this.#sent.wrote(out);
    const question = quiet && (frame.committed > 0 || this.#textLines > 0) ? this.#question(false) : '';
    this.#options.write(quiet ? this.#asFrame(out + question) : out);
  }

  #goToChange(frame: Frame, textLines: number): boolean {
    const question = this.#options.question?.(true) ?? null;
    if (question === null) return false;
    const { out, change } = this.#painter.goToChange(frame.target);
    this.#waiting = { frame, change, textLines };
    this.#sent.wrote(out);
    this.#sent.asked(this.#standing(), true);
    this.#options.write(hideCursor + out + question);
    return true;
  }

  #append({ frame, change, textLines }: Waiting): void {
    const out = this.#painter.append(frame.target, change, frame.cursor);
    this.#textLines = textLines;
    this.#painted(frame);
    this.#sent.wrote(out);
    this.#options.write(this.#asFrame(out + this.#question(false)));
  }

  /** Returns the question to write after the output, if the terminal is to be asked. */
  #question(urgent: boolean): string {
    const question = this.#options.question?.(urgent) ?? '';
    if (question !== '') this.#sent.asked(this.#standing(), true);
    if (this.#sent.waiting > mostWaiting) this.#sent.restart(this.#standing());
    return question;
  }

  #painted({ committed, textRows, printed: { lines, head, rest } }: Frame): void {
    this.#painter.release(committed);
    this.#options.onFrame?.(Math.max(0, this.#painter.row - textRows));
    this.#print(lines, this.#headColumns > 0);
    this.#pending = rest === '' ? [] : [rest];
    this.#headColumns = head;
  }

  #asFrame(out: string): string {
    return this.#options.synchronized
      ? `${beginFrame}${hideCursor}${out}${showCursor}${endFrame}`
      : hideCursor + out + showCursor;
  }
}

/** The output of a frame from the waiting lines, the columns of the open line that are above after it, and the rest. Of
 * a line that continues only whole rows are printed, so that the first live row always begins a row. */
interface Printable {
  readonly lines: readonly string[];
  readonly head: number;
  readonly rest: string;
}

/** `partial`: the last of `lines` continues with `next`. `head`: columns of the first line that are above already. */
function printable(
  lines: readonly string[],
  partial: boolean,
  { next, columns, head }: { readonly next: string; readonly columns: number; readonly head: number },
): Printable {
  const last = lines.at(-1);
  if (last === undefined) return { lines: [], head, rest: '' };
  if (!partial) return { lines, head: 0, rest: '' };
  const width = textWidth(last);
  let whole = 0;
  for (const row of wrapLine(last + next, columns)) {
    if (whole + row.width > width) break;
    whole += row.width;
  }
  const before = lines.slice(0, -1);
  return {
    lines: whole > 0 ? [...before, takeColumns(last, whole)] : before,
    head: whole + (before.length === 0 ? head : 0),
    rest: dropColumns(last, whole),
  };
}

/** The last printed lines, numbered from the first line ever printed. It keeps as many as the cursor may be away. */
class PrintedLines {
  #lines: readonly string[] = [];
  #first = 0;

  get lines(): readonly string[] {
    return this.#lines;
  }
  /** The number of the first of them. */
  get first(): number {
    return this.#first;
  }
  /** The number of the next line. */
  get end(): number {
    return this.#first + this.#lines.length;
  }

  /** `open`: the first line continues the line before it. */
  add(lines: readonly string[], open: boolean, most: number): void {
    if (lines.length === 0) return;
    const joins = open && this.#lines.length > 0;
    const all = joins
      ? [...this.#lines.slice(0, -1), (this.#lines.at(-1) ?? '') + (lines[0] ?? ''), ...lines.slice(1)]
      : [...this.#lines, ...lines];
    const kept = all.slice(-most);
    this.#first += all.length - kept.length;
    this.#lines = kept;
  }

  /** Removes what is behind column `offset` of line `number`. Returns that line as it was, and those after it. */
  takeBack(number: number, offset: number): readonly string[] {
    const index = number - this.#first;
    const taken = this.#lines.slice(index);
    this.#lines = [...this.#lines.slice(0, index), ...(offset > 0 ? [takeColumns(taken[0] ?? '', offset)] : [])];
    return taken;
  }

  forget(): void {
    this.#first = this.end;
    this.#lines = [];
  }
}
