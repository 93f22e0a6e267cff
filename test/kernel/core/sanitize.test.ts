import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createSanitizer, decisionText, sanitize } from '../../../src/kernel/core/sanitize.js';
import { propertyRuns } from '../../property-runs.js';

interface Case {
  readonly id: string;
  readonly context: string;
  readonly payload?: string | readonly string[];
  readonly must_not_reach: readonly string[];
  readonly must_show?: readonly string[];
  readonly must_survive?: readonly string[];
}

const file = new URL('../../../fixtures/security/ansi-injection.json', import.meta.url);
const cases: readonly Case[] = (JSON.parse(readFileSync(file, 'utf8')) as { readonly cases: readonly Case[] }).cases;
const onScreen = cases.filter(
  (item) => item.context !== 'file_write_content' && item.context !== 'pasted_input' && item.payload !== undefined,
);

/** What the program shows of `item`: one sanitiser for output and model text, everything escaped where a person
 * decides. */
function display(item: Case): string {
  const chunks = typeof item.payload === 'string' ? [item.payload] : (item.payload ?? []);
  if (item.context.startsWith('approval'))
    return decisionText(chunks.join(''), { lines: item.context === 'approval_command' });
  if (item.context === 'filename') return decisionText(chunks.join(''), { lines: false });
  const sanitizer = createSanitizer({ colors: item.context !== 'model_text' });
  return chunks.map((chunk) => sanitizer.write(chunk)).join('');
}

test(`no payload of ${onScreen.length} reaches the terminal`, () => {
  const failures = onScreen.flatMap((item) => {
    const text = display(item);
    return [
      ...item.must_not_reach
        .filter((pattern) => new RegExp(pattern).test(text))
        .map((pattern) => `${item.id} lets ${pattern} through: ${JSON.stringify(text)}`),
      ...[...(item.must_show ?? []), ...(item.must_survive ?? [])]
        .filter((part) => !text.includes(part))
        .map((part) => `${item.id} lost ${JSON.stringify(part)}: ${JSON.stringify(text)}`),
    ];
  });
  expect(failures).toEqual([]);
});

test('colours pass where they may, nothing else of an escape does', () => {
  expect(
    sanitize('\x1b[1;31mred\x1b[0m \x1b[38;5;4mb\x1b[38;2;1;2;3mc\x1b[8mhidden\x1b[4;8;32mu', { colors: true }),
  ).toBe('\x1b[1;31mred\x1b[0m \x1b[38;5;4mb\x1b[38;2;1;2;3mchidden\x1b[4;32mu');
  expect(sanitize('\x1b[31mred')).toBe('red');
});

test('a carriage return cannot overwrite a line, and CRLF is one line end', () => {
  expect(sanitize('10%\r20%\r\nok\n')).toBe('10%\n20%\nok\n');
});

test('emoji sequences, combining marks and right-to-left letters stay', () => {
  const text = '👩‍👩‍👧 e\u0301 ❤️ שלום مرحبا 日本語';
  expect(sanitize(text, { colors: true })).toBe(text);
});

const nasty = fc.array(
  fc.oneof(
    fc.constantFrom(
      '\x1b',
      '\x1b[',
      '\x1b]0;',
      '\x07',
      '\x1b\\',
      '\x1bP',
      '\x9b',
      '\x9d',
      '\x9c',
      'm',
      '31',
      ';',
      '2J',
      'H',
      '\r',
      '\n',
      '\x18',
      '\u202e',
      '\u200b',
      '\u{e0041}',
      '\x00',
      '\x0e',
      'text',
      '日',
    ),
    fc.string({ maxLength: 3, unit: 'binary' }),
  ),
  { maxLength: 30 },
);

test('from anything, split anywhere, only text, tabs, line ends and colours come out', () => {
  fc.assert(
    fc.property(nasty, fc.boolean(), (chunks, colors) => {
      const sanitizer = createSanitizer({ colors });
      const out = chunks.map((chunk) => sanitizer.write(chunk)).join('');
      const rest = out.replace(/\x1b\[[0-9;]*m/g, (match) => (colors ? '' : match));
      expect(rest).not.toMatch(/[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028\u2029\u200b]|\x1b/);
      const again = createSanitizer({ colors });
      expect(
        Array.from(chunks.join(''))
          .map((char) => again.write(char))
          .join(''),
      ).toBe(createSanitizer({ colors }).write(chunks.join('')));
    }),
    { numRuns: propertyRuns(500) },
  );
});

test('what a person decides by is pure: no control, no attribute, nothing hidden', () => {
  fc.assert(
    fc.property(nasty, (chunks) => {
      const out = decisionText(chunks.join(''), { lines: true });
      expect(out).not.toMatch(
        /[\x00-\x09\x0b-\x1f\x7f-\x9f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]|[\u{e0000}-\u{e007f}]/u,
      );
    }),
    { numRuns: propertyRuns(300) },
  );
});

test('fillers, supplementary selectors and object replacements are seen, and 32 marks are enough for a character', () => {
  expect(sanitize('a\u115f\u1160\u3164\uffa0\ufffc\u{e0041}b')).toBe('a\\u115f\\u1160\\u3164\\uffa0\\ufffc\\u{e0041}b');
  expect(sanitize('葛\u{e0100} 😀\u{e0154}\u{e0155}\u{e0156}')).toBe('葛 😀\\u{e0155}\\u{e0156}');
  expect(sanitize(`a${'\u0301'.repeat(300)}b\u0301`)).toBe(`a${'\u0301'.repeat(32)}b\u0301`);
  expect(sanitize(`a${`${'\u0301'.repeat(20)}\u200b\x1b[1m`.repeat(9)}`, { colors: false })).toBe(
    `a${'\u0301'.repeat(32)}`,
  );
  const sanitizer = createSanitizer({ colors: false });
  expect(
    `a${'\u0301'.repeat(50)}b`
      .match(/[^]{1,10}/g)
      ?.map((chunk) => sanitizer.write(chunk))
      .join(''),
  ).toBe(`a${'\u0301'.repeat(32)}b`);
});

test('in a question nothing that is blank passes for text', () => {
  expect(decisionText('rm\u2800x \ufffc \ue000 \u3164', { lines: false })).toBe('rm\\u2800x \\ufffc \\ue000 \\u3164');
});
