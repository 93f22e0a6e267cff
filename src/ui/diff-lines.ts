import type { Theme } from './theme.js';
import { expandTabs } from '../terminal/width.js';

/** A unified diff by line, coloured, nothing added: for a diff that a model wrote. */
export function paintDiff(lines: readonly string[], theme: Theme): string[] {
  return lines.map((line) => {
    if (/^(?:\+\+\+|---|Index:|===)/.test(line)) return theme.paint('dim', line);
    if (line.startsWith('@@')) return theme.paint('hunk', line);
    if (line.startsWith('+')) return theme.paint('added', line);
    if (line.startsWith('-')) return theme.paint('removed', line);
    return line;
  });
}

/** One line of a change: its number in the file, old for what goes, new for all else. */
export interface DiffLine {
  readonly sign: '+' | '-' | ' ';
  readonly number: number;
  readonly text: string;
}

/** A change of one file as it is shown: line numbers, colours, changed words marked. `lines` is a unified diff of one
 * file. The names of the file are left out (the call names it), and an ellipsis stands between two places of the
 * file. */
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

/** What stands below each hunk header of a unified diff. */
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

/** The texts of a place, words that differ between a line that goes and the one that comes in its stead marked. */
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

/** Two versions of a line, what differs marked; null where too little of them is alike for that to help. */
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
