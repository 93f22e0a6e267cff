import type { Event } from '../kernel/core/event.js';
import { createLinks, dropColumns, type Links, withErase, wrapLine } from './terminal/rows.js';
import type { Lost } from './terminal/writer.js';
import { createKeyMap } from './editor/keybindings.js';
import { earlierText, lastExchange } from './event-text.js';
import { itemLines } from './item-lines.js';
import type { ItemStyle, ResultDetail } from './item-style.js';
import type { MarkdownStyle } from './markdown/blocks.js';
import { createHighlighter, type Highlighter } from './markdown/highlight.js';
import { MarkdownStream, renderMarkdown } from './markdown/incremental.js';
import { createTheme, type TerminalFacts } from '../kernel/console/theme.js';
import { readCall, type CallText } from './calls/call-readings.js';
import { languageOfPath, pathOfDiff } from './diff-lines.js';
import type { TranscriptItem } from './view.js';

/** The lines that a frame adds to the scrollback. `partial`: the last line
 * continues in the open ones. */
export interface Printed {
  readonly lines: readonly string[];
  readonly partial: boolean;
}

/** Turns finished items and the streaming text into lines, each given out once.
 * Keeps the part of the text that is still open small. */
export class Transcript {
  #style: ItemStyle;
  readonly #highlighter: Highlighter;
  #stream: MarkdownStream | null = null;
  #text = '';
  #open: readonly string[] = [];
  /** The part of the open block that is in the scrollback already. */
  #printed = { lines: 0, columns: 0 };
  #out: string[] = [];
  #partial = false;
  #last: TranscriptItem['type'] | 'other' | null = null;
  /** The width of the open block. It stays while a part of the block is printed,
   * because another width breaks the lines elsewhere. */
  #blockColumns: number;

  constructor(style: ItemStyle, highlighter: Highlighter) {
    this.#style = style;
    this.#highlighter = highlighter;
    this.#blockColumns = style.columns;
  }

  /** Continues below the output of another transcript, which streams nothing. */
  follow(before: Transcript): void {
    this.#last = before.#last;
  }

