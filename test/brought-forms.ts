import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';

/** How much of a form has an effect here. `part`: the rest is named in a sentence. */
export type Use = 'whole' | 'part' | 'not';

/** The reading of a form: how much of it is used, and the facts that the program reads. */
export interface Reading {
  readonly use: Use;
  readonly [fact: string]: unknown;
}

/** Returns the folder of the forms of one kind. */
export function formsFolder(kind: string): string {
  return fileURLToPath(new URL(`../fixtures/brought/${kind}`, import.meta.url));
}

/** Compares the readings of all forms of one kind with `fixtures/brought/<kind>/expected.json`, by the name of the form,
 * and prints how many are used. */
export function expectReadings(kind: string, readings: Readonly<Record<string, Reading>>): void {
  const text = readFileSync(`${formsFolder(kind)}/expected.json`, 'utf8');
  const expected = JSON.parse(text) as Readonly<Record<string, Reading>>;
  expect(Object.keys(readings).toSorted()).toEqual(Object.keys(expected).toSorted());
  for (const [form, reading] of Object.entries(readings))
    expect.soft(withoutPlaces({ form, ...reading })).toEqual({ form, ...expected[form] });
  printCounts(
    kind,
    Object.values(readings).map(({ use }) => use),
  );
}

/** Leaves out where JSON breaks: versions of Node word that differently. */
function withoutPlaces(reading: object): unknown {
  return JSON.parse(JSON.stringify(reading).replaceAll(/(is not valid JSON): (?:[^"\\]|\\.)*/g, '$1'));
}

/** Prints the line of one kind for the table of `npm run brought`. */
export function printCounts(kind: string, uses: readonly Use[]): void {
  const counts = { whole: 0, part: 0, not: 0 };
  for (const use of uses) counts[use] += 1;
  process.stdout.write(`${kind}: ${uses.length} forms, ${JSON.stringify(counts)}\n`);
}

/** Returns how much is used of what was read, by the sentences about it. */
export function useOf(isRead: boolean, problems: readonly string[]): Use {
  if (!isRead) return 'not';
  return problems.length === 0 ? 'whole' : 'part';
}
