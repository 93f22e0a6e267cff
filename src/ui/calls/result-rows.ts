import { withoutEnd } from '../../kernel/core/text.js';
import type { ErrorEnvelope } from '../../kernel/core/envelope.js';
import { isRecord } from '../../kernel/core/json.js';
import { sanitize } from '../../kernel/core/sanitize.js';
import type { Theme } from '../../kernel/console/theme.js';
import { changeLines } from '../diff-lines.js';
import type { ItemStyle } from '../item-style.js';
import { expandTabs, splitStyledLines, textWidth, unjoined, withoutSgr, wrapLine } from '../terminal/rows.js';
import { outlineText } from './named-values.js';

/** The layout of a result: `name` is its tool, `seq` the number of its event. */
export interface ResultStyle extends ItemStyle {
  readonly name: string;
  readonly seq: number;
}

/** A part of a text: the number of its rows, from its beginning or its end. */
interface Part {
  readonly rows: number;
  readonly from: 'start' | 'end';
}

const headParts: Readonly<Record<string, Part>> = {
  bash: { rows: 12, from: 'end' },
  file_read: { rows: 3, from: 'start' },
  grep: { rows: 8, from: 'start' },
  glob: { rows: 8, from: 'start' },
};
const otherHead: Part = { rows: 12, from: 'start' };
const newFileHead: Part = { rows: 20, from: 'start' };
const changeHead: Part = { rows: 40, from: 'start' };

/** A result with at most this many rows is shown whole. */
const mostWhole = 20;
/** The rows of a longer result that are shown from its beginning; the others are from its end. */
const shortHead = 5;
/** A change with more rows than this is cut, because it would fill the scrollback. */
const mostChangeRows = 4_000;
/** No output is examined beyond this many characters for its first or its last rows. */
const endChars = 65_536;

/** Returns the output of a call in rows, dim. Colours in it stay. */
export function outputRows(text: string, style: ResultStyle): string[] {
  const { theme, detail, columns } = style;
  const whole = withoutEnd(text, '\n');
  if (detail.show === 'line' || whole.trim() === '') return [];
  if (detail.show === 'short') return shortRows(whole, style);
  const part = detail.show === 'full' ? { rows: detail.maxRows, from: 'start' as const } : headOf(style);
  const bounded = part.from === 'start' ? whole.slice(0, endChars) : whole.slice(-endChars);
  const lines = cleanLines(bounded, theme);
  const kept = takeRows(
    lines.map((line) => [line]),
    part,
    columns,
  ).flat();
  const shown = kept.map((line) => theme.paint('dim', line));
  if (kept.length === lines.length && bounded.length === whole.length) return shown;
  const hidden = (bounded.length === whole.length ? lines.length : whole.split('\n').length) - kept.length;
  const note = hiddenNote(`+${hidden} ${hidden === 1 ? 'line' : 'lines'}`, style);
  return part.from === 'start' ? [...shown, note] : [note, ...shown];
}

function headOf({ name, detail }: ResultStyle): Part {
  const part = headParts[name] ?? otherHead;
  return { ...part, rows: Math.min(part.rows, detail.maxRows) };
}

/** Returns the lines of an output that may be shown; its colours are closed in each line. */
function cleanLines(text: string, theme: Theme): string[] {
  return splitStyledLines(unjoined(sanitize(text, { colors: theme.colors }))).map((line) => expandTabs(line));
}

/** Returns a result whole, or its first and last rows with the number of rows between them. */
function shortRows(whole: string, style: ResultStyle): string[] {
  const { theme, columns, detail } = style;
  const most = Math.min(mostWhole, detail.maxRows);
  const isLong = whole.length > endChars;
  const lines = cleanLines(isLong ? whole.slice(0, endChars) : whole, theme);
  const rows = lines.flatMap((line) => wrapLine(line, columns));
  const dim = (line: string): string => theme.paint('dim', line);
  if (!isLong && rows.length <= most) return lines.map(dim);
  const head = Math.min(shortHead, Math.floor(most / 4));
  const tail = most - head;
  const last = isLong ? cleanLines(whole.slice(-endChars), theme).flatMap((line) => wrapLine(line, columns)) : rows;
  const count = isLong ? countRows(whole, columns) : rows.length;
  return [
    ...joinRows(rows.slice(0, head)).map(dim),
    hiddenNote(`${count - most} ${count - most === 1 ? 'row' : 'rows'}`, style),
    ...joinRows(last.slice(-tail)).map(dim),
  ];
}

