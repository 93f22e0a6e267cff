import { wellFormed } from '../../core/text.js';
import type { RequestedEdit } from '../../core/edit-arguments.js';
import { type TextForm, withEol, withLineFeeds, withoutCarriageReturns } from '../../disk/text-encoding.js';

/** The text after all edits of a call, or the first edit that cannot be made. */
export type EditedText =
  | { readonly ok: true; readonly text: string; readonly count: number }
  | { readonly ok: false; readonly problem: EditProblem };

/** `index`: that of the edit, from 0. */
export type EditProblem =
  /** `plain`: the text in which it was searched for. `wasThere`: an earlier edit of the call removed it. */
  | {
      readonly kind: 'missing';
      readonly index: number;
      readonly wanted: string;
      readonly plain: string;
      readonly wasThere: boolean;
    }
  | { readonly kind: 'ambiguous'; readonly index: number; readonly lines: readonly number[] };

/** Makes the edits one after the other, each in the text that the earlier ones leave. Lines that are not changed keep
 * their line ends. */
export function applyEdits(text: string, edits: readonly RequestedEdit[], form: TextForm): EditedText {
  let current = text;
  let count = 0;
  for (const [index, { old_string, new_string, replace_all }] of edits.entries()) {
    const plain = withLineFeeds(current);
    const wanted = withoutCarriageReturns(old_string);
    const found = occurrences(plain, wanted, { overlap: replace_all !== true });
    if (found.length === 0) {
      const wasThere = index > 0 && withLineFeeds(text).includes(wanted);
      return { ok: false, problem: { kind: 'missing', index, wanted, plain, wasThere } };
    }
    if (found.length > 1 && replace_all !== true)
      return { ok: false, problem: { kind: 'ambiguous', index, lines: lineNumbers(plain, found) } };
    const { skipped, length, replacement } = changedLines(wanted, withoutCarriageReturns(new_string));
    const starts = found.map((start) => start + skipped);
    current = replaced(current, starts, length, withEol(replacement, form.eol), form);
    count += found.length;
  }
  return { ok: true, text: current, count };
}

/** Returns the part of an edit without the whole lines at its start and end that stay as they are: those keep their own
 * line ends. `skipped` and `length` count in `wanted`. */
function changedLines(
  wanted: string,
  replacement: string,
): { readonly skipped: number; readonly length: number; readonly replacement: string } {
  const most = Math.min(wanted.length, replacement.length);
  let start = 0;
  while (start < most && wanted[start] === replacement[start]) start++;
  const skipped = start === 0 ? 0 : wanted.lastIndexOf('\n', start - 1) + 1;
  let end = 0;
  while (end < most - skipped && wanted.at(-1 - end) === replacement.at(-1 - end)) end++;
  const isWhole = [wanted, replacement].every((text) => text.length - end === skipped || text.at(-1 - end) === '\n');
  const newline = wanted.indexOf('\n', wanted.length - end);
  const kept = isWhole ? end : newline < 0 ? 0 : wanted.length - newline - 1;
  return {
    skipped,
    length: wanted.length - skipped - kept,
    replacement: replacement.slice(skipped, replacement.length - kept),
  };
}

/** Replaces the matches. `positions` and `length` count in the text with LF line ends; text outside the matches keeps
 * its own line ends. */
function replaced(
  text: string,
  positions: readonly number[],
  length: number,
  replacement: string,
  form: TextForm,
): string {
  if (form.eol !== '\r\n' && !text.includes('\r\n'))
    return replaceSpans(
      text,
      positions.map((start) => ({ start, end: start + length })),
      replacement,
    );
  let plainAt = 0;
  let at = 0;
  const originalOf = (position: number): number => {
    while (plainAt < position) {
      if (text.charCodeAt(at) === 0x0d && text.charCodeAt(at + 1) === 0x0a) at++;
      at++;
      plainAt++;
    }
    return at;
  };
  return replaceSpans(
    text,
    positions.map((start) => ({ start: originalOf(start), end: originalOf(start + length) })),
    replacement,
  );
}

function replaceSpans(
  text: string,
  spans: readonly { readonly start: number; readonly end: number }[],
  replacement: string,
): string {
  const kept = spans.map(({ start }, index) => text.slice(index === 0 ? 0 : spans[index - 1]?.end, start));
  return [...kept, text.slice(spans.at(-1)?.end)].join(replacement);
}

/** Returns the positions of `wanted` in `text` from left to right; with `overlap`, also those inside of another one. */
export function occurrences(
  text: string,
  wanted: string,
  { overlap }: { readonly overlap: boolean },
): readonly number[] {
  const found: number[] = [];
  const step = overlap ? 1 : wanted.length;
  for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + step)) found.push(at);
  return found;
}

/** Returns the number of the line (from 1) for each position; positions ascend. */
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

/** A part of the file that is similar to the text that was searched for. */
interface Candidate {
  readonly line: number;
  readonly text: string;
}

const maxLines = 20_000;
const maxWantedLines = 8;
const maxLineChars = 300;
const maxShownChars = 600;

/** Returns the three parts of `text` that are most similar to `wanted`, best first. It compares line by line and
 * ignores white space at the ends of lines. */
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

/** Returns how similar two texts are, from 0 to 1: Dice's coefficient over pairs of neighbouring characters. */
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
