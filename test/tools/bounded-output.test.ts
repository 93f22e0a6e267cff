import fc from 'fast-check';
import { expect, test } from 'vitest';
import { clampText } from '../../src/core/clamp.js';
import { compareBytes } from '../../src/tools/byte-order.js';
import { createListing } from '../../src/tools/listing.js';
import { createOutputCollector } from '../../src/tools/output-collector.js';

const words = fc.array(fc.constantFrom('a', 'é', '€', '\u{1F600}', '\n', 'xyz'), { maxLength: 300 }).map((parts) => parts.join(''));

test('a collected stream is what clamping the whole text gives, wherever its bytes are cut', () => {
  fc.assert(fc.property(words, fc.integer({ min: 60, max: 400 }), fc.array(fc.nat(40), { maxLength: 60 }), (text, maxBytes, cuts) => {
    const bytes = Buffer.from(text);
    const collector = createOutputCollector(maxBytes);
    let at = 0;
    for (const size of cuts) { collector.add(bytes.subarray(at, at + size)); at += size; }
    collector.add(bytes.subarray(at));
    const whole = clampText(text, maxBytes);
    expect(collector.collected()).toEqual({ text: whole.text, totalBytes: bytes.length, truncated: whole.omittedBytes > 0 });
  }));
});

test('a listing of many lines in any order is what sorting and clamping all of them gives', () => {
  fc.assert(fc.property(fc.uniqueArray(words.filter((word) => word !== ''), { minLength: 1, maxLength: 20 }), fc.integer({ min: 60, max: 400 }), (names, maxBytes) => {
    const paths = Array.from({ length: 4000 }, (_, i) => `${names[i % names.length] ?? ''}/${(i * 7919) % 4001}`.replaceAll('\n', '~'));
    const listing = createListing(maxBytes, false);
    for (const path of paths) listing.add({ path, line: 0, text: path, startsGroup: false }, true);
    const whole = [...paths].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))).join('\n');
    expect(listing.envelope()).toEqual({ output: clampText(whole, maxBytes).text, count: 4000, truncated: true, total_bytes: Buffer.byteLength(whole) });
  }), { numRuns: 10 });
});

test('byte order is that of UTF-8', () => {
  fc.assert(fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (a, b) => {
    expect(Math.sign(compareBytes(a, b))).toBe(Buffer.compare(Buffer.from(a), Buffer.from(b)));
  }));
});
