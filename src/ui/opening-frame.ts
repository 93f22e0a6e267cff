import type { Event } from '../core/event.js';
import { createDisplayOn, sizeOf, type Display } from './display.js';
import type { KnownFrame } from '../terminal/first-frame.js';
import { lastExchange } from './event-text.js';
import { createPromptInput } from './editor/prompt-input.js';
import type { Greeting, ReplOptions } from './repl-options.js';
import { wrapLine } from '../terminal/rows.js';
import type { Live, Screen, ScreenSize } from '../terminal/writer.js';
import { emptyView, totalsOf, type Item } from './view.js';

/** What a session shows when it is opened. */
export interface Opening {
  readonly greeting: Greeting | null;
  readonly events: readonly Event[];
  readonly draft: string;
}

/** The screen as it will stand when the REPL opens so, as much of its end as the terminal has rows for. */
export function openingFrame(options: ReplOptions, { greeting, events, draft }: Opening): KnownFrame {
  const page = new Page(sizeOf(options.output));
  const display = createDisplayOn(page, options);
  const input = createPromptInput({
    commands: () => [],
    rank: () => [],
    wantFiles: () => {
      /* No key is pressed. */
    },
  });
  input.setText(draft);
  if (greeting) display.greet(greeting);
  display.frame(showLastExchange(display, events), {
    view: { ...emptyView, totals: totalsOf(events) },
    input,
    overlay: null,
    waits: false,
    busySinceMs: null,
    hint: null,
  });
  return { ...page.bottom(), draft };
}

/** Prints how much is not shown; gives what is. */
export function showLastExchange(display: Display, events: readonly Event[]): readonly Item[] {
  const { items, earlier } = lastExchange(events);
  if (earlier > 0)
    display.printLines([display.theme.paint('dim', `${earlier} earlier messages and calls; /show N shows an event`)]);
  return items;
}

/** Takes one frame and draws nothing. */
class Page implements Screen {
  readonly size: ScreenSize;
  #printed: readonly string[] = [];
  #live: Live = { lines: [], cursor: { line: 0, column: 0 } };

  constructor(size: ScreenSize) {
    this.size = size;
  }

  commit(lines: readonly string[]): void {
    this.#printed = [...this.#printed, ...lines];
  }
  draw(live: Live): boolean {
    this.#live = live;
    return false;
  }
  resize(): { readonly lines: number; readonly columns: number } {
    return { lines: 0, columns: 0 };
  }
  ask(): boolean {
    return false;
  }
  answered(): boolean {
    return true;
  }
  settle(): null {
    return null;
  }
  control(): void {
    /* There is no terminal. */
  }
  close(): void {
    /* There is nothing to take away. */
  }
  restart(): void {
    /* Nothing else draws. */
  }

  /** Whole lines, no more rows than the screen has. */
  bottom(): Omit<KnownFrame, 'draft'> {
    const all = [...this.#printed, ...this.#live.lines];
    const rows = all.map((line) => wrapLine(line, this.size.columns).length);
    const sum = (from: number, to: number): number => rows.slice(from, to).reduce((total, count) => total + count, 0);
    let from = all.length;
    while (from > 0 && sum(from - 1, all.length) <= this.size.rows) from--;
    const at = this.#printed.length + this.#live.cursor.line;
    return {
      lines: all.slice(from),
      row: sum(from, at),
      column: this.#live.cursor.column,
      rowsBelow: sum(at + 1, all.length),
    };
  }
}