  /** Adds `items` in order, then `text`, which streams now. `maxRows` bounds the
   * open lines; the rest is returned for printing. */
  advance(items: readonly TranscriptItem[], text: string, maxRows: number): Printed {
    for (const item of items) this.#take(item);
    if (text !== '' || this.#stream) this.#streamTo(text);
    this.#bound(maxRows);
    const printed = { lines: this.#out, partial: this.#partial };
    this.#out = [];
    this.#partial = false;
    return printed;
  }

  /** Prints other lines, after an empty line unless `attached` to those before. */
  print(lines: readonly string[], attached = false): void {
    if (!attached || this.#last !== 'other') this.#begin('other');
    this.#out = [...this.#out, ...lines];
  }

  open(): readonly string[] {
    return this.#unprinted(this.#open);
  }

  /** Returns false if there is nothing above, or only the empty row before a text: then no empty row has to separate
   * the next item. */
  isAbove(): boolean {
    const awaitsText = this.#stream !== null && !this.#isShown() && this.#open.length === 0;
    return this.#last !== null && !awaitsText;
  }

  /** Renders the open block again, because colours have loaded. */
  refresh(): void {
    this.#stream?.restyle(this.#markdownStyle());
  }

  #markdownStyle(): MarkdownStyle {
    const { paint, loading } = this.#highlighter;
    return { ...this.#style, columns: this.#blockColumns, highlight: paint, loading };
  }

  /** Gives the open block the terminal's width, if nothing of it is printed. */
  #fitBlock(): boolean {
    if (this.#blockColumns === this.#style.columns || this.#printed.lines > 0 || this.#printed.columns > 0)
      return false;
    this.#blockColumns = this.#style.columns;
    this.refresh();
    return true;
  }

  /** Takes a new width. `lost`: the part of the open lines that moved into the
   * scrollback. */
  resize(columns: number, lost: Lost): void {
    if (this.#open.length <= this.#printed.lines) {
      /* Nothing of it was live. */
    } else if (lost.lines > 0) this.#printed = { lines: this.#printed.lines + lost.lines, columns: lost.columns };
    else this.#printed = { ...this.#printed, columns: this.#printed.columns + lost.columns };
    this.#style = { ...this.#style, columns };
    this.#fitBlock();
  }

  #take(item: TranscriptItem): void {
    if (item.type === 'assistant') {
      this.#finish(item.text, item.interrupted);
      return;
    }
    if (item.type === 'void') {
      const shown = this.#last === 'assistant' && this.#isShown();
      this.#drop();
      if (!shown) return;
    } else if (this.#stream) this.#finish(this.#text, false);
    const lines = itemLines(item, this.#itemStyle());
    if (lines.length === 0) return;
    this.#begin(item.type, lines.length === 1);
    this.#out = [...this.#out, ...lines];
  }

  #itemStyle(): ItemStyle {
    const { columns } = this.#style;
    return {
      ...this.#style,
      highlight: this.#highlighter.paint,
      markdown: (text) => renderMarkdown(text, { ...this.#markdownStyle(), columns }),
    };
  }

  /** Sets how much of later results is printed. */
  setDetail(detail: ResultDetail): void {
    this.#style = { ...this.#style, detail };
  }

  /** True once lines of the running stream were given out. */
  #given = false;

  /** The last item was a call of one row. */
  #wasRow = false;

  /** Prints an empty line between items. Calls of one row, and notes for the model, follow each other directly. */
  #begin(type: TranscriptItem['type'] | 'other', isRow = false): void {
    const attached = isRow && this.#wasRow && this.#last === type && (type === 'result' || type === 'told');
    if (this.#last !== null && !attached) this.#out.push('');
    this.#last = type;
    this.#wasRow = isRow;
  }

  #streamTo(text: string): void {
    if (text === '' || (this.#stream && !text.startsWith(this.#text.slice(0, 64)))) {
      this.#drop();
      if (text === '') return;
    }
    this.#stream ??= this.#begun();
    this.#text = text;
    this.#update(this.#stream, text);
    if (this.#fitBlock()) this.#update(this.#stream, text);
  }

  #update(stream: MarkdownStream, text: string): void {
    const { done, open } = stream.update(text);
    this.#give(done);
    this.#open = open;
  }

  #begun(): MarkdownStream {
    this.#begin('assistant');
    this.#given = false;
    this.#blockColumns = this.#style.columns;
    return new MarkdownStream(this.#markdownStyle());
  }

  #finish(text: string, interrupted: boolean): void {
    if (text.trim() === '') {
      this.#drop();
      return;
    }
    this.#stream ??= this.#begun();
    if (!text.startsWith(this.#text)) {
      this.#drop();
      this.#stream = this.#begun();
    }
    this.#give(this.#stream.finish(text));
    if (interrupted)
      this.#out.push(this.#style.theme.paint('dim', `[${this.#style.theme.glyphs.ellipsis} interrupted]`));
    this.#drop();
  }

  #give(done: readonly string[]): void {
    if (done.length === 0) return;
    this.#out = [...this.#out, ...this.#unprinted(done)];
    this.#printed =
      this.#printed.lines < done.length
        ? { lines: 0, columns: 0 }
        : { lines: this.#printed.lines - done.length, columns: this.#printed.columns };
    this.#given = true;
    this.#partial = false;
  }

  /** Returns true if a part of the stream is in the scrollback, where it stays. */
  #isShown(): boolean {
    return this.#stream !== null && (this.#printed.lines > 0 || this.#printed.columns > 0 || this.#given);
  }

  #drop(): void {
    // The empty line above it is printed already.
    if (this.#stream && this.#last === 'assistant' && !this.#isShown()) this.#last = null;
    // The continued line ends here.
    if (this.#printed.columns > 0) this.#out.push('');
    this.#stream = null;
    this.#text = '';
    this.#open = [];
    this.#printed = { lines: 0, columns: 0 };
    this.#given = false;
  }

  #unprinted(lines: readonly string[]): readonly string[] {
    const { lines: count, columns } = this.#printed;
    if (count === 0 && columns === 0) return lines;
    const rest = lines.slice(count);
    return columns > 0 && rest[0] !== undefined ? [dropColumns(rest[0], columns), ...rest.slice(1)] : rest;
  }

  /** Prints rows from the top of the open block until the rest fits: whole
   * lines, then whole rows of a line. */
  #bound(maxRows: number): void {
    const open = this.#unprinted(this.#open);
    const heights = open.map((line) => wrapLine(line, this.#style.columns));
    let excess = heights.reduce((sum, rows) => sum + rows.length, 0) - Math.max(1, maxRows);
    for (const [index, rows] of heights.entries()) {
      if (excess <= 0) return;
      if (rows.length <= excess && index < heights.length - 1) {
        this.#out.push(open[index] ?? '');
        this.#printed = { lines: this.#printed.lines + 1, columns: 0 };
        excess -= rows.length;
        continue;
      }
      const cut = rows.slice(0, Math.min(excess, rows.length - 1));
      if (cut.length === 0) return;
      this.#out.push(cut.map((row) => row.text).join(''));
      this.#printed = {
        lines: this.#printed.lines,
        columns: this.#printed.columns + cut.reduce((sum, row) => sum + row.width, 0),
      };
      this.#partial = true;
      return;
    }
  }
}

/** Returns Markdown whose fences have the languages of the code in `items`. */
export function codeOf(items: readonly TranscriptItem[]): string {
  const texts = items.map((item) => {
    if (item.type === 'assistant') return item.text;
    if (item.type !== 'result') return '';
    const { call, result } = item;
    if (call?.name === 'propose_plan') return planText(call);
    const path = result.diff === undefined ? null : pathOfDiff(result.diff);
    return path === null ? '' : `\`\`\`${languageOfPath(path)}`;
  });
  return texts.filter((text) => text !== '').join('\n');
}

function planText(call: CallText): string {
  return readCall(call)
    .blocks.map((block) => (block.kind === 'markdown' ? block.text : ''))
    .join('\n');
}

/** The end of a session, laid out before the screen is loaded. */
export interface PrintedEnd {
  readonly lines: readonly string[];
  /** The output that writes these lines. */
  readonly sent: readonly string[];
  readonly transcript: Transcript;
  readonly links: Links | undefined;
}

interface EndLooks extends Pick<ItemStyle, 'columns' | 'detail' | 'wrap'> {
  readonly bindings?: Parameters<typeof createKeyMap>[0];
}

/** Lays out what one sees of a session when one comes back to it; null where
 * that is nothing. */
export async function printedEnd(
  events: readonly Event[],
  facts: TerminalFacts,
  looks: EndLooks,
): Promise<PrintedEnd | null> {
  const { items, earlier } = lastExchange(events);
  const theme = createTheme(facts);
  const links = facts.links === true ? createLinks() : undefined;
  const highlighter = createHighlighter(theme, () => undefined);
  const { keyOf } = createKeyMap(looks.bindings);
  const style = { ...looks, theme, link: links?.paint, keyOf };
  const transcript = new Transcript(style, highlighter);
  await highlighter.load(codeOf(items));
  const remark = earlierText(events, earlier);
  if (remark !== null) transcript.print([theme.paint('dim', remark)]);
  const { lines } = transcript.advance(items, '', 1);
  const erased = lines.map((line) =>
    withErase(line, (wrapLine(line, looks.columns).at(-1)?.width ?? 0) >= looks.columns),
  );
  const sent = links ? erased.map((line) => links.translate(line)) : erased;
  return lines.length === 0 ? null : { lines, sent, transcript, links };
}
