/** Lists whose length comes from data. Arguments lie on the stack, so such a list must not be spread into a call:
 * `push(...list)` and `Math.max(...list)` fail with a stack overflow at some 100,000 items. */

/** Appends `items` to `list`. */
export function addAll<T>(list: T[], items: Iterable<T>): void {
  for (const item of items) list.push(item);
}

/** Returns the largest of `numbers` and `least`. */
export function largestOf(numbers: Iterable<number>, least = -Infinity): number {
  let largest = least;
  for (const number of numbers) largest = Math.max(largest, number);
  return largest;
}

/** Returns the smallest of `numbers` and `most`. */
export function smallestOf(numbers: Iterable<number>, most = Infinity): number {
  let smallest = most;
  for (const number of numbers) smallest = Math.min(smallest, number);
  return smallest;
}

/** A list as a table in `config` writes it: entries with `, ` between them, on one line or on several. */
export type WordList = string | readonly string[];

/** Returns the entries of a list. */
export function entriesOf(list: WordList): readonly string[] {
  return (typeof list === 'string' ? [list] : list).flatMap((line) => line.split(', '));
}
