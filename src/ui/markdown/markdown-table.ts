import type { Tokens } from 'marked';
import wrapAnsi from 'wrap-ansi';
import { renderInline, type PaintLink } from './markdown-inline.js';
import type { Theme } from '../theme.js';
import { wrapWords } from '../rows.js';
import { textWidth } from '../width.js';

const gap = '  ';
const leastColumn = 4;
/** In a narrower terminal a table that would have to be squeezed is shown as records. */
const narrowColumns = 60;
/** A column narrower than this, where its text is longer, cannot be read. */
const readableColumn = 12;

/** A table whose columns fit into `columns`; cells that are too wide are wrapped at words. Where the columns would be
 * too narrow to read, each row is a record instead: a line for each cell, led by the name of its column. */
export function renderTable(token: Tokens.Table, theme: Theme, columns: number, link?: PaintLink): string[] {
  const header = token.header.map((cell) => theme.paint('bold', renderInline(cell.tokens, theme.paint, link)));
  const rows = token.rows.map((row) => row.map((cell) => renderInline(cell.tokens, theme.paint, link)));
  const natural = naturalWidths([header, ...rows]);
  const widths = fitColumns(natural, columns);
  if (rows.length > 0 && isTooNarrow(natural, widths, columns)) return records(header, rows, columns);
  const align = (index: number): 'left' | 'center' | 'right' => token.align[index] ?? 'left';
  const rule = widths.map((width) => theme.paint('dim', theme.glyphs.rule.repeat(width))).join(gap);
  return [...tableRow(header, widths, align), rule, ...rows.flatMap((row) => tableRow(row, widths, align))];
}

function isTooNarrow(natural: readonly number[], widths: readonly number[], columns: number): boolean {
  const squeezed = widths.filter((width, index) => width < (natural[index] ?? 0));
  return squeezed.length > 0 && (columns < narrowColumns || squeezed.some((width) => width < readableColumn));
}

function records(header: readonly string[], rows: readonly (readonly string[])[], columns: number): string[] {
  return rows.flatMap((row, index) => {
    const lines = row.flatMap((cell, at) => {
      const [first = '', ...rest] = cell.split('\n');
      const lead = header[at] === undefined || textWidth(header[at]) === 0 ? '' : `${header[at]}: `;
      if (textWidth(cell) === 0) return [];
      return [...wrapWords(lead + first, columns, 2), ...rest.flatMap((line) => wrapWords(`  ${line}`, columns, 2))];
    });
    return index === 0 ? lines : ['', ...lines];
  });
}

function naturalWidths(rows: readonly (readonly string[])[]): number[] {
  const count = Math.max(...rows.map((row) => row.length));
  const widthOf = (cell: string): number => Math.max(...cell.split('\n').map(textWidth));
  return Array.from({ length: count }, (_, i) => Math.max(1, ...rows.map((row) => widthOf(row[i] ?? ''))));
}

/** Natural widths where they fit; else the widest columns give way first. */
function fitColumns(natural: readonly number[], columns: number): number[] {
  const widths = [...natural];
  const count = widths.length;
  const room = Math.max(count * leastColumn, columns - gap.length * (count - 1));
  const total = (): number => widths.reduce((sum, width) => sum + width, 0);
  while (total() > room) {
    const widest = widths.indexOf(Math.max(...widths));
    const next = Math.max(leastColumn, ...widths.filter((_, i) => i !== widest));
    const width = widths[widest] ?? 0;
    widths[widest] = Math.max(leastColumn, Math.min(width - 1, Math.max(next, width - (total() - room))));
  }
  return widths;
}

function tableRow(
  cells: readonly string[],
  widths: readonly number[],
  align: (index: number) => 'left' | 'center' | 'right',
): string[] {
  const wrapped = widths.map((width, i) => wrapAnsi(cells[i] ?? '', width, { hard: true, trim: true }).split('\n'));
  const height = Math.max(...wrapped.map((lines) => lines.length));
  return Array.from({ length: height }, (_, line) =>
    widths
      .map((width, i) => pad(wrapped[i]?.[line] ?? '', width, align(i)))
      .join(gap)
      .trimEnd(),
  );
}

function pad(text: string, width: number, align: 'left' | 'center' | 'right'): string {
  const room = Math.max(0, width - textWidth(text));
  if (align === 'right') return ' '.repeat(room) + text;
  const left = align === 'center' ? Math.floor(room / 2) : 0;
  return ' '.repeat(left) + text + ' '.repeat(room - left);
}
