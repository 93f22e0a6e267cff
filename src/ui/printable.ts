import { dropColumns, takeColumns, wrapLine } from './rows.js';
import { textWidth } from './width.js';

/** What a frame prints of the lines that wait for it, the columns of the open line that stand above then, and what
 * stays below: of a line that goes on only whole rows are printed, so that the first live row always begins a row. */
export interface Printable {
  readonly lines: readonly string[];
  readonly head: number;
  readonly rest: string;
}

/** `partial`: the last of `lines` goes on with `next`. `head`: columns of the first of them that stand above
 * already. */
export function printable(
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
