/** The candidates that `word` may have meant, nearest first, at most three of about the same distance; empty where none
 * is close. Case, `-`, `_` and spaces do not count. Ties keep the order of the candidates. */
export function nearest(word: string, candidates: readonly string[]): readonly string[] {
  const wanted = plain(word);
  const maxDistance = Math.max(2, Math.floor(word.length * 0.4));
  const near = candidates
    .map((candidate) => ({ candidate, distance: distanceUpTo(maxDistance, wanted, plain(candidate)) }))
    .filter(({ distance }) => distance <= maxDistance)
    .sort((one, other) => one.distance - other.distance);
  const best = near[0]?.distance ?? 0;
  return near
    .filter(({ distance }) => distance <= best + 1)
    .slice(0, 3)
    .map(({ candidate }) => candidate);
}

/** The one candidate that `word` most probably meant, or null where none is close. */
export function nearestName(word: string, candidates: readonly string[]): string | null {
  return nearest(word, candidates)[0] ?? null;
}

/** `Did you mean a or b?`, or an empty text where nothing is close. */
export function didYouMean(word: string, candidates: readonly string[]): string {
  const names = nearest(word, candidates);
  return names.length === 0
    ? ''
    : `Did you mean ${names.slice(0, -1).join(', ')}${names.length > 1 ? ' or ' : ''}${names.at(-1) ?? ''}?`;
}

/** Infinity for texts that share nothing and for those farther apart than `max`. */
function distanceUpTo(max: number, from: string, to: string): number {
  if (Math.abs(from.length - to.length) > max) return Infinity;
  const distance = editDistance(from, to);
  return distance < Math.max(from.length, to.length) ? distance : Infinity;
}

/** Insertions, deletions, replacements and swaps of neighbours between two texts (optimal string alignment). */
export function editDistance(from: string, to: string): number {
  let beforeLast: readonly number[] = [];
  let last: readonly number[] = Array.from({ length: to.length + 1 }, (_item, index) => index);
  for (let i = 1; i <= from.length; i++) {
    const row = [i];
    for (let j = 1; j <= to.length; j++) {
      const same = from[i - 1] === to[j - 1];
      let cost = Math.min(at(last, j) + 1, at(row, j - 1) + 1, at(last, j - 1) + (same ? 0 : 1));
      if (i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1])
        cost = Math.min(cost, at(beforeLast, j - 2) + 1);
      row.push(cost);
    }
    beforeLast = last;
    last = row;
  }
  return at(last, to.length);
}

function at(row: readonly number[], index: number): number {
  return row[index] ?? Infinity;
}

function plain(text: string): string {
  return text.toLowerCase().replace(/[-_\s]/g, '');
}
