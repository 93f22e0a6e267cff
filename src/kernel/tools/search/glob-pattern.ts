import type { ArgumentProblem } from '../../core/tool.js';
import { compileGlob, type CompiledGlob } from './compiled-glob.js';

const maxAlternatives = 1000;
const maxChars = 2000;

/** Compiles the pattern of a search below `root`, which is absolute. Names of folders are data: a name with brackets or
 * braces matches the pattern of the same letters. Returns what is wrong with a pattern that cannot be used. */
export function parseGlobPattern(pattern: string, root: string): CompiledGlob | ArgumentProblem {
  if (pattern.trim() === '') return refusal('empty', 'a pattern such as **/*.ts');
  if (pattern.includes('\0')) return refusal('contains a NUL character', 'a pattern without it');
  if (pattern.length > maxChars) return refusal(`${pattern.length} characters`, `at most ${maxChars}`);
  const alternatives = expandBraces(pattern);
  if (alternatives === null)
    return refusal('its braces give too many alternatives', `at most ${maxAlternatives} alternatives`);
  const globs: CompiledGlob[] = [];
  for (const alternative of alternatives) {
    const inner = belowRoot(alternative, root);
    if (typeof inner !== 'string') return inner;
    for (const reading of literalReadings(inner)) {
      const glob = compileGlob(reading);
      if (glob) globs.push(glob);
    }
  }
  if (globs.length === 0) return refusal('unreadable', 'a pattern such as **/*.ts');
  return {
    matches: (path) => globs.some((glob) => glob.matches(path)),
    leadsInto: (folder) => globs.some((glob) => glob.leadsInto(folder)),
  };
}

function refusal(problem: string, expected: string): ArgumentProblem {
  return { argument: 'pattern', problem, expected };
}

/** Returns the pattern relative to `root`, without `.` and empty parts, or why it matches nothing there. */
function belowRoot(pattern: string, root: string): string | ArgumentProblem {
  let inner = pattern;
  if (pattern.startsWith('/')) {
    const prefix = root.endsWith('/') ? root : `${root}/`;
    if (!pattern.startsWith(prefix))
      return refusal('absolute, and outside of path', 'a pattern below path; give the folder in path');
    inner = pattern.slice(prefix.length);
  }
  const parts = inner.split('/');
  if (parts.includes('..')) return refusal('is outside the folder', 'a pattern below path; give the folder in path');
  if (parts.at(-1) === '' || parts.at(-1) === '.')
    return refusal('names a folder', `a pattern for files, such as ${inner.replace(/\/?\.?$/, '') || '.'}/**`);
  return parts.filter((part) => part !== '' && part !== '.').join('/');
}

/** Returns the pattern, and with `[id]` read as a name wherever a part has brackets: such folders are common. */
function literalReadings(pattern: string): readonly string[] {
  const literal = pattern
    .split('/')
    .map((part) => (part.includes('[') ? part.replace(/\\.|[[\]]/gs, (found) => escaped(found)) : part))
    .join('/');
  return literal === pattern ? [pattern] : [...mixedReadings(pattern, literal)];
}

/** Each part of a pattern is read either way, so that `[id]/[a-z]*` finds `[id]/x`. */
function mixedReadings(pattern: string, literal: string): Set<string> {
  const others = literal.split('/');
  let readings: string[][] = [[]];
  for (const [index, part] of pattern.split('/').entries()) {
    const choices = part === others[index] ? [part] : [part, others[index] ?? part];
    readings = readings.flatMap((reading) => choices.map((choice) => [...reading, choice]));
    if (readings.length > maxAlternatives) return new Set([pattern, literal]);
  }
  return new Set(readings.map((reading) => reading.join('/')));
}

function escaped(found: string): string {
  return found.length > 1 ? found : `\\${found}`;
}

/** Expands `{a,b}` and `{1..3}`, also nested. A group without a comma may be part of a name (`{{name}}`) or a needless
 * pair of braces (`*.{ts}`): it is read both ways. Returns null where there are too many alternatives. */
function expandBraces(pattern: string): readonly string[] | null {
  const expanded: string[] = [];
  const open = [pattern];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const group = firstGroup(next);
    if (group === null) expanded.push(next);
    else {
      const { before, items, after } = group;
      if (items.length + open.length + expanded.length > maxAlternatives) return null;
      for (const item of items) open.push(before + item + after);
    }
  }
  return expanded;
}

interface BraceGroup {
  readonly before: string;
  readonly items: readonly string[];
  readonly after: string;
}

/** Returns the first group of braces that is closed, or null. */
function firstGroup(pattern: string): BraceGroup | null {
  const tokens = [...pattern.matchAll(/\\.|\[[!^]?[^\]/]+\]|[{},]/gs)];
  for (const [start, token] of tokens.entries()) {
    if (token[0] !== '{') continue;
    let depth = 0;
    const commas: number[] = [];
    for (const { 0: text, index } of tokens.slice(start)) {
      if (text === '{') depth++;
      if (text === ',' && depth === 1) commas.push(index);
      if (text === '}' && --depth === 0)
        return {
          before: pattern.slice(0, token.index),
          items: itemsOf(pattern, token.index + 1, commas, index),
          after: pattern.slice(index + 1),
        };
    }
  }
  return null;
}

function itemsOf(pattern: string, from: number, commas: readonly number[], to: number): readonly string[] {
  const inner = pattern.slice(from, to);
  const ends = [...commas, to];
  if (commas.length > 0)
    return ends.map((end, index) => pattern.slice(index === 0 ? from : (ends[index - 1] ?? 0) + 1, end));
  return rangeItems(inner) ?? [inner, `\\{${inner}\\}`];
}

/** Returns the items of `1..3`, `01..10`, `a..e` or `1..9..2`, or null for another text. More than `maxAlternatives`
 * items are cut to one more than that, which is refused. */
function rangeItems(inner: string): readonly string[] | null {
  const range = /^(?:(-?\d{1,9})\.\.(-?\d{1,9})|([a-z])\.\.([a-z])|([A-Z])\.\.([A-Z]))(?:\.\.(-?\d{1,9}))?$/.exec(
    inner,
  );
  if (!range) return null;
  const [, low, high, ...letters] = range;
  const [from = '', to = ''] = letters.slice(0, 4).filter((letter) => letter !== undefined);
  const first = low === undefined ? from.charCodeAt(0) : Number(low);
  const last = high === undefined ? to.charCodeAt(0) : Number(high);
  const step = Math.max(1, Math.abs(Number(letters[4] ?? 1)));
  const isPadded = [low, high].some((text) => text !== undefined && /^-?0\d/.test(text));
  const width = isPadded ? Math.max(low?.length ?? 0, high?.length ?? 0) : 0;
  const count = Math.min(maxAlternatives, Math.floor(Math.abs(last - first) / step)) + 1;
  return Array.from({ length: count }, (_, index) => {
    const value = first + (last < first ? -step : step) * index;
    if (low === undefined) return String.fromCharCode(value);
    const digits = String(Math.abs(value)).padStart(value < 0 ? width - 1 : width, '0');
    return value < 0 ? `-${digits}` : digits;
  });
}
