import { expect, test } from 'vitest';
import { mcnemar, wilson } from '../../../src/features/eval/scores.js';

// Source: E. B. Wilson's interval as R's `prop.test(x, n, correct = FALSE)` prints it.
test.each([
  [8, 10, 0.4901625, 0.9433178],
  [0, 10, 0, 0.2775328],
  [10, 10, 0.7224672, 1],
  [1, 2, 0.0945312, 0.9054688],
])('%i of %i has the interval %f to %f', (passed, total, low, high) => {
  const found = wilson(passed, total);
  expect(found.low).toBeCloseTo(low, 6);
  expect(found.high).toBeCloseTo(high, 6);
});

// Source: R's `binom.test(min, n, 0.5)`.
test.each([
  [1, 9, 0.021484375],
  [0, 5, 0.0625],
  [0, 6, 0.03125],
  [5, 5, 1],
  [0, 0, 1],
  [3, 0, 0.25],
])('%i and %i pairs that differ have p = %f', (first, second, p) => {
  expect(mcnemar(first, second)).toBeCloseTo(p, 9);
  expect(mcnemar(second, first)).toBeCloseTo(p, 9);
});

test('thousands of pairs have a p value', () => {
  expect(mcnemar(900, 1100)).toBeGreaterThan(0);
  expect(mcnemar(900, 1100)).toBeLessThan(1e-4);
});
