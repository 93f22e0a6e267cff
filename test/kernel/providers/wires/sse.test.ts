import fc from 'fast-check';
import { expect, test } from 'vitest';
import { SseReader } from '../../../../src/kernel/providers/http/answer-reader.js';
import type { ServerEvent } from '../../../../src/kernel/providers/wires/wire.js';
import { propertyRuns } from '../../../property-runs.js';

function read(...pieces: readonly (string | Uint8Array)[]): {
  readonly events: ServerEvent[];
  readonly comments: number;
  readonly overflowed: boolean;
} {
  const reader = new SseReader();
  const events = pieces.flatMap((piece) => reader.push(typeof piece === 'string' ? Buffer.from(piece) : piece));
  events.push(...reader.end());
  return { events, comments: reader.comments, overflowed: reader.overflowed };
}

const message = (data: string, event = ''): ServerEvent => ({ event, data });

test.each<readonly [name: string, stream: string, events: readonly ServerEvent[]]>([
  ['LF', 'data: a\n\ndata: b\n\n', [message('a'), message('b')]],
  ['CRLF', 'event: x\r\ndata: a\r\n\r\ndata: b\r\n\r\n', [message('a', 'x'), message('b')]],
  ['CR', 'data: a\r\rdata: b\r\r', [message('a'), message('b')]],
  ['a byte order mark', '\ufeffdata: a\n\n', [message('a')]],
  ['no blank after the colon', 'data:a\nevent:x\n\n', [message('a', 'x')]],
  ['only the first blank taken away', 'data:  a\n\n', [message(' a')]],
  ['several data lines', 'data: a\ndata:\ndata: b\ndata\n\n', [message('a\n\nb\n')]],
  ['an event without data', 'event: x\n\ndata: a\n\n', [message('a')]],
  ['ids, retries and unknown fields', 'id: 1\nretry: 5\nfoo: bar\nfoo\ndata: a\n\n', [message('a')]],
  ['no final blank line', 'data: a\n', [message('a')]],
  ['no final line end', 'data: a\n\ndata: b', [message('a'), message('b')]],
  ['an empty stream', '', []],
])('%s is read', (_name, stream, events) => {
  expect(read(stream).events).toEqual(events);
});

test('comments are counted as life and carry nothing', () => {
  expect(read(': ping\n\n', ':\n', 'data: a\n: between\ndata: b\n\n')).toEqual({
    events: [message('a\nb')],
    comments: 3,
    overflowed: false,
  });
});

test('an event is given as soon as its blank line is there', () => {
  const reader = new SseReader();
  expect(reader.push(Buffer.from('data: a\n'))).toEqual([]);
  expect(reader.push(Buffer.from('\n'))).toEqual([message('a')]);
  expect(reader.push(Buffer.from('data: b\r\n\r'))).toEqual([message('b')]);
  expect(reader.push(Buffer.from('\ndata: c\n\n'))).toEqual([message('c')]);
});

test('invalid UTF-8 becomes U+FFFD', () => {
  expect(read(Buffer.from([0x64, 0x61, 0x74, 0x61, 0x3a, 0xc3, 0x28, 0xff, 0x0a, 0x0a])).events).toEqual([
    message('\ufffd(\ufffd'),
  ]);
});

test('a buffer may be used again by its owner after a push', () => {
  const reader = new SseReader();
  const shared = Buffer.from('data: ab');
  reader.push(shared);
  shared.fill(0x7a);
  expect(reader.push(Buffer.from('c\n\n'))).toEqual([message('abc')]);
});

test('a line over 16 MiB ends the reading, in one push or in many', () => {
  const piece = Buffer.alloc(1024 * 1024, 0x78);
  const many = read('data: ok\n\ndata: ', ...Array.from({ length: 17 }, () => piece), '\n\ndata: late\n\n');
  expect({ ...many, events: many.events.length }).toEqual({ events: 1, comments: 0, overflowed: true });
  const once = read(`data: ${'x'.repeat(17 * 1024 * 1024)}\n\ndata: late\n\n`);
  expect({ ...once, events: once.events.length }).toEqual({ events: 0, comments: 0, overflowed: true });
  expect(read(`${'data: \n'.repeat(100)}\n`).overflowed).toBe(false);
});

test('a line just under the limit is read', () => {
  const long = 'y'.repeat(15 * 1024 * 1024);
  expect(read('data: ', long.slice(0, 5_000_000), long.slice(5_000_000), '\n\n').events[0]?.data === long).toBe(true);
});

const line = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 12 }).map((text) => `data: ${text.replace(/[\r\n]/g, '')}`),
  fc.constantFrom('', '', 'event: x', ': c', 'data', 'data:', 'id: 4', 'data: é😀'),
);

test('wherever the bytes are split, the events are the same', () => {
  fc.assert(
    fc.property(
      fc.array(line, { maxLength: 12 }),
      fc.constantFrom('\n', '\r\n', '\r'),
      fc.array(fc.nat(200), { maxLength: 6 }),
      (lines, lineEnd, cuts) => {
        const bytes = Buffer.from(lines.map((text) => text + lineEnd).join(''));
        const places = [0, ...cuts.map((cut) => Math.min(cut, bytes.length)).sort((a, b) => a - b), bytes.length];
        const pieces = places.slice(1).map((place, index) => bytes.subarray(places[index], place));
        expect(read(...pieces)).toEqual(read(bytes));
        expect(read(...Array.from(bytes, (byte) => Uint8Array.of(byte)))).toEqual(read(bytes));
      },
    ),
    { numRuns: propertyRuns(500) },
  );
});

test('a byte order mark that begins a later chunk is part of its line', () => {
  const reader = new SseReader();
  expect(reader.push(Buffer.from('data: a\n\n'))).toEqual([message('a')]);
  expect(reader.push(Buffer.from('\ufeffdata: b\n\ndata: c\n\n'))).toEqual([message('c')]);
});
