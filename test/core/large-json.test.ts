import fc from 'fast-check';
import { expect, test } from 'vitest';
import { largeDataJson } from '../../src/store/large-data.js';
import { dataJson } from '../../src/store/event-rows.js';

const pieces = fc.array(fc.constantFrom('line of output\n', 'é€', '\u{1F600}', '\u001b[31m"\\', '\ud83d', '\ude00x'), { minLength: 1, maxLength: 40 });

test('an object with a long text is the bytes that JSON has for it, wherever its pieces end', () => {
  fc.assert(fc.property(pieces, fc.nat(40), fc.dictionary(fc.string({ unit: 'binary' }), fc.jsonValue()), (parts, shift, rest) => {
    const output = '.'.repeat(shift) + parts.join('').repeat(Math.ceil(140_000 / parts.join('').length));
    const data = { tool_call_id: 'c1', output, 'skipped\ud800': undefined, ...rest, success: true, last: output };
    const text = dataJson(data);
    expect(largeDataJson(data)?.toString()).toBe(text);
  }), { numRuns: 40 });
});

test('nothing else is taken on', () => {
  for (const data of [null, 'x'.repeat(200_000), ['x'.repeat(200_000)], { output: 'short' }, { deep: { output: 'x'.repeat(200_000) } }]) expect(largeDataJson(data)).toBeNull();
});
