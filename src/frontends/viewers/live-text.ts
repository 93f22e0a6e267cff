import { addAll } from '../../kernel/core/lists.js';
import { wrapLine } from '../../ui/terminal/rows.js';
import type { ItemStyle } from '../../ui/item-style.js';
import { MarkdownStream } from '../../ui/markdown/incremental.js';

export interface LiveOutput {
  /** Null where the output is no terminal. */
  size(): { readonly columns: number; readonly rows: number } | null;
  print(text: string): void;
  /** Erases the row that the cursor is in, and `above` rows before it. */
  eraseRows(above: number): void;
}

/** The answer that streams, as Markdown. Its finished blocks are printed for good; the open one is shown below them, and
 * drawn again as it grows, where the output is a terminal. */
export class LiveText {
  readonly #style: ItemStyle;
  readonly #output: LiveOutput;
  #stream: MarkdownStream | null = null;
  /** The answer so far. */
  #text = '';
  /** The finished lines of it. */
  #done: string[] = [];
  #open: readonly string[] = [];
  /** Lines below the open block, which are erased when others are printed. */
  #below: readonly string[] = [];
  /** The rows of the open block that are on the screen. The cursor is at the end of the last one. */
  #drawn: readonly string[] = [];

  constructor(style: ItemStyle, output: LiveOutput) {
    this.#style = style;
    this.#output = output;
  }

  /** Sets the lines below the open block, which the next `draw` shows. */
  setBelow(lines: readonly string[]): void {
    this.#below = lines;
  }

  /** Returns true if anything of the answer is printed. */
  isShown(): boolean {
    return this.#done.length > 0 || (this.#drawn.length > 0 && this.#open.length > 0);
  }

  /** Takes the whole answer so far. Returns the lines that are finished by it. */
  update(text: string): readonly string[] {
    const rest = text.startsWith(this.#text) ? [] : this.stop();
    this.#stream ??= this.#newStream();
    this.#text = text;
    const { done, open } = this.#stream.update(text);
    addAll(this.#done, done);
    this.#open = open;
    return [...rest, ...done];
  }

  /** Returns what is missing of the recorded answer. Where that differs from what streamed, because secrets are masked
   * in it, it is returned from the first line that differs. */
  finish(text: string): readonly string[] {
    const isSame = text.startsWith(this.#text);
    const lines = ((isSame ? this.#stream : null) ?? this.#newStream()).finish(text);
    const differs = isSame ? 0 : lines.findIndex((line, index) => line !== this.#done[index]);
    this.#clear();
    return differs < 0 ? [] : lines.slice(differs);
  }

  /** Ends an answer that does not continue. Returns the lines of its open block. */
  stop(): readonly string[] {
    const rest = this.#open;
    this.#clear();
    return rest;
  }

  #newStream(): MarkdownStream {
    return new MarkdownStream({ ...this.#style, highlight: this.#style.highlight ?? (() => null) });
  }

  #clear(): void {
    this.#stream = null;
    this.#text = '';
    this.#done = [];
    this.#open = [];
  }

  /** Prints lines in place of the open block, and the open block below them. Rows that stay as they are stay. */
  draw(lines: readonly string[]): void {
    const open = this.#openRows();
    const rows = [...lines, ...open];
    const before = this.#drawn;
    this.#drawn = open;
    const differs = before.findIndex((row, index) => row !== rows[index]);
    const same = differs < 0 ? before.length : differs;
    if (same === before.length && same === rows.length && open.length > 0) return;
    const text = this.#textAfter(before, rows, same);
    const isAtEnd = open.length === 0 && rows.length > 0;
    if (isAtEnd || text !== '') this.#output.print(isAtEnd ? `${text}\n` : text);
  }

  /** Erases the rows that do not stay. Returns what comes from where the cursor is then. */
  #textAfter(before: readonly string[], rows: readonly string[], same: number): string {
    const text = rows.slice(same).join('\n');
    const begun = same === before.length - 1 ? before[same] : undefined;
    if (begun !== undefined && rows[same]?.startsWith(begun) === true) return text.slice(begun.length);
    if (same < before.length) this.#output.eraseRows(before.length - 1 - same);
    else if (before.length > 0 && same < rows.length) return `\n${text}`;
    return text;
  }

  /** The end of the open block that fits on the screen: only rows on the screen can be drawn again. */
  #openRows(): readonly string[] {
    const size = this.#output.size();
    if (size === null) return [];
    const rows = [...this.#open, ...this.#below].flatMap((line) =>
      wrapLine(line, size.columns).map(({ text }) => text),
    );
    return rows.slice(-Math.max(1, size.rows - 2));
  }
}
