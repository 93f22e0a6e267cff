import type { Theme } from './theme.js';
import { expandTabs } from '../terminal/rows.js';

/** Colours the lines of a unified diff that a model wrote, and adds nothing. */
export function paintDiff(lines: readonly string[], theme: Theme): string[] {
  return lines.map((line) => {
    if (/^(?:\+\+\+|---|Index:|===)/.test(line)) return theme.paint('dim', line);
    if (line.startsWith('@@')) return theme.paint('hunk', line);
    if (line.startsWith('+')) return theme.paint('added', line);
    if (line.startsWith('-')) return theme.paint('removed', line);
    return line;
  });
}

/** One line of a change and its number in the file: the old number for removed lines, the new one for all others. */
export interface DiffLine {
  readonly sign: '+' | '-' | ' ';
  readonly number: number;
  readonly text: string;
}

/** Returns a change of one file with line numbers, colours and marked words. `lines` is a unified diff of one file. The
 * file names are left out, because the call names the file; an ellipsis separates two places of it. */
export function changeLines(lines: readonly string[], theme: Theme): string[] {
  const places = placesOf(lines);
  if (places.length === 0) return paintDiff(lines, theme);
  const last = Math.max(...places.flat().map((line) => line.number));
  const width = String(last).length;
  const shown = places.map((place) =>
    markedTexts(place, theme).map((text, index) => {
      const { sign, number } = place[index] ?? { sign: ' ', number: 0 };
      const role = sign === '+' ? 'added' : sign === '-' ? 'removed' : null;
      const rest = `${sign} ${text}`.trimEnd();
      return `${theme.paint('dim', String(number).padStart(width))} ${role ? theme.paint(role, rest) : rest}`;
    }),
  );
  const cut = lines.findLast((line) => line !== '') === '…';
  const between = theme.paint('dim', theme.glyphs.ellipsis.padStart(width));
  return [...shown.flatMap((place, index) => (index === 0 ? place : [between, ...place])), ...(cut ? [between] : [])];
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
    places.at(-1)?.push({ sign, number: sign === '-' ? before : after, text: expandTabs(line.slice(1)) });
    if (sign !== '+') before++;
    if (sign !== '-') after++;
  }
  return places.filter((place) => place.length > 0);
}

/** Returns the texts of a place, with the words marked that differ between a removed line and its replacement. */
function markedTexts(place: readonly DiffLine[], theme: Theme): string[] {
  const texts = place.map((line) => line.text);
  for (let at = 0; at < place.length; at++) {
    if (place[at]?.sign !== '-') continue;
    const removed = runLength(place, at, '-');
    const added = runLength(place, at + removed, '+');
    for (let i = 0; removed === added && i < removed; i++) {
      const old = at + i;
      const now = at + removed + i;
      const marked = markWords(texts[old] ?? '', texts[now] ?? '', theme);
      if (marked) [texts[old], texts[now]] = marked;
    }
    at += removed + added - 1;
  }
  return texts;
}

function runLength(place: readonly DiffLine[], from: number, sign: DiffLine['sign']): number {
  const end = place.findIndex((line, index) => index >= from && line.sign !== sign);
  return (end < 0 ? place.length : end) - from;
}

/** Marks the differences between two versions of a line; null if too little is common for that to help. */
export function markWords(before: string, after: string, theme: Theme): [string, string] | null {
  const old = before.match(/\s+|\w+|[^\s\w]/gu) ?? [];
  const now = after.match(/\s+|\w+|[^\s\w]/gu) ?? [];
  const least = Math.min(old.length, now.length);
  let start = 0;
  while (start < least && old[start] === now[start]) start++;
  let end = 0;
  while (end < least - start && old[old.length - 1 - end] === now[now.length - 1 - end]) end++;
  const alike = [...old.slice(0, start), ...old.slice(old.length - end)].join('').replace(/\s/g, '').length;
  const longest = Math.max(before.replace(/\s/g, '').length, after.replace(/\s/g, '').length);
  if (alike * 3 < longest || alike === 0) return null;
  const mark = (words: readonly string[]): string => {
    const middle = words.slice(start, words.length - end).join('');
    return words.slice(0, start).join('') + theme.paint('changed', middle) + words.slice(words.length - end).join('');
  };
  return [mark(old), mark(now)];
}
