import { expect, test } from 'vitest';
import { runRaces } from '../bench/trust/race.js';

test('links exchanged while file tools work lead no call out of the workspace or into a secret file', async () => {
  const results = await runRaces(150);
  expect(results.map(({ kind, escapes }) => [kind, escapes])).toEqual(results.map(({ kind }) => [kind, 0]));
  expect(results.every(({ swaps, refused }) => swaps > 0 && refused > 0), JSON.stringify(results)).toBe(true);
});
