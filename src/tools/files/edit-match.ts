import { wellFormed } from '../../core/text.js';

/** Where `wanted` stands in `text`, left to right without overlap. */
export function occurrences(text: string, wanted: string): readonly number[] {
  const found: number[] = [];
  for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + wanted.length)) found.push(at);
  return found;
}

/** The number (from 1) of the line that each position stands on; positions ascend. */
export function lineNumbers(text: string, positions: readonly number[]): readonly number[] {
  let line = 1;
  let from = 0;
  return positions.map((position) => {
    for (let at = text.indexOf('\n', from); at >= 0 && at < position; at = text.indexOf('\n', from)) {
      line++;
      from = at + 1;
    }
    return line;
  });
}

/** A part of the file that looks like what was looked for. */
export interface Candidate {
  readonly line: number;
  readonly text: string;
}

const maxLines = 20_000;
const maxWantedLines = 8;
const maxLineChars = 300;
const maxShownChars = 600;

/** The three parts of `text` most like `wanted`, best first: compared line by line, white space at the ends of lines
 * left aside. */
export function nearestParts(text: string, wanted: string): readonly Candidate[] {
  const lines = text.split('\n');
  const wantedLines = wanted.replace(/^\n+|\n+$/g, '').split('\n');
  const compared = wantedLines.slice(0, maxWantedLines).map(normalized);
  const first = compared.findIndex((line) => line.length > 2);
  const scored = lines.slice(0, maxLines).map((line, index) => ({
    index: index - Math.max(0, first),
    score: similarity(normalized(line), compared[Math.max(0, first)] ?? ''),
  }));
  const promising = scored
    .filter(({ index, score }) => index >= 0 && score > 0.3)
    .sort((a, b) => b.score - a.score)
    .slice(0, 50);
  return promising
    .map(({ index }) => ({
      index,
      score:
        compared.reduce((sum, line, i) => sum + similarity(normalized(lines[index + i] ?? ''), line), 0) /
        compared.length,
    }))
    .filter(({ score }) => score > 0.4)
    .sort((a, b) => b.score - a.score || a.index - b.index)
    .slice(0, 3)
    .map(({ index }) => ({
      line: index + 1,
      text: shortened(lines.slice(index, index + Math.min(wantedLines.length, maxWantedLines)).join('\n')),
    }));
}

function normalized(line: string): string {
  return line.slice(0, maxLineChars).trim().replace(/\s+/g, ' ');
}

function shortened(text: string): string {
  return text.length > maxShownChars ? `${wellFormed(text.slice(0, maxShownChars))}…` : text;
}

/** How much two texts share, from 0 to 1: Dice's coefficient over pairs of neighbouring characters. */
function similarity(a: string, b: string): number {
  if (a === b) return 1;
  if (a.length < 2 || b.length < 2) return a !== '' && b.includes(a) ? 0.5 : 0;
  const pairs = new Map<string, number>();
  for (let i = 0; i < a.length - 1; i++) pairs.set(a.slice(i, i + 2), (pairs.get(a.slice(i, i + 2)) ?? 0) + 1);
  let shared = 0;
  for (let i = 0; i < b.length - 1; i++) {
    const left = pairs.get(b.slice(i, i + 2)) ?? 0;
    if (left > 0) {
      shared++;
      pairs.set(b.slice(i, i + 2), left - 1);
    }
  }
  return (2 * shared) / (a.length + b.length - 2);
}
