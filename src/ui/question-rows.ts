import { isRecord } from '../core/json.js';
import type { Question } from '../core/policy.js';
import { decisionText } from '../terminal/sanitize.js';

/** A row of what is asked about; a line that goes or comes has the colour of one. */
export interface QuestionRow {
  readonly text: string;
  readonly tone: 'added' | 'removed' | null;
}

/** All that the call would do, escaped, nothing left out: each argument under its name, an edit as what goes and what
 * comes. */
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

/** What goes and what comes; lines that both begin or end with are shown once. */
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
