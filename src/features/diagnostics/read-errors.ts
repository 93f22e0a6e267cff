import { isRecord } from '../../kernel/core/json.js';
import { firstLine } from '../../kernel/core/text.js';

/** An error in a source file. Lines and columns count from 1. */
export interface FoundError {
  readonly path: string;
  readonly line: number;
  readonly column: number;
  /** `TS2322`, or '' where the server gives none. */
  readonly code: string;
  readonly message: string;
}

const maxErrors = 1_000;
const maxMessageChars = 300;

/** Reads the diagnostics of the protocol that are errors; of anything else nothing is read. */
export function readErrors(path: string, diagnostics: unknown): readonly FoundError[] {
  if (!Array.isArray(diagnostics)) return [];
  return diagnostics.slice(0, maxErrors).flatMap((item: unknown) => {
    if (!isRecord(item) || (item['severity'] ?? 1) !== 1 || typeof item['message'] !== 'string') return [];
    const start = isRecord(item['range']) ? item['range']['start'] : null;
    return [errorAt(path, start, { first: 0, column: 'character' }, { code: item['code'], message: item['message'] })];
  });
}

/** Reads the answer of TypeScript's own server to a request for diagnostics; null where it is none. */
export function errorsOfTypescript(path: string, answer: unknown): readonly FoundError[] | null {
  if (!isRecord(answer) || !Array.isArray(answer['body'])) return null;
  return answer['body'].slice(0, maxErrors).flatMap((item: unknown) => {
    if (!isRecord(item) || item['category'] !== 'error' || typeof item['text'] !== 'string') return [];
    const code = typeof item['code'] === 'number' ? `TS${item['code']}` : '';
    return [errorAt(path, item['start'], { first: 1, column: 'offset' }, { code, message: item['text'] })];
  });
}

function errorAt(
  path: string,
  start: unknown,
  { first, column }: { readonly first: 0 | 1; readonly column: 'character' | 'offset' },
  { code, message }: { readonly code: unknown; readonly message: string },
): FoundError {
  const at = (key: string): number => {
    const value = isRecord(start) ? start[key] : null;
    return typeof value === 'number' ? value + 1 - first : 1;
  };
  const text = typeof code === 'string' || typeof code === 'number' ? firstLine(String(code), 40) : '';
  return { path, line: at('line'), column: at(column), code: text, message: firstLine(message, maxMessageChars) };
}

/** Number of times that each error occurs. Its place does not count: lines above move it. */
export type ErrorCounts = ReadonlyMap<string, number>;

export function countErrors(errors: readonly FoundError[]): ErrorCounts {
  const counts = new Map<string, number>();
  for (const error of errors) counts.set(keyOf(error), (counts.get(keyOf(error)) ?? 0) + 1);
  return counts;
}

/** Returns the errors that occur more often than before. */
export function newErrors(errors: readonly FoundError[], before: ErrorCounts): readonly FoundError[] {
  const left = new Map(before);
  return errors.filter((error) => {
    const count = left.get(keyOf(error)) ?? 0;
    left.set(keyOf(error), count - 1);
    return count <= 0;
  });
}

function keyOf({ code, message }: FoundError): string {
  return `${code}\0${message}`;
}