/** Rows that the terminal wrapped are one line again, so that they are copied as one. */
function joinRows(rows: readonly { readonly text: string; readonly soft: boolean }[]): string[] {
  const lines: string[] = [];
  for (const [index, { text, soft }] of rows.entries()) {
    if (soft && index > 0) lines.push((lines.pop() ?? '') + text);
    else lines.push(text);
  }
  return lines;
}

/** Counts the rows of a long text without laying it out. */
function countRows(text: string, columns: number): number {
  let rows = 0;
  for (const line of withoutSgr(text).split('\n'))
    rows += Math.max(1, Math.ceil((/^[\x20-\x7e]*$/.test(line) ? line.length : textWidth(sanitize(line))) / columns));
  return rows;
}

/** Says how much is left out and how it is shown. */
function hiddenNote(what: string, { theme, keyOf, seq }: ResultStyle): string {
  const key = keyOf?.('show_last') ?? null;
  return theme.paint('dim', `${theme.glyphs.ellipsis} ${what}, ${key === null ? '' : `${key} or `}/show ${seq}`);
}

/** Returns the change of a file in rows: whole, unless the settings say how many rows. */
export function changedFileRows(diff: string, style: ResultStyle): string[] {
  const { detail } = style;
  if (detail.show === 'line') return [];
  const isNew = diff.startsWith('--- /dev/null');
  const rows =
    detail.show === 'short'
      ? mostChangeRows
      : detail.show === 'full'
        ? detail.maxRows
        : Math.min((isNew ? newFileHead : changeHead).rows, detail.maxRows);
  const lines = changeLines(unjoined(sanitize(diff)).split('\n'), style).map((line) => [line]);
  const kept = takeRows(lines, { rows, from: 'start' }, style.columns);
  const hidden = lines.length - kept.length;
  const shown = kept.flat();
  return hidden === 0 ? shown : [...shown, hiddenNote(`+${hidden} ${hidden === 1 ? 'line' : 'lines'}`, style)];
}

/** Returns the details of an error in rows: output as output, a diff as a diff, the rest by name. */
export function detailRows({ details }: ErrorEnvelope, style: ResultStyle): string[] {
  if (details === undefined || style.detail.show === 'line') return [];
  if (!isRecord(details)) return outputRows(outlineText(details), style);
  const { output, ...rest } = details;
  const parts = Object.entries(rest).filter(([, value]) => !isEmptyList(value));
  const values = parts.filter(([, value]) => !isDiff(value));
  return [
    ...(values.length > 0 ? outputRows(outlineText(Object.fromEntries(values)), style) : []),
    ...parts.flatMap(([, value]) => (isDiff(value) ? changedFileRows(value, style) : [])),
    ...(typeof output === 'string' ? outputRows(output, style) : []),
  ];
}

function isEmptyList(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}

function isDiff(value: unknown): value is string {
  return typeof value === 'string' && /^@@ -\d+(?:,\d+)? \+\d+/m.test(value);
}

/** Returns the whole lines that fit into the rows of `part`; a line that is much longer is left out. */
function takeRows(
  lines: readonly (readonly string[])[],
  { rows: most, from }: Part,
  columns: number,
): (readonly string[])[] {
  const inOrder = from === 'start' ? lines : lines.toReversed();
  const kept: (readonly string[])[] = [];
  let rows = 0;
  for (const line of inOrder) {
    const height = line.reduce((sum, row) => sum + wrapLine(row, columns).length, 0);
    if (rows + height > most && (rows > 0 || height > most * 2)) break;
    rows += height;
    kept.push(line);
  }
  return from === 'start' ? kept : kept.toReversed();
}
