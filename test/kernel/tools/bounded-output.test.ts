import fc from 'fast-check';
import { expect, test } from 'vitest';
import { clampText, plainMarker } from '../../../src/kernel/core/envelope.js';
import { createOutputCollector } from '../../../src/kernel/tools/process/output-collector.js';
import { compareBytes, createListing } from '../../../src/kernel/tools/search/file-walk.js';
import { propertyRuns } from '../../property-runs.js';

const words = fc
  .array(fc.constantFrom('a', 'é', '€', '\u{1F600}', '\n', 'xyz'), { maxLength: 300 })
  .map((parts) => parts.join(''));

test('a collected stream is what clamping the whole text gives, wherever its bytes are cut', () => {
  fc.assert(
    fc.property(
      words,
      fc.integer({ min: 60, max: 400 }),
      fc.array(fc.nat(40), { maxLength: 60 }),
      (text, maxBytes, cuts) => {
        const bytes = Buffer.from(text);
        const collector = createOutputCollector(maxBytes);
        let at = 0;
        for (const size of cuts) {
          collector.add(bytes.subarray(at, at + size));
          at += size;
        }
        collector.add(bytes.subarray(at));
        const whole = clampText(text, maxBytes);
        const { parts, ...sizes } = collector.collected();
        expect({ text: parts.join(''), ...sizes }).toEqual({
          text: whole.text,
          totalBytes: bytes.length,
          truncated: whole.omittedBytes > 0,
        });
      },
    ),
  );
});

test('so is one with NULs, which are shown as two characters each', () => {
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom('a', 'é\0', '\u{1F600}', 'xyz\n', '\0b'), { maxLength: 120 }),
      fc.integer({ min: 60, max: 300 }),
      (parts, maxBytes) => {
        const collector = createOutputCollector(maxBytes);
        for (const part of parts) collector.add(Buffer.from(part));
        const { totalBytes } = collector;
        const whole = clampText(
          parts.join('').replaceAll('\0', String.raw`\0`),
          maxBytes,
          plainMarker,
          totalBytes > maxBytes ? totalBytes : undefined,
        );
        const { parts: shown, ...sizes } = collector.collected();
        expect({ text: shown.join(''), ...sizes }).toEqual({
          text: whole.text,
          totalBytes,
          truncated: whole.omittedBytes > 0,
        });
      },
    ),
  );
});

test('bytes that are no text at a cut do not take the rest with them', () => {
  const collector = createOutputCollector(100);
  for (let i = 0; i < 300; i++) collector.add(Buffer.from([0x61, i % 20 === 0 ? 0xff : 0x62]));
  const { parts, totalBytes, truncated } = collector.collected();
  const text = parts.join('');
  expect([totalBytes, truncated, Buffer.byteLength(text) <= 100]).toEqual([600, true, true]);
  expect(text).toMatch(/^a\uFFFD(ab)+a?\n\[… \d+ bytes omitted …\]\n[ab\uFFFD]+b$/);
});

test('what came last is at hand at any time, at least half of the budget of it', () => {
  fc.assert(
    fc.property(
      fc.array(fc.uint8Array({ maxLength: 70 }), { maxLength: 40 }),
      fc.integer({ min: 20, max: 120 }),
      fc.nat(150),
      (chunks, maxBytes, wanted) => {
        const collector = createOutputCollector(maxBytes);
        let all = Buffer.alloc(0);
        for (const chunk of chunks) {
          collector.add(chunk);
          all = Buffer.concat([all, chunk]);
          const tail = collector.tail(wanted);
          expect(tail.equals(all.subarray(all.length - tail.length))).toBe(true);
          expect(tail.length).toBeGreaterThanOrEqual(Math.min(wanted, all.length, Math.ceil(maxBytes / 2)));
          expect(tail.length).toBeLessThanOrEqual(wanted);
        }
      },
    ),
  );
});

test('a listing of many lines in any order is what sorting and clamping all of them gives', () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(
        words.filter((word) => word !== ''),
        { minLength: 1, maxLength: 20 },
      ),
      fc.integer({ min: 60, max: 400 }),
      (names, maxBytes) => {
        const paths = Array.from({ length: 4000 }, (_, i) =>
          `${names[i % names.length] ?? ''}/${(i * 7919) % 4001}`.replaceAll('\n', '~'),
        );
        const listing = createListing(maxBytes, false);
        for (const path of paths) listing.add({ path, line: 0, text: path, startsGroup: false }, true);
        const whole = [...paths].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))).join('\n');
        expect(listing.envelope()).toEqual({
          output: clampText(whole, maxBytes).text,
          count: 4000,
          truncated: true,
          total_bytes: Buffer.byteLength(whole),
        });
      },
    ),
    { numRuns: propertyRuns(10) },
  );
});

test('byte order is that of UTF-8', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (a, b) => {
      expect(Math.sign(compareBytes(a, b))).toBe(Buffer.compare(Buffer.from(a), Buffer.from(b)));
    }),
  );
});
