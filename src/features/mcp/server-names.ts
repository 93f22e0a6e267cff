import { shortServerNames } from '../../kernel/core/tool-patterns.js';

const namePattern = /^(?!.*__)[A-Za-z0-9_-]{1,24}$/;

/** Returns what is wrong with the name of a server, or null. */
export function nameProblem(name: string): string | null {
  return namePattern.test(name) ? null : 'its name needs 1 to 24 letters, digits, _ and -, without __';
}

/** Returns the names that servers have here, by their names in a file: what a name must not have becomes `_`, and what
 * is longer than 24 characters is cut. Where two names become the same one, they end in characters of their hashes. */
export function fittingNames(written: readonly string[]): ReadonlyMap<string, string> {
  const short = (name: string): string => (nameProblem(name) === null ? name : shortServerNames(name).plain);
  const counts = new Map<string, number>();
  for (const name of written) counts.set(short(name), (counts.get(short(name)) ?? 0) + 1);
  return new Map(
    written.map((name) => {
      const isAlone = nameProblem(name) === null || counts.get(short(name)) === 1;
      return [name, isAlone ? short(name) : shortServerNames(name).unique];
    }),
  );
}

/** Returns a sentence about the names that are changed, or nothing. */
export function nameNotices(written: readonly string[], file: string): readonly string[] {
  const changed = [...fittingNames(written)].filter(([name, short]) => name !== short);
  if (changed.length === 0) return [];
  const list = changed.map(([name, short]) => `${name} is ${short}`).join(', ');
  return [`${file}: names of servers have at most 24 letters, digits, _ and - here: ${list}.`];
}

/** Returns the name that a server has in its file, or null. `name`: that one, or the one that it has here. */
export function writtenName(written: readonly string[], name: string): string | null {
  if (written.includes(name)) return name;
  return [...fittingNames(written)].find(([, short]) => short === name)?.[0] ?? null;
}
