import { isRecord } from '../core/json.js';
import type { Question } from '../core/policy.js';
import { decisionText } from '../terminal/sanitize.js';

/** A row of the call in question; added and removed lines have a colour. */
export interface QuestionRow {
  readonly text: string;
  readonly tone: 'added' | 'removed' | null;
}

/** Returns all that the call would do, escaped and complete: each argument under its name, an edit as removed and added
 * lines. */
export function questionRows(question: Question): readonly QuestionRow[] {
  const { args } = question.call;
  const names = Object.keys(args);
  const single = names.length === 1 ? args[names[0] ?? ''] : undefined;
  if (typeof single === 'string') return plainRows(decisionText(single, { lines: true }).split('\n'));
  const { old_string: before, new_string: after, ...rest } = args;
  if (typeof before !== 'string' || typeof after !== 'string')
    return plainRows(names.flatMap((name) => argumentLines(name, args[name])));
  const others = Object.keys(rest).flatMap((name) => argumentLines(name, rest[name]));
  return [...plainRows(others), ...editRows(before, after)];
}

function plainRows(lines: readonly string[]): QuestionRow[] {
  return lines.map((text) => ({ text, tone: null }));
}

function argumentLines(name: string, value: unknown): string[] {
  const text =
    typeof value === 'string'
      ? decisionText(value, { lines: true })
      : decisionText(JSON.stringify(value) ?? 'undefined', { lines: false });
  const key = decisionText(name, { lines: false });
  const lines = text.split('\n');
  return lines.length === 1 && !isRecord(value) ? [`${key}: ${text}`] : [`${key}:`, ...lines];
}

/** Returns the removed and the added lines; common lines at the beginning and the end are shown once. */
function editRows(before: string, after: string): QuestionRow[] {
  const old = decisionText(before, { lines: true }).split('\n');
  const now = decisionText(after, { lines: true }).split('\n');
  const least = Math.min(old.length, now.length);
  let start = 0;
  while (start < least && old[start] === now[start]) start++;
  let end = 0;
  while (end < least - start && old[old.length - 1 - end] === now[now.length - 1 - end]) end++;
  return [
    ...old.slice(0, start).map((line): QuestionRow => ({ text: `  ${line}`, tone: null })),
    ...old.slice(start, old.length - end).map((line): QuestionRow => ({ text: `- ${line}`, tone: 'removed' })),
    ...now.slice(start, now.length - end).map((line): QuestionRow => ({ text: `+ ${line}`, tone: 'added' })),
    ...old.slice(old.length - end).map((line): QuestionRow => ({ text: `  ${line}`, tone: null })),
  ];
}
