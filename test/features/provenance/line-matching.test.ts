import fc from 'fast-check';
import { expect, test } from 'vitest';
import { spliceBetween, splitLines } from '../../../src/features/provenance/line-matching.js';

const lines = fc.array(fc.constantFrom('', 'a', 'b', 'ab', 'é', 'a longer line of text'), { maxLength: 30 });
const text = fc.tuple(lines, fc.boolean()).map(([all, isEnded]) => Buffer.from(all.join('\n') + (isEnded ? '\n' : '')));

test('a splice leads from one text to the other, wherever it lies', () => {
  fc.assert(
    fc.property(text, text, text, text, (start, one, other, end) => {
      const before = Buffer.concat([start, one, end]);
      const after = Buffer.concat([start, other, end]);
      const old = splitLines(before.toString());
      const { at, removed, from, texts, oldTexts } = spliceBetween(before, after);
      expect(old.slice(at, at + removed)).toEqual(oldTexts);
      expect(old.toSpliced(at, removed, ...texts)).toEqual(splitLines(after.toString()));
      for (const [index, offset] of from.entries()) if (offset >= 0) expect(oldTexts[offset]).toBe(texts[index]);
      expect(spliceBetween(before, after, old.length).at).toBe(at);
    }),
  );
});
