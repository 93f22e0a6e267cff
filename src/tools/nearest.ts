/** The candidates most like `wanted`, best first, at most `count`; those that are not like it at all are left out. */
export function nearest(wanted: string, candidates: readonly string[], count: number): readonly string[] {
  return candidates
    .map((name) => ({ name, score: similarity(wanted.toLowerCase(), name.toLowerCase()) }))
    .filter(({ score }) => score >= 0.4)
    .sort((a, b) => b.score - a.score || (a.name < b.name ? -1 : 1))
    .slice(0, count)
    .map(({ name }) => name);
}

/** How much two texts share, from 0 to 1: Dice's coefficient over pairs of neighbouring characters. */
export function similarity(a: string, b: string): number {
  if (a === b) return 1;
  if (a.length < 2 || b.length < 2) return a !== '' && b.includes(a) ? 0.5 : 0;
  const pairs = new Map<string, number>();
  for (let i = 0; i < a.length - 1; i++) pairs.set(a.slice(i, i + 2), (pairs.get(a.slice(i, i + 2)) ?? 0) + 1);
  let shared = 0;
  for (let i = 0; i < b.length - 1; i++) {
    const left = pairs.get(b.slice(i, i + 2)) ?? 0;
    if (left > 0) {
      shared++;
      pairs.set(b.slice(i, i + 2), left - 1);
    }
  }
  return (2 * shared) / (a.length + b.length - 2);
}
