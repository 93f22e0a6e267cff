import fc from 'fast-check';
import fixture from '../../../fixtures/tools/math.json' with { type: 'json' };
import { evaluate, shownNumber } from '../../../src/features/small-tools/math.js';

// `npm run t:math -- [texts]`: the rows of fixtures/tools/math.json against what Python gave, then texts made at random.
// Fails where a row is wrong, a text throws, takes over 100 ms, or names a position outside of it.

const count = Number(process.argv[2] ?? 100_000);
const wrong = fixture.rows.filter(([expression = '', expected = '']) => {
  const result = evaluate(expression);
  return !result.ok || Math.abs(result.value - Number(expected)) > 1e-13 * Math.abs(Number(expected));
});
const same = fixture.rows.filter(([expression = '', expected = '']) => {
  const result = evaluate(expression);
  return result.ok && Number(shownNumber(result.value)) === Number(expected);
});
console.log(`${fixture.rows.length} rows: ${wrong.length} wrong, ${same.length} with the same 15 digits`);

const pieces = ['1', '2.5', '.', 'e', 'pi', 'sqrt(', 'min(', 'log(', '(', ')', ',', '+', '-', '*', '/', '%', '^', ' '];
const texts = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 1000 }),
  fc.array(fc.constantFrom(...pieces), { maxLength: 500 }).map((parts) => parts.join('')),
);
let [results, thrown, outside, slow, worstMs] = [0, 0, 0, 0, 0];
for (const text of fc.sample(texts, { numRuns: count, seed: 16 })) {
  const start = performance.now();
  try {
    const result = evaluate(text);
    if (result.ok) results++;
    else if (result.position > text.length || result.position < Math.min(1, text.length)) outside++;
  } catch {
    thrown++;
  }
  const ms = performance.now() - start;
  worstMs = Math.max(worstMs, ms);
  if (ms > 100) slow++;
}
console.log(
  `${count} texts: ${results} with a result, ${thrown} thrown, ${outside} positions outside, ${slow} over 100 ms`,
);
console.log(`slowest: ${worstMs.toFixed(1)} ms`);
process.exitCode = wrong.length + thrown + outside + slow === 0 ? 0 : 1;
