/** What a person looks for: words, all of which must occur, "phrases", and beginnings* of words. */
export interface SearchQuery {
  /** For FTS5's MATCH. */
  readonly match: string;
  /** Finds each of the terms in a folded text. */
  readonly patterns: readonly RegExp[];
}

const letters = '\\p{L}\\p{N}';
const maxSnippet = 160;
const leading = 50;

/** Null where nothing in the text can be looked for (punctuation alone). Letter case and accents do not count. */
export function parseSearch(text: string): SearchQuery | null {
  const terms = [...text.matchAll(/"([^"]*)"?|(\S+)/g)]
    .map((found) => ({ words: fold(found[1] ?? found[2] ?? '').match(new RegExp(`[${letters}\\p{M}]+`, 'gu')) ?? [], open: found[2]?.endsWith('*') === true }))
    .filter((term) => term.words.length > 0);
  if (terms.length === 0) return null;
  return {
    match: terms.map(({ words, open }) => `"${words.join(' ')}"${open ? ' *' : ''}`).join(' '),
    patterns: terms.map(({ words, open }) => new RegExp(`(?<![${letters}])${words.join(`[^${letters}]+`)}${open ? '' : `(?![${letters}])`}`, 'gu')),
  };
}

/** True where all terms occur. */
export function matchesSearch({ patterns }: SearchQuery, text: string): boolean {
  const folded = fold(text);
  return patterns.every((pattern) => folded.search(pattern) >= 0);
}

/** What stands around the first place where a term occurs, on one line, with the places of all terms in it. */
export function snippetOf({ patterns }: SearchQuery, text: string): { readonly snippet: string; readonly matches: readonly (readonly [number, number])[] } {
  const folded = fold(text);
  const first = Math.min(...patterns.map((pattern) => folded.search(pattern)).filter((at) => at >= 0), text.length);
  const start = first <= leading || first === text.length ? 0 : first - leading;
  const cut = text.slice(start, start + maxSnippet).toWellFormed().replace(/\s+/g, ' ').trim();
  const snippet = `${start > 0 ? '…' : ''}${cut}${start + maxSnippet < text.length ? '…' : ''}`;
  const shown = fold(snippet);
  const matches = patterns.flatMap((pattern) => [...shown.matchAll(pattern)].map((found): readonly [number, number] => [found.index, found.index + found[0].length]));
  return { snippet, matches: matches.sort((one, other) => one[0] - other[0]) };
}

/** Small letters without accents, of the same length, so that places in it are places in `text`. */
function fold(text: string): string {
  return text.replace(/[A-Z\x80-\uffff]/g, (char) => {
    const plain = char.normalize('NFD').charAt(0).toLowerCase();
    return plain.length === 1 ? plain : char;
  });
}
