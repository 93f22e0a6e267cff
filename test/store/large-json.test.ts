import fc from 'fast-check';
import { expect, test } from 'vitest';
import { wellFormedDeep } from '../../src/core/text.js';
import { largeJson } from '../../src/store/large-json.js';

const pieces = fc.array(fc.constantFrom('line of output\n', 'é€', '\u{1F600}', '\u001b[31m"\\'), {
  minLength: 1,
  maxLength: 40,
});
const some = fc.dictionary(fc.string({ unit: 'binary' }), fc.jsonValue()).map((rest) => wellFormedDeep(rest));
const long = (parts: readonly string[], chars: number): string =>
  parts.join('').repeat(Math.ceil(chars / parts.join('').length));

test('an object with a long text is the bytes that JSON has for it, wherever its pieces end', () => {
  fc.assert(
    fc.property(pieces, fc.nat(40), some, (parts, shift, rest) => {
      const output = '.'.repeat(shift) + long(parts, 140_000);
      const data = { tool_call_id: 'c1', output, skipped: undefined, ...rest, success: true, last: output };
      expect(largeJson(data).toString()).toBe(JSON.stringify(data));
    }),
    { numRuns: 40 },
  );
});

test('a short rest of a long text is as JSON has it', () => {
  const data = { output: `${'a'.repeat(3 * 32_768)}é€` };
  expect(largeJson(data).toString()).toBe(JSON.stringify(data));
});

test('an empty object', () => {
  expect(largeJson({ skipped: undefined }).toString()).toBe('{}');
});
