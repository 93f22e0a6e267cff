import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  clampEnvelope,
  clampText,
  envelopeText,
  largeJson,
  outputOfParts,
  parseEnvelope,
} from '../../src/core/envelope.js';
import { modelOutput } from '../../src/core/model-output.js';
import { headBytes, tailBytes, utf8Bytes, wellFormedDeep } from '../../src/core/text.js';

const unit = fc.string({ unit: 'grapheme', maxLength: 400 });

test('byte counts agree with the encoder for every string', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 60 }), (text) => {
      expect(utf8Bytes(text)).toBe(Buffer.byteLength(text));
    }),
  );
});

test('long texts are counted like short ones, wherever a character falls', () => {
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom('a', 'é', '€', '😀', '\ud83d', '\ude00'), { minLength: 1, maxLength: 7 }),
      fc.integer({ min: 0, max: 3 }),
      (part, more) => {
        const text = 'x'.repeat(more) + part.join('').repeat(9000);
        expect(utf8Bytes(text)).toBe(Buffer.byteLength(text));
        for (const max of [0, 1, 7, 5000, 16_384, 60_000]) {
          const tail = tailBytes(text, max);
          const next = [...text.slice(Math.max(0, text.length - tail.length - 2), text.length - tail.length)].at(-1);
          expect(text.endsWith(tail) && Buffer.byteLength(tail) <= max).toBe(true);
          if (next !== undefined) expect(Buffer.byteLength(next + tail)).toBeGreaterThan(max);
        }
      },
    ),
    { numRuns: 40 },
  );
});

test('head and tail are the longest parts that fit, on code point boundaries', () => {
  fc.assert(
    fc.property(unit, fc.nat(120), (text, max) => {
      const head = headBytes(text, max);
      const tail = tailBytes(text, max);
      expect(text.startsWith(head) && text.endsWith(tail)).toBe(true);
      expect(head.isWellFormed() && tail.isWellFormed()).toBe(true);
      for (const [part, next] of [
        [head, [...text.slice(head.length)][0]],
        [tail, [...text.slice(0, text.length - tail.length)].at(-1)],
      ] as const) {
        expect(utf8Bytes(part)).toBeLessThanOrEqual(max);
        if (next !== undefined) expect(utf8Bytes(part) + utf8Bytes(next)).toBeGreaterThan(max);
      }
    }),
  );
});

test('a cut text fits its budget and its marker counts what is missing', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: 'grapheme', minLength: 200, maxLength: 600 }),
      fc.integer({ min: 60, max: 190 }),
      (text, max) => {
        const { text: cut, omittedBytes } = clampText(text, max);
        fc.pre(utf8Bytes(text) > max);
        expect(utf8Bytes(cut)).toBeLessThanOrEqual(max);
        const [, head, count, tail] = /^([\s\S]*)\n\[… (\d+) bytes omitted …\]\n([\s\S]*)$/.exec(cut) ?? [];
        expect(Number(count)).toBe(omittedBytes);
        expect(omittedBytes).toBe(utf8Bytes(text) - utf8Bytes(head ?? '') - utf8Bytes(tail ?? ''));
        expect(text.startsWith(head ?? '?') && text.endsWith(tail ?? '?')).toBe(true);
      },
    ),
  );
});

test('an envelope over the limit says that it was cut and how long it was', () => {
  const envelope = clampEnvelope({ output: 'ä'.repeat(100), exit_code: 0 }, 80);
  expect(envelope).toEqual({
    output: `${'ä'.repeat(13)}\n[… 150 bytes omitted …]\n${'ä'.repeat(12)}`,
    exit_code: 0,
    truncated: true,
    total_bytes: 200,
  });
});

test('an output its tool has cut already counts against the original', () => {
  const envelope = clampEnvelope({ output: 'x'.repeat(100), truncated: true, total_bytes: 5000 }, 60);
  expect(envelope).toMatchObject({ truncated: true, total_bytes: 5000 });
  expect('output' in envelope && envelope.output).toMatch(/\[… 49\d\d bytes omitted …\]/);
});

test('an envelope is read as it was written, long or short, and another of the same length is not taken for it', () => {
  for (const length of [10, 200_000]) {
    const first = { output: `${'a"\n'.repeat(length)}é`, exit_code: 0 };
    const second = { output: `${'b"\n'.repeat(length)}é`, exit_code: 0 };
    const texts = [first, second].map(envelopeText);
    expect(texts).toEqual([first, second].map((envelope) => JSON.stringify(envelope)));
    expect(texts.map(parseEnvelope)).toEqual([first, second]);
  }
});

test('an output put together from parts is stored, cut and sent to a model as its whole would be', () => {
  const cases = [
    ['a"\n', 'b\\'],
    ['日本', '🙂x'],
    ['short', 'b'],
  ].flatMap(([head = '', tail = '']) =>
    [20, 90_000].map((count) => [head.repeat(count), '\n[… 5 bytes omitted …]\n', tail.repeat(count)]),
  );
  for (const parts of cases) {
    const put = outputOfParts(parts, { exit_code: 0, truncated: true, total_bytes: 9_000_000 });
    const plain = { output: parts.join(''), exit_code: 0, truncated: true, total_bytes: 9_000_000 };
    expect(put).toEqual(plain);
    for (const maxBytes of [100, 400_000, 10_000_000])
      expect(clampEnvelope(put, maxBytes)).toEqual(clampEnvelope(plain, maxBytes));
    const stored = envelopeText(put);
    expect(JSON.parse(stored)).toEqual(plain);
    const result = { tool_call_id: 'c', name: 'bash', output: stored, success: true, duration_ms: 1 };
    for (const maxBytes of [100, 3000, 200_000]) {
      envelopeText(put);
      const live = modelOutput(result, 7, '{}', maxBytes);
      envelopeText({ output: 'x'.repeat(80_000) }); // what was written before is forgotten
      expect(live).toBe(modelOutput(result, 7, '{}', maxBytes));
    }
  }
});

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

test('a text of parts says what the whole does, and with narrow parts around a marker it is narrow', () => {
  fc.assert(
    fc.property(pieces, pieces, some, (first, last, rest) => {
      const parts = [long(first, 70_000), '\n[… 12 bytes omitted …]\n', long(last, 70_000)];
      const data = { ...rest, output: parts.join(''), more: 1 };
      expect(JSON.parse(largeJson(data, (key, text) => (key === 'output' ? parts : [text])).toString())).toEqual(
        JSON.parse(JSON.stringify(data)),
      );
    }),
    { numRuns: 20 },
  );
  const parts = ['a'.repeat(70_000), '[…]', 'b'];
  const json = largeJson({ output: parts.join('') }, () => parts).toString();
  expect(json).toBe(`{"output":"${'a'.repeat(70_000)}[\\u2026]b"}`);
});

test('a short rest of a long text is as JSON has it', () => {
  const data = { output: `${'a'.repeat(3 * 32_768)}é€` };
  expect(largeJson(data).toString()).toBe(JSON.stringify(data));
});

test('an empty object', () => {
  expect(largeJson({ skipped: undefined }).toString()).toBe('{}');
});
