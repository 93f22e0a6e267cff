import type { FileChangeText } from '../kernel/console/slash-command.js';
import { addAll, largestOf } from '../kernel/core/lists.js';
import { expandTabs, textWidth, unjoined, wrapLine, wrapWords } from './terminal/rows.js';
import { sanitize } from '../kernel/core/sanitize.js';
import type { Theme } from '../kernel/console/theme.js';

/** Colours the lines of a unified diff that a model wrote, and adds nothing. */
export function paintDiff(lines: readonly string[], { paint }: Theme): string[] {
  return lines.map((line) => {
    if (/^(?:\+\+\+|---|Index:|===)/.test(line)) return paint('dim', line);
    if (line.startsWith('@@')) return paint('hunk', line);
    if (line.startsWith('+')) return paint('added_line', line);
    if (line.startsWith('-')) return paint('removed_line', line);
    return line;
  });
}

/** One line of a change and its number in the file: the old number for removed lines, the new one for all others; null
 * where it is not known. */
export interface DiffLine {
  readonly sign: '+' | '-' | ' ';
  readonly number: number | null;
  readonly text: string;
}

/** A part of a text, in code units. */
export interface TextPart {
  readonly from: number;
  readonly to: number;
}

/** The layout of a change: the columns of its rows, and their theme. */
interface ChangeStyle {
  readonly theme: Theme;
  readonly columns: number;
}

/** Returns a change of a file below its title, in rows. */
export function changeRows({ title, diff }: FileChangeText, style: ChangeStyle): string[] {
  const { theme, columns } = style;
  const head = wrapWords(theme.paint('bold', sanitize(title).replace(/\s+/g, ' ')), columns, 2);
  return [...head, ...diffRows(diff, style)];
}

/** Returns a unified diff of one file, as it is on record, in rows. */
export function diffRows(diff: string, style: ChangeStyle): string[] {
  return changeLines(unjoined(sanitize(diff)).split('\n'), style).flat();
}

/** Returns the rows of each line of a change of one file, with line numbers, colours and marked words. `lines` is a
 * unified diff of one file. The file names are left out, because the call names the file; an ellipsis separates two
 * places of it. Without colours a line is one row, however long it is: then nothing else wraps it but the terminal. */
export function changeLines(lines: readonly string[], style: ChangeStyle): string[][] {
  const { theme } = style;
  const places = placesOf(lines);
  if (places.length === 0) return paintDiff(lines, theme).map((line) => [expandTabs(line)]);
  const room = theme.colors ? style.columns - 1 : Number.POSITIVE_INFINITY;
  const shown = placeRows(places, theme, room);
  const between = [theme.paint('dim', theme.glyphs.ellipsis.padStart(digitsOf(places)))];
  const last = lines.findLast((line) => line !== '') ?? '';
  const cut = last.startsWith('…') ? [[theme.paint('dim', theme.glyphs.ellipsis + last.slice(1))]] : [];
  return [...shown.flatMap((place, index) => (index === 0 ? place : [between, ...place])), ...cut];
}

/** Returns the rows of each line of some places of a file, in at most so many columns. */
export function placeRows(places: readonly (readonly DiffLine[])[], theme: Theme, columns: number): string[][][] {
  const style = lineStyle(places, theme, columns);
  return places.map((place) => {
    const marks = changedParts(place);
    return place.map((line, index) => lineRows(line, marks[index] ?? null, style));
  });
}

function lineStyle(places: readonly (readonly DiffLine[])[], theme: Theme, columns: number): LineStyle {
  const digits = digitsOf(places);
  const room = Math.max(8, columns - (digits === 0 ? 2 : digits + 3));
  if (!theme.grounds) return { theme, digits, room, fill: 0 };
  const changed = places.flat().filter(({ sign }) => sign !== ' ');
  const widths = changed.map(({ text }) => (text.length > room * 4 ? room : textWidth(text)));
  return { theme, digits, room, fill: Math.min(room, largestOf(widths, 0)) };
}

/** Rows that are made when they are shown. */
export interface DiffRows {
  readonly length: number;
  slice(from: number, to: number): string[];
}

/** Returns the rows of an edit in so many columns. Of a long one only the rows that are shown are painted: painting all
 * of them takes seconds for each width. */
export function editRows(edit: readonly DiffLine[], theme: Theme, columns: number): DiffRows {
  const style = lineStyle([edit], theme, columns);
  const marks = changedParts(edit);
  const ends: number[] = [];
  for (const { text } of edit) ends.push((ends.at(-1) ?? 0) + wrapLine(text, style.room).length);
  let painted = new Map<number, readonly string[]>();
  return {
    length: ends.at(-1) ?? 0,
    slice(from, to) {
      const shown = new Map<number, readonly string[]>();
      const rows: string[] = [];
      const first = firstAbove(ends, from);
      for (const [offset, line] of edit.slice(first, firstAbove(ends, to - 1) + 1).entries()) {
        const index = first + offset;
        const start = ends[index - 1] ?? 0;
        const all = painted.get(index) ?? lineRows(line, marks[index] ?? null, style);
        shown.set(index, all);
        addAll(rows, all.slice(Math.max(0, from - start), to - start));
      }
      painted = shown;
      return rows;
    },
  };
}

/** Returns the index of the first of the rising numbers that is above `value`. */
function firstAbove(numbers: readonly number[], value: number): number {
  let low = 0;
  let high = numbers.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((numbers[middle] ?? 0) > value) high = middle;
    else low = middle + 1;
  }
  return low;
}

