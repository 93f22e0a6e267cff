import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createBodyEncoder, encodeBody } from '../../../../src/kernel/providers/http/body.js';

const piece = fc
  .string({ unit: 'binary', maxLength: 12 })
  .map((text) => JSON.stringify(text.isWellFormed() ? text : '?'));
const list = (items: readonly string[]): readonly string[] => [
  '[',
  ...items.flatMap((item, index) => (index === 0 ? [item] : [',', item])),
  ']',
];

test('whatever a request shares with the one before, its bytes are those of its own parts', () => {
  fc.assert(
    fc.property(
      fc.array(fc.array(piece, { maxLength: 8 }), { minLength: 1, maxLength: 12 }),
      fc.array(fc.nat(8)),
      (additions, cuts) => {
        const encoder = createBodyEncoder();
        let items: readonly string[] = [];
        additions.forEach((added, index) => {
          items = [...items.slice(0, items.length - (cuts[index] ?? 0)), ...added];
          expect(Buffer.from(encoder.encode(list(items))).toString()).toBe(list(items).join(''));
        });
      },
    ),
  );
});

test('a surrogate that stands alone does not get through, now or in a later request that shares it', () => {
  const encoder = createBodyEncoder();
  const text = (body: Uint8Array): unknown => JSON.parse(Buffer.from(body).toString());
  const lone = JSON.stringify('a\ud83d');
  expect(text(encoder.encode(list(['"x"', lone])))).toEqual(['x', 'a\ufffd']);
  expect(text(encoder.encode(list(['"x"', lone, '"\\\\ud83d"', '"z"'])))).toEqual(['x', 'a\ufffd', '\\ud83d', 'z']);
  expect(text(encoder.encode(list(['"x"', '"y"'])))).toEqual(['x', 'y']);
  expect(text(encodeBody(list([lone])))).toEqual(['a\ufffd']);
});
