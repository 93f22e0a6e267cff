import fc from 'fast-check';
import { expect, test } from 'vitest';
import { docParts } from '../../../src/features/docs-search/document-parts.js';

const places = (text: string, ending = 'md') =>
  docParts(text, ending).map(({ heading, fromLine, toLine }) => `${fromLine}-${toLine} ${heading}`);

test('each kind of document is cut at its own headings, which carry the ones above them', () => {
  const cases: readonly (readonly [string, string, readonly string[]])[] = [
    [
      'md',
      'intro\n# A\na\n## B ##\nb\n### C\nc\n## D\nd\n# E\n',
      ['1-1 ', '2-3 A', '4-5 A > B', '6-7 A > B > C', '8-9 A > D', '10-11 E'],
    ],
    ['md', 'Title\n=====\ntext\nPart\n----\ntext', ['1-3 Title', '4-6 Title > Part']],
    ['md', '```sh\n# no heading\n```\n# A\n~~~\n# nor this\n```\n~~~\n#no\n', ['1-3 ', '4-10 A']],
    ['md', '- item\n---\ntext\n\n---\n', ['1-6 ']],
    [
      'rst',
      'Title\n=====\n\ntext\n\nPart\n----\ntext\n\nOther\n=====\n',
      ['1-5 Title', '6-9 Title > Part', '10-12 Other'],
    ],
    ['adoc', '= Title\ntext\n== Part\n----\n== code\n----\nend', ['1-2 Title', '3-7 Title > Part']],
    ['txt', '# not a heading\ntext', ['1-2 ']],
  ];
  for (const [ending, text, expected] of cases) expect(places(text, ending)).toEqual(expected);
});

test('what is long is cut at a blank line, and a fence stays whole', () => {
  const paragraph = `${'word '.repeat(150)}\n\n`;
  expect(places(`# A\n${paragraph.repeat(6)}`)).toEqual(['1-7 A', '8-13 A']);
  const fence = `\`\`\`\n${'code line\n\n'.repeat(300)}\`\`\`\n`;
  expect(places(`# A\n${fence}\nafter`)).toEqual(['1-604 A', '605-605 A']);
});

test('no part is longer than 8,000 characters', () => {
  const parts = docParts(`# A\n\`\`\`\n${'x'.repeat(99)}\n${'y'.repeat(20_000)}\n${'line\n'.repeat(4000)}`, 'md');
  expect(Math.max(...parts.map(({ text }) => text.length))).toBeLessThanOrEqual(8000);
  expect(parts.map(({ text }) => text).join('')).toContain('y'.repeat(8000));
});

test('every line with text is in a part, in its place', () => {
  const line = fc.oneof(
    fc.constantFrom('# A', '## B', '', '```', '----', '====', 'text'),
    fc.string({ maxLength: 40 }),
  );
  fc.assert(
    fc.property(fc.array(line, { maxLength: 60 }), fc.constantFrom('md', 'rst', 'adoc', 'txt'), (lines, ending) => {
      const text = lines.join('\n');
      const all = text.split(/\r?\n/);
      const parts = docParts(text, ending);
      const covered = new Set(
        parts.flatMap(({ fromLine, toLine }) => all.slice(fromLine - 1, toLine).map((_, at) => fromLine + at)),
      );
      expect(all.flatMap((each, at) => (each.trim() === '' || covered.has(at + 1) ? [] : [at + 1]))).toEqual([]);
      for (const part of parts) expect(part.text).toBe(all.slice(part.fromLine - 1, part.toLine).join('\n'));
    }),
  );
});
