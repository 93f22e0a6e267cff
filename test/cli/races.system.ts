import { expect, test } from 'vitest';
import { runRaces } from '../bench/trust/race.js';

test('links exchanged while file tools and searches work lead no call out of the workspace or into a secret file', async () => {
  const results = await runRaces(120);
  expect(results.map(({ kind, escapes }) => [kind, escapes])).toEqual(results.map(({ kind }) => [kind, 0]));
  expect(
    results.every(({ attempts, done, refused }) => attempts > 0 && done + refused > 0),
    JSON.stringify(results),
  ).toBe(true);
});
