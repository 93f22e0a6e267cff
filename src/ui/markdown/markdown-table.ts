import type { Tokens } from 'marked';
import wrapAnsi from 'wrap-ansi';
import { renderInline } from './markdown-inline.js';
import type { Theme } from '../theme.js';
import { textWidth } from '../width.js';

const gap = '  ';
const leastColumn = 4;

/** A table whose columns fit into `columns`; cells that are too wide are wrapped at words. */
export function renderTable(token: Tokens.Table, theme: Theme, columns: number): string[] {
  const header = token.header.map((cell) => theme.paint('bold', renderInline(cell.tokens, theme.paint)));
  const rows = token.rows.map((row) => row.map((cell) => renderInline(cell.tokens, theme.paint)));
  const widths = fitColumns([header, ...rows], columns);
  const align = (index: number): 'left' | 'center' | 'right' => token.align[index] ?? 'left';
  const rule = widths.map((width) => theme.paint('dim', theme.glyphs.rule.repeat(width))).join(gap);
  return [...tableRow(header, widths, align), rule, ...rows.flatMap((row) => tableRow(row, widths, align))];
}

/** Natural widths where they fit; else the widest columns give way first. */
function fitColumns(rows: readonly (readonly string[])[], columns: number): number[] {
  const count = Math.max(...rows.map((row) => row.length));
  const widths = Array.from({ length: count }, (_, i) => Math.max(1, ...rows.map((row) => Math.max(...(row[i] ?? '').split('\n').map(textWidth)))));
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

function tableRow(cells: readonly string[], widths: readonly number[], align: (index: number) => 'left' | 'center' | 'right'): string[] {
  const wrapped = widths.map((width, i) => wrapAnsi(cells[i] ?? '', width, { hard: true, trim: true }).split('\n'));
  const height = Math.max(...wrapped.map((lines) => lines.length));
  return Array.from({ length: height }, (_, line) => widths.map((width, i) => pad(wrapped[i]?.[line] ?? '', width, align(i))).join(gap).trimEnd());
}

function pad(text: string, width: number, align: 'left' | 'center' | 'right'): string {
  const room = Math.max(0, width - textWidth(text));
  if (align === 'right') return ' '.repeat(room) + text;
  const left = align === 'center' ? Math.floor(room / 2) : 0;
  return ' '.repeat(left) + text + ' '.repeat(room - left);
}
