import type { FileChangeText } from '../kernel/console/slash-command.js';
import { addAll, largestOf } from '../kernel/core/lists.js';
import { dropColumns, expandTabs, takeColumns, textWidth, unjoined, wrapLine, wrapWords } from './terminal/rows.js';
import { sanitize } from '../kernel/core/sanitize.js';
import type { Theme } from '../kernel/console/theme.js';
import type { Highlight } from './markdown/highlight.js';

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

/** The layout of a change of a file. */
interface ChangeStyle {
  readonly theme: Theme;
  readonly columns: number;
  /** Colours the code. */
  readonly highlight?: Highlight | undefined;
}

/** Returns a change of a file below its title, in rows. */
export function changeRows({ title, diff, below = '' }: FileChangeText, style: ChangeStyle): string[] {
  const { theme, columns } = style;
  const head = wrapWords(theme.paint('bold', sanitize(title).replace(/\s+/g, ' ')), columns, 2);
  const more =
    below === ''
      ? []
      : [
          '',
          ...sanitize(below)
            .split('\n')
            .map((line) => expandTabs(line)),
        ];
  return [...head, ...diffRows(diff, style), ...more];
}

/** Returns a unified diff of one file, as it is on record, in lines. */
export function diffRows(diff: string, style: ChangeStyle): string[] {
  return changeLines(unjoined(sanitize(diff)).split('\n'), style);
}

/** Returns a change of one file in lines, with colours and marked words. `lines` is a unified diff of one file. The file
 * names are left out, because the call names the file; the number of its first line is above each place. Lines are not
 * broken, and nothing but the sign is added, so that they are copied as they are. */
export function changeLines(lines: readonly string[], style: Omit<ChangeStyle, 'columns'>): string[] {
  const { theme } = style;
  const places = placesOf(lines);
  if (places.length === 0) return paintDiff(lines, theme).map((line) => expandTabs(line));
  const path = changedPath(lines);
  const isNew = lines[0]?.startsWith('--- /dev/null') === true;
  const last = lines.findLast((line) => line !== '') ?? '';
  const cut = last.startsWith('…') ? [theme.paint('dim', theme.glyphs.ellipsis + last.slice(1))] : [];
  const shown = places.map((place) => placeLines(place, style, path));
  return [
    ...shown.flatMap((rows, index) => [
      ...(isNew ? [] : [theme.paint('hunk', `@@ line ${places[index]?.[0]?.number ?? 1}`)]),
      ...rows,
    ]),
    ...cut,
  ];
}

/** Returns the path in the header of a unified diff; null without one. */
function changedPath(lines: readonly string[]): string | null {
  const header = lines
    .slice(
      0,
      lines.findIndex((line) => line.startsWith('@@')),
    )
    .findLast((line) => /^(?:\+\+\+|---) (?!\/dev\/null)/.test(line));
  return header === undefined ? null : header.slice(4).trim();
}

/** More code than this is not coloured. */
const mostColored = 20_000;

/** Returns the lines of a place of a file: a sign, then the text as it is. */
export function placeLines(
  place: readonly DiffLine[],
  { theme, highlight }: Omit<ChangeStyle, 'columns'>,
  path: string | null,
): string[] {
  const language = path === null ? '' : languageOfPath(path);
  const colors = theme.grounds && highlight && language !== '' ? coloredTexts(place, highlight, language) : [];
  const marks = changedParts(place);
  return place.map((line, index) => {
    const mark = marks[index] ?? null;
    return signedLine(line, colors[index] ?? line.text, mark, theme);
  });
}

/** Returns the name by which a highlighter knows the language of a file: the end of its name, or the name itself. */
export function languageOfPath(path: string): string {
  const name = path.slice(path.lastIndexOf('/') + 1).toLowerCase();
  const dot = name.lastIndexOf('.');
  return dot > 0 ? name.slice(dot + 1) : name;
}

/** Returns the path of the file that a unified diff changes; null without one. */
export function pathOfDiff(diff: string): string | null {
  return changedPath(diff.slice(0, 2_000).split('\n'));
}

/** Colours both versions of a place, each as a whole, because comments and texts reach over lines. */
function coloredTexts(place: readonly DiffLine[], highlight: Highlight, language: string): (string | undefined)[] {
  const colored: (string | undefined)[] = place.map(() => undefined);
  for (const other of ['+', '-'] as const) {
    const indexes = [...place.keys()].filter((index) => place[index]?.sign !== other);
    const code = indexes.map((index) => place[index]?.text ?? '').join('\n');
    const lines = code.length > mostColored ? null : highlight(code, language);
    if (lines?.length === indexes.length) for (const [at, index] of indexes.entries()) colored[index] = lines[at];
  }
  return colored;
}

function signedLine({ sign, text }: DiffLine, colored: string, mark: TextPart | null, theme: Theme): string {
  if (sign === ' ') return text.trim() === '' ? '' : ` ${colored}`;
  const role = lineRole(sign);
  if (mark === null || mark.from >= mark.to) return theme.fill(role, sign + colored);
  const word = sign === '+' ? 'added_word' : 'removed_word';
  const before = takeColumns(colored, textWidth(text.slice(0, mark.from)));
  const behind = dropColumns(colored, textWidth(text.slice(0, mark.to)));
  return (
    theme.paint(role, sign + before) + theme.paint(word, text.slice(mark.from, mark.to)) + theme.fill(role, behind)
  );
}

/** Returns the removed and the added lines of an edit; common lines at its beginning and its end are shown once.
 * `first`: the number of the first line, where it is known. */
export function editedLines(before: string, after: string, first: number | null = null): DiffLine[] {
  const old = before === '' ? [] : before.split('\n');
  const now = after === '' ? [] : after.split('\n');
  const least = Math.min(old.length, now.length);
  let start = 0;
  while (start < least && old[start] === now[start]) start++;
  let end = 0;
  while (end < least - start && old[old.length - 1 - end] === now[now.length - 1 - end]) end++;
  const signed = (lines: readonly string[], sign: DiffLine['sign'], from: number, to: number): DiffLine[] =>
    lines.slice(from, to).map((text, index) => ({
      sign,
      number: first === null ? null : first + from + index,
      text: expandTabs(text),
    }));
  return [
    ...signed(old, ' ', 0, start),
    ...signed(old, '-', start, old.length - end),
    ...signed(now, '+', start, now.length - end),
    ...signed(now, ' ', now.length - end, now.length),
  ];
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
