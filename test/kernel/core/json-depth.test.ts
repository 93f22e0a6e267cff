import { expect, test } from 'vitest';
import { parseJson } from '../../../src/kernel/core/json.js';

test('JSON is read up to 512 levels, and refused with a sentence beyond that', () => {
  const nested = (levels: number): string => `${'['.repeat(levels)}"${'[{"\\\\'.slice(0, 2)}"${']'.repeat(levels)}`;
  expect(parseJson(nested(512))).toBeInstanceOf(Array);
  for (const levels of [513, 100_000])
    expect(() => parseJson(nested(levels))).toThrow('JSON that is nested deeper than 512 levels is not read');
  expect(parseJson(JSON.stringify('['.repeat(100_000)))).toBe('['.repeat(100_000));
  expect(() => parseJson('['.repeat(100_000))).toThrow(SyntaxError);
});
