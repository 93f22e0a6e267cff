import { isRecord, parseJson } from '../../kernel/core/json.js';
import type { StoredEvent } from './team.js';

const mark = '[redacted]';
const marks = /«redacted[^»]*»|\[redacted(?: by the user)?\]/;
/** The fields that link an event to others; their texts stay. */
const keptFields = new Set(['id', 'tool_call_id', 'response_id', 'type', 'name', 'kind']);

/** Returns an event of this machine after somebody else's redaction. It may replace texts by marks. If it brings any
 * other text, every text is replaced by a mark. */
export function blankedBy(theirs: StoredEvent, ours: StoredEvent): StoredEvent {
  if (takesAway(ours.content, theirs.content) && takesAway(ours.dataJson, theirs.dataJson)) return theirs;
  return {
    ...theirs,
    content: ours.content === null ? null : mark,
    dataJson: ours.dataJson === null ? null : blankJson(ours.dataJson),
    crc32: null,
  };
}

/** Returns true if `after` is `before` with marks in the place of some of its parts. */
function takesAway(before: string | null, after: string | null): boolean {
  if (after === null || after === before) return true;
  let at = 0;
  for (const part of after.split(marks)) {
    const found = before?.indexOf(part, at) ?? -1;
    if (found < 0) return false;
    at = found + part.length;
  }
  return marks.test(after);
}

function blankJson(text: string): string | null {
  try {
    return JSON.stringify(blank(parseJson(text), ''));
  } catch {
    return null;
  }
}

function blank(value: unknown, name: string): unknown {
  if (typeof value === 'string') return keptFields.has(name) ? value : mark;
  if (Array.isArray(value)) return value.map((item) => blank(item, name));
  if (!isRecord(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, blank(inner, key)]));
}
