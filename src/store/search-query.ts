/** What a person looks for: words, all of which must occur, "phrases", and beginnings* of words. */
export interface SearchQuery {
  /** For FTS5's MATCH: the words of all terms. */
  readonly match: string;
  /** Finds each of the terms in a folded text. */
  readonly patterns: readonly RegExp[];
  /** Those of `patterns` that say in which order words stand, which the index does not know. */
  readonly phrases: readonly RegExp[];
}

const letters = '\\p{L}\\p{N}';
/** Accents that stand by themselves after their letter; the index does not see them. Source: SQLite, fts5_unicode2.c,
 * `sqlite3Fts5UnicodeIsdiacritic`. */
const accents = '\\u0300-\\u0331';
const accent = new RegExp(`[${accents}]`, 'g');
const maxSnippet = 160;
const leading = 50;

/** Null where nothing in the text can be looked for (punctuation alone). Letter case and accents do not count. */
export function parseSearch(text: string): SearchQuery | null {
  const terms = [...text.matchAll(/"([^"]*)"?|(\S+)/g)]
    .map((found) => ({
      words:
        fold(found[1] ?? found[2] ?? '')
          .replace(accent, '')
          .match(new RegExp(`[${letters}]+`, 'gu')) ?? [],
      open: found[2]?.endsWith('*') === true,
    }))
    .filter((term) => term.words.length > 0)
    .map(({ words, open }) => ({
      match: words.map((word) => `"${word}"`).join(' ') + (open ? ' *' : ''),
      pattern: termPattern(words, open),
      isPhrase: words.length > 1,
    }));
  if (terms.length === 0) return null;
  return {
    match: terms.map(({ match }) => match).join(' '),
    patterns: terms.map(({ pattern }) => pattern),
    phrases: terms.filter(({ isPhrase }) => isPhrase).map(({ pattern }) => pattern),
  };
}

function termPattern(words: readonly string[], open: boolean): RegExp {
  const spelled = words.map((word) => [...word].map((letter) => `${letter}[${accents}]*`).join(''));
  return new RegExp(
    `(?<![${letters}])${spelled.join(`[^${letters}]+`)}${open ? '' : `(?![${letters}${accents}])`}`,
    'gu',
  );
}

/** True where all terms occur. */
export function matchesSearch({ patterns }: SearchQuery, text: string): boolean {
  return areIn(patterns, text);
}

/** True where all that the index cannot tell of the terms is in the text, which holds all their words. */
export function holdsPhrases({ phrases }: SearchQuery, text: string): boolean {
  return phrases.length === 0 || areIn(phrases, text);
}

function areIn(patterns: readonly RegExp[], text: string): boolean {
  const folded = fold(text);
  return patterns.every((pattern) => folded.search(pattern) >= 0);
}

/** What stands around the first place where a term occurs, on one line, with the places of all terms in it. */
export function snippetOf(
  { patterns }: SearchQuery,
  text: string,
): { readonly snippet: string; readonly matches: readonly (readonly [number, number])[] } {
  const folded = fold(text);
  const first = Math.min(...patterns.map((pattern) => folded.search(pattern)).filter((at) => at >= 0), text.length);
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

/** Small letters without accents, of the same length, so that places in it are places in `text`. */
function fold(text: string): string {
  return text.replace(/[A-Z\x80-\uffff]/g, (char) => {
    const plain = char.normalize('NFD').charAt(0).toLowerCase();
    return plain.length === 1 ? plain : char;
  });
}
