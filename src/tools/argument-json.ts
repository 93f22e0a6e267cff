import type { ArgumentProblem, ToolArgs } from '../core/tool.js';
import { isRecord, jsonDepth } from '../core/json.js';

const maxArgumentBytes = 8 * 1024 * 1024;
const maxDepth = 64;

export type ParsedArguments =
  | { readonly ok: true; readonly args: ToolArgs }
  | { readonly ok: false; readonly problem: ArgumentProblem };

/** Reads a call's arguments, strictly: size and depth are checked on the raw text before anything is built from it,
 * only the empty string means `{}`, and a key that stands twice is refused, since what is shown and what is run could
 * differ. Nothing is repaired or coerced. */
export function parseArguments(text: string): ParsedArguments {
  if (text === '') return { ok: true, args: {} };
  if (text.length > maxArgumentBytes || Buffer.byteLength(text) > maxArgumentBytes) {
    return refused(
      `${Buffer.byteLength(text)} bytes of arguments`,
      `at most ${maxArgumentBytes} bytes; split the work over several calls`,
    );
  }
  if (jsonDepth(text, maxDepth) > maxDepth) return refused('nested too deeply', `at most ${maxDepth} levels`);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return refused(`not JSON: ${error instanceof Error ? error.message : 'unreadable'}`, 'one JSON object');
  }
  if (!isRecord(value))
    return refused(
      `${value === null ? 'null' : Array.isArray(value) ? 'an array' : `a ${typeof value}`} at the top`,
      'one JSON object',
    );
  const twice = repeatedKey(text);
  if (twice !== null)
    return { ok: false, problem: { argument: twice, problem: 'given twice', expected: 'each argument once' } };
  return { ok: true, args: value };
}

function refused(problem: string, expected: string): ParsedArguments {
  return { ok: false, problem: { argument: '', problem, expected } };
}

/** The first key that occurs twice in one object of a valid JSON text, or null. */
export function repeatedKey(text: string): string | null {
  const seen: (Set<string> | null)[] = [];
  let i = 0;
  while (i < text.length) {
    const code = text.charCodeAt(i);
    if (code === 0x7b) seen.push(new Set());
    else if (code === 0x5b) seen.push(null);
    else if (code === 0x7d || code === 0x5d) seen.pop();
    if (code !== 0x22) {
      i++;
      continue;
    }
    const end = stringEnd(text, i);
    const keys = seen.at(-1);
    if (keys && followedByColon(text, end)) {
      const key: unknown = JSON.parse(text.slice(i, end));
      if (typeof key === 'string') {
        if (keys.has(key)) return key;
        keys.add(key);
      }
    }
    i = end;
  }
  return null;
}

function followedByColon(text: string, from: number): boolean {
  let at = from;
  while (text.charCodeAt(at) <= 0x20) at++;
  return text.charCodeAt(at) === 0x3a;
}

/** The index just after the string that starts at `start`. */
function stringEnd(text: string, start: number): number {
  let at = text.indexOf('"', start + 1);
  while (at > 0) {
    let slashes = 0;
    while (text.charCodeAt(at - 1 - slashes) === 0x5c) slashes++;
    if (slashes % 2 === 0) return at + 1;
    at = text.indexOf('"', at + 1);
  }
  return text.length;
}