function digitsOf(places: readonly (readonly DiffLine[])[]): number {
  return largestOf(
    places.flat().map(({ number }) => (number === null ? 0 : String(number).length)),
    0,
  );
}

interface LineStyle {
  readonly theme: Theme;
  readonly digits: number;
  /** The columns that a text may take in a row. */
  readonly room: number;
  /** The columns that the ground of a changed line takes. */
  readonly fill: number;
}

/** Rows after the first are indented to the text. */
function lineRows({ sign, number, text }: DiffLine, mark: TextPart | null, style: LineStyle): string[] {
  const { theme, digits, room, fill } = style;
  const rows = Number.isFinite(room) ? wrapLine(text, room) : [{ text, width: 0 }];
  let at = 0;
  return rows.map((row, index) => {
    const shown = index === 0 ? String(number ?? '') : '';
    const lead = digits === 0 ? '' : `${theme.paint('dim', shown.padStart(digits))} `;
    const part = mark && {
      from: mark.from - at,
      to: mark.to - at,
    };
    at += row.text.length;
    const painted = paintChanged(sign, row.text, part, theme, { before: index === 0 ? `${sign} ` : '  ' });
    const blank = sign === ' ' || row.width >= fill ? '' : ' '.repeat(fill - row.width);
    return `${lead}${painted}${blank === '' ? '' : theme.paint(lineRole(sign), blank)}`;
  });
}

function lineRole(sign: DiffLine['sign']): 'added_line' | 'removed_line' {
  return sign === '+' ? 'added_line' : 'removed_line';
}

/** Paints a part of a changed line, `before` with it. The words in `mark` differ from the other version of the line. */
function paintChanged(
  sign: DiffLine['sign'],
  text: string,
  mark: TextPart | null,
  { paint, grounds }: Theme,
  { before }: { readonly before: string },
): string {
  if (sign === ' ') return `${before}${text}`.trimEnd();
  const role = lineRole(sign);
  const from = Math.min(text.length, Math.max(0, mark?.from ?? text.length));
  const to = Math.min(text.length, Math.max(from, mark?.to ?? from));
  if (from === to) return paint(role, grounds ? before + text : `${before}${text}`.trimEnd());
  const word = sign === '+' ? 'added_word' : 'removed_word';
  return paint(role, before + text.slice(0, from)) + paint(word, text.slice(from, to)) + paint(role, text.slice(to));
}

/** Returns the lines below each hunk header of a unified diff. */
export function placesOf(lines: readonly string[]): DiffLine[][] {
  const places: DiffLine[][] = [];
  let before = 0;
  let after = 0;
  for (const line of lines) {
    const header = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/.exec(line);
    if (header) {
      before = Number(header[1]);
      after = Number(header[2]);
      places.push([]);
      continue;
    }
    const sign = line[0];
    if (sign !== '+' && sign !== '-' && sign !== ' ') continue;
    places.at(-1)?.push({
      sign,
      number: sign === '-' ? before : after,
      text: expandTabs(line.slice(1)),
    });
    if (sign !== '+') before++;
    if (sign !== '-') after++;
  }
  return places.filter((place) => place.length > 0);
}

/** Returns, for each line of a place, the words that differ between a removed line and its replacement; null for most
 * lines. */
export function changedParts(place: readonly Pick<DiffLine, 'sign' | 'text'>[]): (TextPart | null)[] {
  const parts: (TextPart | null)[] = place.map(() => null);
  for (let at = 0; at < place.length; at++) {
    if (place[at]?.sign !== '-') continue;
    const removed = runLength(place, at, '-');
    const added = runLength(place, at + removed, '+');
    for (let i = 0; i < Math.min(removed, added); i++) {
      const old = at + i;
      const now = at + removed + i;
      const differ = differingParts(place[old]?.text ?? '', place[now]?.text ?? '');
      if (differ) [parts[old], parts[now]] = differ;
    }
    at += removed + added - 1;
  }
  return parts;
}

function runLength(place: readonly Pick<DiffLine, 'sign'>[], from: number, sign: DiffLine['sign']): number {
  let end = from;
  while (place[end]?.sign === sign) end++;
  return end - from;
}

/** In longer lines no words are marked. */
const mostCompared = 20_000;

/** Returns where two versions of a line differ; null if too little is common for that to help. */
function differingParts(before: string, after: string): [TextPart, TextPart] | null {
  if (Math.max(before.length, after.length) > mostCompared) return null;
  const old = before.match(/\s+|\w+|[^\s\w]/gu) ?? [];
  const now = after.match(/\s+|\w+|[^\s\w]/gu) ?? [];
  const least = Math.min(old.length, now.length);
  let start = 0;
  while (start < least && old[start] === now[start]) start++;
  let end = 0;
  while (end < least - start && old[old.length - 1 - end] === now[now.length - 1 - end]) end++;
  const lead = old.slice(0, start).join('');
  const tail = end === 0 ? '' : old.slice(-end).join('');
  const alike = (lead + tail).replace(/\s/g, '').length;
  const longest = Math.max(before.replace(/\s/g, '').length, after.replace(/\s/g, '').length);
  if (alike * 3 < longest || alike === 0) return null;
  return [
    {
      from: lead.length,
      to: before.length - tail.length,
    },
    {
      from: lead.length,
      to: after.length - tail.length,
    },
  ];
}
