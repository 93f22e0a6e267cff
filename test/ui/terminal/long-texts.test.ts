import { expect, test } from 'vitest';
import { spelledLine, withoutEnd } from '../../../src/kernel/core/text.js';
import { clusters, expandTabs, fitWidth, textWidth, wrapLine, wrapWords } from '../../../src/ui/terminal/rows.js';
import { decisionText, sanitize } from '../../../src/kernel/core/sanitize.js';
import { changedParts } from '../../../src/ui/diff-lines.js';
import { renderMarkdown } from '../../../src/ui/markdown/incremental.js';
import { createTheme } from '../../../src/kernel/console/theme.js';

/** Texts that took from seconds to minutes. Each test fails by the time limit of a test, far above
 * what it takes. */
const texts: readonly (readonly [name: string, text: string])[] = [
  ['marks on one letter', `a${'\u0301'.repeat(40_000)}`],
  ['three marks a letter', 'a\u0301\u0302\u0303'.repeat(80_000)],
  ['joined emoji', '\u{1f468}\u200d'.repeat(20_000)],
  ['regional indicators', '\u{1f1e6}'.repeat(50_000)],
  ['variation selectors', `a${'\ufe0f'.repeat(50_000)}`],
  ['Arabic', '\u0628'.repeat(100_000)],
  ['Devanagari', '\u0915\u093e'.repeat(50_000)],
  ['Hangul of three parts', '\u1100\u1161\u11a8'.repeat(50_000)],
  ['one word of 1 MB', 'a'.repeat(1_000_000)],
  ['emoji', '\u{1f600}'.repeat(50_000)],
];

test.each(texts)('%s: its width, rows and clusters', (_name, text) => {
  const all = [...clusters(text)];
  expect(all.map((cluster) => cluster.text).join('') === text).toBe(true);
  expect(all.reduce((sum, cluster) => sum + cluster.width, 0)).toBe(textWidth(text));
  const rows = wrapLine(text, 80);
  expect(rows.map((row) => row.text).join('') === text).toBe(true);
  expect(rows.every((row) => row.width <= 80)).toBe(true);
  expect(wrapWords(text, 80).join('').length).toBe(text.length);
  expect(textWidth(fitWidth(text, 40))).toBeLessThanOrEqual(40);
  expect(sanitize(text).length).toBeLessThanOrEqual(text.length);
});

test('a cluster at the end of a piece is not cut', () => {
  const family = '\u{1f468}\u200d\u{1f469}\u200d\u{1f467}';
  for (let before = 500; before < 515; before++) {
    const text = '\u0628'.repeat(before) + family + '\u{1f1e9}\u{1f1ea}' + '\u0628'.repeat(600);
    const found = [...clusters(text)].map((cluster) => cluster.text);
    expect([found[before], found[before + 1], found.length]).toEqual([family, '\u{1f1e9}\u{1f1ea}', before + 602]);
  }
});

test('a text to decide by has at most 32 marks on a character; the others are spelt out', () => {
  const shown = decisionText(`a${'\u0301'.repeat(40_000)}b`, { lines: true });
  expect(shown).toBe(`a${'\u0301'.repeat(32)}${'\\u0301'.repeat(40_000 - 32)}b`);
});

test('many tabs and many empty lines', () => {
  expect(expandTabs('\t'.repeat(100_000))).toBe(' '.repeat(800_000));
  expect(decisionText('\n'.repeat(200_000), { lines: true })).toBe('\n⟨199999 empty lines⟩\n');
});

test('200,000 lines that change one by one', () => {
  const place = Array.from({ length: 200_000 }, (_item, index) => ({
    sign: index % 2 === 0 ? ('-' as const) : ('+' as const),
    text: index % 2 === 0 ? 'a b c' : 'a b d',
  }));
  expect(changedParts(place).at(-1)).toEqual({ from: 4, to: 5 });
});

const style = { theme: createTheme({ unicode: true, colors: 0, theme: 'none' }), columns: 80, highlight: () => null };

test.each([
  ['quotations in quotations', '>'.repeat(100_000)],
  ['lists in lists', '- '.repeat(50_000)],
  ['open emphasis', '**a'.repeat(100_000)],
  ['a word of 1 MB', 'a'.repeat(1_000_000)],
  ['a quoted word of 1 MB', `> ${'a'.repeat(1_000_000)}`],
  ['a table with a cell of 500 KB', `|a|b|\n|-|-|\n|${'x'.repeat(500_000)}|y|`],
  ['a heading of 500 KB', `# ${'a '.repeat(250_000)}`],
  ['a list item of 500 KB', `- ${'a '.repeat(250_000)}`],
  ['a code line of 1 MB', `\`\`\`\n${'x'.repeat(1_000_000)}\n\`\`\``],
  ['runs of backquotes', Array.from({ length: 700 }, (_item, index) => '`'.repeat(index + 1)).join('a')],
  ['many links', '[a]('.repeat(100_000)],
])('Markdown with %s is shown', (_name, text) => {
  expect(renderMarkdown(text, { ...style, wrap: 'words' }).length).toBeGreaterThan(0);
});

test('a long paragraph is cut between its lines', () => {
  const lines = Array.from(
    { length: 400 },
    (_item, index) => `Line ${index} of a long streamed paragraph without an end`,
  );
  const shown = renderMarkdown(lines.join('\n'), { ...style, columns: 100, wrap: 'words' });
  expect(shown).toEqual(lines);
});

const units = [
  'a',
  '=',
  '-',
  'a-',
  'a.',
  'Zm9v',
  '"',
  '\\',
  '\n',
  '\r\n',
  ' ',
  '\t',
  '://',
  'a://',
  '@',
  '`',
  '~',
  '{"',
];

test.each(units)('250 kB of %j, and a letter behind it, is made safe, decided by and trimmed in time', (unit) => {
  const text = `${unit.repeat(Math.ceil(250_000 / unit.length))}x`;
  expect(sanitize(text).length).toBeLessThanOrEqual(text.length);
  expect(decisionText(text, { lines: true }).endsWith('x')).toBe(true);
  expect(withoutEnd(text, '\r\n')).toBe(text);
  expect(spelledLine(text).endsWith('x')).toBe(true);
  expect(renderMarkdown(text, { ...style, wrap: 'words' }).length).toBeGreaterThan(0);
});
