import type fuzzysort from 'fuzzysort';
import type { Rank } from '../panels/picker.js';

const mostMatches = 200;
/** The matcher scores at most this many texts at a key; of more, those that hold the query whole come first (100,000
 * take it 0.1 to 0.5 s). */
const mostScored = 2_000;

/** Fuzzy ranking; the matcher is loaded when first asked, until then the plainer order stands. */
export function createRank(): Rank {
  let matcher: typeof fuzzysort | null = null;
  let loading = false;
  const lowered = new WeakMap<readonly string[], readonly string[]>();
  const load = async (): Promise<void> => {
    matcher = (await import('fuzzysort')).default;
  };
  return (query, texts) => {
    if (!loading) {
      loading = true;
      void load();
    }
    const lower = lowered.get(texts) ?? texts.map((text) => text.toLowerCase());
    lowered.set(texts, lower);
    const candidates = candidatesOf(query.toLowerCase().trim(), lower);
    if (!matcher) return candidates.slice(0, mostMatches);
    const entries = candidates.map((index) => ({ index, text: texts[index] ?? '' }));
    return matcher.go(query, entries, { key: 'text', limit: mostMatches }).map((result) => result.obj.index);
  };
}

/** Indexes of the texts that could match: those that hold the query first, then those that hold its characters in
 * order. */
function candidatesOf(query: string, lower: readonly string[]): readonly number[] {
  const whole: number[] = [];
  for (let i = 0; i < lower.length && whole.length < mostScored; i++)
    if (lower[i]?.includes(query) === true) whole.push(i);
  if (whole.length >= mostMatches) return whole;
  const characters = [...query].filter((char) => char !== ' ');
  const found = new Set(whole);
  const loose: number[] = [];
  for (let i = 0; i < lower.length && loose.length < mostScored; i++)
    if (!found.has(i) && holds(lower[i] ?? '', characters, query.includes(' '))) loose.push(i);
  return [...whole, ...loose];
}

/** Whether the characters stand in `text` in this order; of a query of several words each word counts in any order. */
function holds(text: string, characters: readonly string[], words: boolean): boolean {
  if (words) return characters.every((char) => text.includes(char));
  let at = 0;
  for (const char of characters) {
    at = text.indexOf(char, at) + 1;
    if (at === 0) return false;
  }
  return true;
}
