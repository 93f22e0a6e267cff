import fc from 'fast-check';
import { expect, test } from 'vitest';
import rowsFile from '../../../fixtures/tools/math.json' with { type: 'json' };
import { evaluate, mathTools, shownNumber } from '../../../src/features/small-tools/math.js';
import { context, envelopeOf } from '../../kernel/tools/workbench.js';
import { registryOf } from '../registered.js';
import { propertyRuns } from '../../property-runs.js';

const rows = rowsFile.rows.map(([expression = '', result = '']) => ({ expression, result: Number(result) }));
const inMath = (expression: string) => envelopeOf('math_eval', { expression }, context('/'), registryOf(mathTools()));

function valueOf(expression: string): number {
  const result = evaluate(expression);
  return result.ok ? Number(shownNumber(result.value)) : Number.NaN;
}

test('200 expressions give what Python gives, to 13 digits', () => {
  expect(rows.length).toBeGreaterThanOrEqual(200);
  const wrong = rows.filter(({ expression, result }) => {
    const value = valueOf(expression);
    return !(value === result || Math.abs(value - result) <= 1e-13 * Math.abs(result));
  });
  expect(wrong).toEqual([]);
});

test('all but a few of them give the same 15 digits', () => {
  expect(rows.filter(({ expression, result }) => valueOf(expression) !== result).length).toBeLessThanOrEqual(4);
});

test('a result is written as a person would write it', async () => {
  const outputs = await Promise.all(['0.1+0.2', '2^53+1', '-0', '1/3', '10^21', '1e-7', '12*12'].map(inMath));
  expect(outputs).toEqual(
    ['0.3', '9.00719925474099e15', '0', '0.333333333333333', '1e21', '1e-7', '144'].map((output) => ({ output })),
  );
});

test('an error says what is wrong and where', async () => {
  const cases: readonly (readonly [string, string, number])[] = [
    ['2+', 'Expected a number, found the end (position 2 of 2).', 2],
    ['(1+2', 'Expected ) for the ( at position 1, found the end (position 4 of 4).', 4],
    ['2pi', 'Expected an operator, found pi (position 2 of 3).', 2],
    ['2 $ 3', 'Unexpected "$"; understood are numbers, + - * / % ^ ( ), pi, e and functions (position 3 of 5).', 3],
    ['log(5)', 'log takes (x, base); ln, log10 and log2 take one value, found 1 values (position 1 of 6).', 1],
    ['', 'Expected a number, found the end (position 0 of 0).', 0],
  ];
  for (const [expression, error, position] of cases)
    expect(await inMath(expression)).toEqual({ error, code: 'invalid_args', details: { position } });
});

test('what has no result in the real numbers is a failure of the sum, not of the call', async () => {
  const sums = ['1/0', '5%0', 'sqrt(-1)', 'ln(0)', '0^-1', '10^400', '(-8)^(1/3)', 'log(5, 1)', 'round(1, 0.5)'];
  for (const sum of sums) expect(await inMath(sum)).toMatchObject({ code: 'execution_failed' });
});

test('64 levels are read, 65 are refused', () => {
  const nested = (depth: number): string => `${'('.repeat(depth)}1${')'.repeat(depth)}`;
  expect(evaluate(nested(64))).toEqual({ ok: true, value: 1 });
  expect(evaluate(nested(65))).toMatchObject({ ok: false, problem: 'Nested deeper than 64' });
  expect(evaluate(`${'-'.repeat(65)}1`)).toMatchObject({ ok: false, problem: 'Nested deeper than 64' });
  expect(evaluate(`2${'^1'.repeat(65)}`)).toMatchObject({ ok: false, problem: 'Nested deeper than 64' });
  expect(evaluate(`1${'+(1)'.repeat(200)}`)).toEqual({ ok: true, value: 201 });
});

test('more than 1,000 characters are not read', async () => {
  expect(await inMath('1'.repeat(1001))).toMatchObject({ code: 'invalid_args' });
});

test('no text throws, and every position lies inside it', () => {
  const pieces = ['1', '2.5', '.', 'e', 'pi', 'sqrt', 'min', 'log', '(', ')', ',', '+', '-', '*', '/', '%', '^', ' '];
  const texts = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 200 }),
    fc
      .array(fc.constantFrom(...pieces, '__proto__', 'constructor', '\u{1F600}', '1e308'), { maxLength: 200 })
      .map((parts) => parts.join('')),
  );
  fc.assert(
    fc.property(texts, (text) => {
      const result = evaluate(text);
      if (result.ok) return Number.isFinite(result.value) && Number.isFinite(Number(shownNumber(result.value)));
      return result.position >= Math.min(1, text.length) && result.position <= text.length && result.problem !== '';
    }),
    { numRuns: propertyRuns(1000) },
  );
});
