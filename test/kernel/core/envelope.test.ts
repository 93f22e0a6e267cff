import fc from 'fast-check';
import { expect, test } from 'vitest';
import { clampEnvelope, clampText } from '../../../src/kernel/core/envelope.js';
import { modelOutput } from '../../../src/kernel/core/model-output.js';
import { headBytes, tailBytes, utf8Bytes } from '../../../src/kernel/core/text.js';
import { propertyRuns } from '../../property-runs.js';

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
      fc.array(fc.constantFrom('a', 'é', '€', '\u{10000}', '\u{10ffff}', '\ud83d', '\ude00'), {
        minLength: 1,
        maxLength: 7,
      }),
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
    { numRuns: propertyRuns(40) },
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

test('an output that its tool has cut already counts against the original', () => {
  const envelope = clampEnvelope({ output: 'x'.repeat(100), truncated: true, total_bytes: 5000 }, 60);
  expect(envelope).toMatchObject({ truncated: true, total_bytes: 5000 });
  expect('output' in envelope && envelope.output).toMatch(/\[… 49\d\d bytes omitted …\]/);
});

test('a model gets an output as its tool cut it, or cut once more against the original', () => {
  const output = `${'日本'.repeat(2000)}\n[… 5 bytes omitted …]\n${'🙂x'.repeat(2000)}`;
  const result = {
    tool_call_id: 'c',
    name: 'bash',
    output: JSON.stringify({ output, truncated: true, total_bytes: 9_000_000 }),
    success: true,
    duration_ms: 1,
  };
  const sent = (maxBytes: number): unknown =>
    JSON.parse(modelOutput({ result, seq: 7, args: '{}', reader: 'read' }, maxBytes));
  expect(sent(100_000)).toEqual(JSON.parse(result.output));
  expect(sent(80)).toEqual({
    output: '日本日本日\n[… 8999970 bytes omitted; read path="event:7"]\n🙂x🙂x🙂x',
    truncated: true,
    total_bytes: 9_000_000,
  });
});

/** The results of a reader of whole lines, of one whose long lines count as several, of a search, and of a command that
 * failed. */
const shapes = [
  ['read', (output: string) => ({ output })],
  ['read', (output: string) => ({ output, total_lines: 900, next_offset: 101 })],
  ['read', (output: string) => ({ output, piece_bytes: 5 })],
  ['read', (output: string) => ({ output, piece_bytes: 150 })],
  ['grep', (output: string) => ({ output, truncated: true, total_bytes: 90_000 })],
  ['bash', (output: string) => ({ output, exit_code: 0 })],
  ['bash', (output: string) => ({ error: 'It failed.', code: 'execution_failed', details: { output } })],
] as const;

const texts = [
  Array.from({ length: 100 }, (_, at) => `line ${at + 1}`).join('\n'),
  `${'short\n'.repeat(60)}${'x'.repeat(400)}\n`,
  `${'x'.repeat(400)}\nshort\nshort`,
  '日本🙂\n'.repeat(40),
  '🙂'.repeat(100),
  '\n'.repeat(300),
];

test.each(shapes)('a result of %s fits whatever size a model may be sent, shape %#', (name, shape) => {
  for (const text of texts)
    for (let maxBytes = 1; maxBytes <= 200; maxBytes++) {
      const result = { tool_call_id: 'c', name, output: JSON.stringify(shape(text)), success: true, duration_ms: 1 };
      const sent: unknown = JSON.parse(modelOutput({ result, seq: 7, args: '{}', reader: 'read' }, maxBytes));
      const { output, details } = sent as { readonly output?: string; readonly details?: { readonly output: string } };
      const cut = output ?? details?.output ?? text;
      const [first = ''] = cut;
      // A page of pieces holds one character at least, so that the next page gets on.
      const isLeast = cut === first && text.startsWith(first);
      expect(isLeast || utf8Bytes(cut) <= maxBytes, `${maxBytes} bytes of ${JSON.stringify(text.slice(0, 20))}`).toBe(
        true,
      );
      expect(cut.isWellFormed()).toBe(true);
    }
});
