import type { FileChangeText } from '../kernel/console/slash-command.js';
import { addAll } from '../kernel/core/lists.js';
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
      ...(isNew ? [] : [theme.paint('hunk', placeHead(places[index]?.[0]?.number ?? 1))]),
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
  style: Omit<ChangeStyle, 'columns'>,
  path: string | null,
): string[] {
  const colors = placeColors(place, style, path);
  const marks = changedParts(place);
  return place.map((line, index) => {
    const mark = marks[index] ?? null;
    return signedLine(line, colors[index] ?? line.text, mark, style.theme);
  });
}

/** Returns the lines of a place in the colours of the file's language; none where it has none. */
function placeColors(
  place: readonly DiffLine[],
  { theme, highlight }: Omit<ChangeStyle, 'columns'>,
  path: string | null,
): readonly (string | undefined)[] {
  const language = path === null ? '' : languageOfPath(path);
  return theme.grounds && highlight && language !== '' ? coloredTexts(place, highlight, language) : [];
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

/** `fill`: paints what reaches to the edge. */
function signedLine(
  { sign, text }: DiffLine,
  colored: string,
  mark: TextPart | null,
  theme: Theme,
  fill = theme.fill,
): string {
  if (sign === ' ') return text.trim() === '' ? '' : ` ${colored}`;
  const role = lineRole(sign);
  if (mark === null || mark.from >= mark.to) return fill(role, sign + colored);
  const word = sign === '+' ? 'added_word' : 'removed_word';
  const isPlain = colored === text;
  const before = isPlain ? text.slice(0, mark.from) : takeColumns(colored, textWidth(text.slice(0, mark.from)));
  const behind = isPlain ? text.slice(mark.to) : dropColumns(colored, textWidth(text.slice(0, mark.to)));
  return theme.paint(role, sign + before) + theme.paint(word, text.slice(mark.from, mark.to)) + fill(role, behind);
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

/** Returns an edit as plain lines, with the number of its first line above each place. */
export function plainEditLines(places: readonly (readonly DiffLine[])[]): readonly string[] {
  return headed(places).map((line) => (typeof line === 'string' ? line : `${line.sign}${line.text}`.trimEnd()));
}

/** The lines of all places; above each the number of its first line, if that is known. */
function headed(places: readonly (readonly DiffLine[])[]): readonly (DiffLine | string)[] {
  return places.flatMap((place): readonly (DiffLine | string)[] => {
    const number = place[0]?.number ?? null;
    return number === null ? place : [placeHead(number), ...place];
  });
}

function placeHead(number: number): string {
  return `@@ line ${number}`;
}

/** Rows that are made when they are shown. */
export interface DiffRows {
  readonly length: number;
  slice(from: number, to: number): string[];
}

/** Paints the lines of one edit, each when it is asked for. */
export interface PaintedEdit {
  rows(columns: number): DiffRows;
}

/** Returns an edit whose rows are broken and painted for a width. Of a long one only the rows that are shown are
 * painted: painting all of them takes seconds. */
export function paintEdit(
  places: readonly (readonly DiffLine[])[],
  style: Omit<ChangeStyle, 'columns'>,
  path: string | null,
): PaintedEdit {
  const lines = headed(places);
  const marks = new Map<DiffLine, TextPart>();
  for (const place of places)
    for (const [index, mark] of changedParts(place).entries()) {
      const line = place[index];
      if (line && mark) marks.set(line, mark);
    }
  const colored = createColors(places, style, path);
  const paint = (line: DiffLine | string): string =>
    typeof line === 'string'
      ? style.theme.paint('hunk', line)
      : signedLine(line, colored(line), marks.get(line) ?? null, style.theme, style.theme.paint);
  return {
    rows: (columns) => brokenRows(lines, columns, (line) => rowsOf(line, paint(line), columns, style.theme)),
  };
}

/** Returns how a line looks with the colours of its language, as soon as these are loaded. */
function createColors(
  places: readonly (readonly DiffLine[])[],
  style: Omit<ChangeStyle, 'columns'>,
  path: string | null,
): (line: DiffLine) => string {
  const known = new Map<DiffLine, string>();
  const isLong = places.flat().reduce((size, { text }) => size + text.length, 0) > mostColored;
  const load = (place: readonly DiffLine[]): void => {
    for (const [index, text] of placeColors(place, style, path).entries()) {
      const line = place[index];
      if (line && text !== undefined) known.set(line, text);
    }
  };
  return (line) => {
    if (known.size === 0 && !isLong) for (const place of places) load(place);
    return known.get(line) ?? line.text;
  };
}

/** A changed line has its ground up to the edge. Rows after the first are indented, so that none of them can look like a
 * row of ours. */
function rowsOf(line: DiffLine | string, painted: string, columns: number, theme: Theme): readonly string[] {
  const plain = typeof line === 'string' ? line : line.sign + line.text;
  const [first, ...others] = wrapLine(plain, columns - 1);
  const isWhole = others.length === 0 && first !== undefined;
  const broken = isWhole ? [{ text: painted, width: first.width }] : wrapLine(painted, columns - 1);
  const rows = broken.map((row, index) => (index === 0 ? row : { text: ` ${row.text}`, width: row.width + 1 }));
  if (typeof line === 'string' || line.sign === ' ' || !theme.grounds) return rows.map(({ text }) => text);
  const role = lineRole(line.sign);
  return rows.map(({ text, width }) => text + theme.paint(role, ' '.repeat(Math.max(0, columns - width))));
}

/** The rows of lines that are made when they are shown, and kept while they are. */
function brokenRows(
  lines: readonly (DiffLine | string)[],
  columns: number,
  make: (line: DiffLine | string) => readonly string[],
): DiffRows {
  const ends: number[] = [];
  for (const line of lines) {
    const text = typeof line === 'string' ? line : line.sign + line.text;
    ends.push((ends.at(-1) ?? 0) + wrapLine(text, columns - 1).length);
  }
  return {
    length: ends.at(-1) ?? 0,
    slice(from, to) {
      const rows: string[] = [];
      const first = firstAbove(ends, from);
      for (const [offset, line] of lines.slice(first, firstAbove(ends, to - 1) + 1).entries()) {
        const start = ends[first + offset - 1] ?? 0;
        addAll(rows, make(line).slice(Math.max(0, from - start), to - start));
      }
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

function lineRole(sign: '+' | '-'): 'added_line' | 'removed_line' {
  return sign === '+' ? 'added_line' : 'removed_line';
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
