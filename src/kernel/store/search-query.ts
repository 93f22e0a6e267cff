import { isFiltered, type SearchFilters } from '../core/files/search-filters.js';
import { smallestOf } from '../core/lists.js';

/** A search: words that must all occur, "phrases", and beginnings* of words. */
export interface SearchQuery {
  /** The words of all terms, for FTS5's MATCH. */
  readonly match: string;
  /** The terms; `open`: the last word is a beginning. */
  readonly terms: readonly { readonly words: readonly string[]; readonly open: boolean }[];
  /** Finds each of the terms in a folded text. */
  readonly patterns: readonly RegExp[];
  /** The patterns of several words, whose order the index does not know. */
  readonly phrases: readonly RegExp[];
}

const letters = '\\p{L}\\p{N}';
/** Combining accents; the index ignores them. Source: SQLite, fts5_unicode2.c,
 * `sqlite3Fts5UnicodeIsdiacritic`. */
const accents = '\\u0300-\\u0331';
const accent = new RegExp(`[${accents}]`, 'g');
const anyWord = new RegExp(`[${letters}]+`, 'gu');
const maxSnippet = 160;
const leading = 50;

/** The words of a search; with filters and no word it finds every event. Null
 * where there is nothing to look for. */
export function searchOf(text: string, filters: SearchFilters): SearchQuery | null {
  const anything: SearchQuery = {
    match: '',
    terms: [],
    patterns: [],
    phrases: [],
  };
  return parseSearch(text) ?? (text.trim() === '' && isFiltered(filters) ? anything : null);
}

/** Returns null for a text of punctuation alone. Letter case and accents do not
 * count. */
function parseSearch(text: string): SearchQuery | null {
  const terms = [...text.matchAll(/"([^"]*)"?|(\S+)/g)]
    .map((found) => ({ words: foldedWords(found[1] ?? found[2] ?? ''), open: found[2]?.endsWith('*') === true }))
    .filter((term) => term.words.length > 0)
    .map(({ words, open }) => ({
      words,
      open,
      match: words.map((word) => `"${word}"`).join(' ') + (open ? ' *' : ''),
      pattern: termPattern(words, open),
      isPhrase: words.length > 1,
    }));
  if (terms.length === 0) return null;
  return {
    match: terms.map(({ match }) => match).join(' '),
    terms,
    patterns: terms.map(({ pattern }) => pattern),
    phrases: terms.filter(({ isPhrase }) => isPhrase).map(({ pattern }) => pattern),
  };
}

/** The words of a text as a search compares them: small letters without accents. */
export function foldedWords(text: string): readonly string[] {
  return fold(text).replace(accent, '').match(anyWord) ?? [];
}

function termPattern(words: readonly string[], open: boolean): RegExp {
  const spelled = words.map((word) => [...word].map((letter) => `${letter}[${accents}]*`).join(''));
  return new RegExp(
    `(?<![${letters}])${spelled.join(`[^${letters}]+`)}${open ? '' : `(?![${letters}${accents}])`}`,
    'gu',
  );
}

/** True when all terms occur. */
export function matchesSearch({ patterns }: SearchQuery, text: string): boolean {
  return areIn(patterns, text);
}

/** True when the text holds all phrases; it is known to hold their words. */
export function holdsPhrases({ phrases }: SearchQuery, text: string): boolean {
  return phrases.length === 0 || areIn(phrases, text);
}

function areIn(patterns: readonly RegExp[], text: string): boolean {
  const folded = fold(text);
  return patterns.every((pattern) => folded.search(pattern) >= 0);
}

/** Returns the text around the first hit, on one line, with the places of all
 * terms in it. */
export function snippetOf(
  { patterns }: SearchQuery,
  text: string,
): { readonly snippet: string; readonly matches: readonly (readonly [number, number])[] } {
  const folded = fold(text);
  const first = smallestOf(
    patterns.map((pattern) => folded.search(pattern)).filter((at) => at >= 0),
    text.length,
  );
  const start = first <= leading || first === text.length ? 0 : first - leading;
  const cut = text
    .slice(start, start + maxSnippet)
    .toWellFormed()
    .replace(/\s+/g, ' ')
    .trim();
  const snippet = `${start > 0 ? '…' : ''}${cut}${start + maxSnippet < text.length ? '…' : ''}`;
  const shown = fold(snippet);
  const matches = patterns.flatMap((pattern) =>
    [...shown.matchAll(pattern)].map((found): readonly [number, number] => [
      found.index,
      found.index + found[0].length,
    ]),
  );
  return { snippet, matches: matches.sort((one, other) => one[0] - other[0]) };
}

/** Returns small letters without accents, in the same length, so that places in
 * it are places in `text`. */
function fold(text: string): string {
  return text.replace(/[A-Z\x80-\uffff]/g, (char) => {
    const plain = char.normalize('NFD').charAt(0).toLowerCase();
    return plain.length === 1 ? plain : char;
  });
}
