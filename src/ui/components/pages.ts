import type { ScreenSize } from '../terminal/writer.js';

/** Lays a text out in rows of so many columns. `at`: the row that is in view at first. */
export type RowsOf = (columns: number) => { readonly rows: readonly string[]; readonly at: number };

/** The rows of a text at one width, and which of them are on the screen. */
export class Pages {
  readonly #rowsOf: RowsOf;
  #columns = 0;
  rows: readonly string[] = [];
  top = 0;
  height = 1;

  constructor(rowsOf: RowsOf) {
    this.#rowsOf = rowsOf;
  }

  /** Lays the text out again at the next `fit`. */
  changed(): void {
    this.#columns = -1;
  }

  /** `mostRows`: the largest share of the screen for it. */
  fit({ columns, rows }: ScreenSize, mostRows = rows): void {
    this.height = Math.max(1, Math.min(mostRows, rows - 6));
    if (this.#columns !== columns) {
      const laidOut = this.#rowsOf(columns - 1);
      // The rows above the result of a search show its context.
      if (this.#columns === 0) this.top = laidOut.at - Math.floor(this.height / 4);
      this.rows = laidOut.rows;
    }
    this.#columns = columns;
    this.scroll(0);
  }

  isAtEnd(): boolean {
    return this.top + this.height >= this.rows.length;
  }

  scroll(by: number): void {
    this.top = Math.max(0, Math.min(this.rows.length - this.height, this.top + by));
  }

  /** Returns how many rows a key or a letter scrolls; null if it does not scroll. */
  distance(name: string): number | null {
    const { height } = this;
    const { length } = this.rows;
    const distances: Readonly<Record<string, number>> = {
      up: -1,
      k: -1,
      down: 1,
      j: 1,
      enter: 1,
      pageup: -height,
      b: -height,
      pagedown: height,
      ' ': height,
      home: -length,
      g: -length,
      end: length,
      G: length,
    };
    return distances[name] ?? null;
  }
}
