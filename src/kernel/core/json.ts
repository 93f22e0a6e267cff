/** Any JSON value. */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject;
/** A JSON object. */
export interface JsonObject {
  readonly [key: string]: Json;
}
/** A JSON Schema document, draft 2020-12 unless it names another. */
export type JsonSchema = JsonObject;

/** True for an object that is neither null nor an array. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Counts the nesting depth of a JSON text (`[]` and `{}` are 1) without parsing it. Stops at `limit + 1`. Brackets
 * inside strings do not count. */
export function jsonDepth(text: string, limit: number): number {
  let depth = 0;
  let deepest = 0;
  for (let i = 0; i < text.length && deepest <= limit; i++) {
    const code = text.charCodeAt(i);
    if (code === 0x22) i = endOfString(text, i);
    else if (code === 0x5b || code === 0x7b) deepest = Math.max(deepest, ++depth);
    else if (code === 0x5d || code === 0x7d) depth--;
  }
  return deepest;
}

/** Returns the place of the quote that ends the string which begins at `start`; the length of the text if none does. Most
 * of a text is strings, and a start reads some 100 kB of them, before the compiler has seen a loop over characters. */
function endOfString(text: string, start: number): number {
  for (let at = text.indexOf('"', start + 1); at >= 0; at = text.indexOf('"', at + 1)) {
    let first = at;
    while (text.charCodeAt(first - 1) === 0x5c) first--;
    if ((at - first) % 2 === 0) return at;
  }
  return text.length;
}

/** The most levels of a JSON text that is parsed. Code that walks a value calls itself once for each level. */
export const maxJsonDepth = 512;

/** Returns true for a JSON text that is nested deeper than `maxJsonDepth`. */
export function isTooDeep(text: string): boolean {
  // Each level takes two characters, so a short text is never nested too deeply.
  return text.length > 2 * maxJsonDepth && jsonDepth(text, maxJsonDepth) > maxJsonDepth;
}

/** Parses a JSON text that others may have written: the one place that does. Throws a SyntaxError for a text that is
 * not JSON, and for one that is nested deeper than `maxJsonDepth`, because walking or writing such a value would end
 * the program with a stack overflow. */
export function parseJson(text: string): unknown {
  if (isTooDeep(text)) throw new SyntaxError(`JSON that is nested deeper than ${maxJsonDepth} levels is not read`);
  return JSON.parse(text) as unknown;
}

/** Parses a JSON text of any depth, for those who look at how deep each part is (`isDeeperThan`) before they walk it.
 * Throws a SyntaxError. */
export function parseDeepJson(text: string): unknown {
  return JSON.parse(text) as unknown;
}

/** Returns true if a JSON value is nested more deeply than `limit`. What calls itself once a level may read the others. */
export function isDeeperThan(value: unknown, limit: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return limit === 0 || Object.values(value).some((item) => isDeeperThan(item, limit - 1));
}
