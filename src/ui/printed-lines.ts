import { takeColumns } from './rows.js';

/** The last lines printed, numbered among all that were: for as far back as the cursor may ever have gone astray. */
export class PrintedLines {
  #lines: readonly string[] = [];
  #first = 0;

  get lines(): readonly string[] {
    return this.#lines;
  }
  /** The number of the first of them. */
  get first(): number {
    return this.#first;
  }
  /** The number that the next one gets. */
  get end(): number {
    return this.#first + this.#lines.length;
  }

  /** `open`: the first goes on in the line before it. */
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

  /** Takes back what is behind column `offset` of line `number`; gives that line as it was, and those after it. */
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
