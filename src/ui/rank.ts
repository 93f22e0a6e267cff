import type fuzzysort from 'fuzzysort';
import type { Rank } from './picker.js';

const mostMatches = 200;

/** Fuzzy ranking; the matcher is loaded when first asked, until then parts of the text match. */
export function createRank(): Rank {
  let matcher: typeof fuzzysort | null = null;
  let loading = false;
  const known = new WeakMap<readonly string[], ReadonlyMap<string, number>>();
  const load = async (): Promise<void> => { matcher = (await import('fuzzysort')).default; };
  return (query, texts) => {
    if (!loading) { loading = true; void load(); }
    if (!matcher) return matchWords(query, texts);
    const places = placesOf(known, texts);
    return matcher.go(query, texts, { limit: mostMatches }).map((result) => places.get(result.target) ?? 0);
  };
}

function matchWords(query: string, texts: readonly string[]): readonly number[] {
  const words = query.toLowerCase().split(/\s+/);
  return texts.flatMap((text, index) => (words.every((word) => text.toLowerCase().includes(word)) ? [index] : [])).slice(0, mostMatches);
}

/** Index by text, made once for each list. */
function placesOf(known: WeakMap<readonly string[], ReadonlyMap<string, number>>, texts: readonly string[]): ReadonlyMap<string, number> {
  const before = known.get(texts);
  if (before) return before;
  const made = new Map(texts.map((text, index) => [text, index]));
  known.set(texts, made);
  return made;
}
