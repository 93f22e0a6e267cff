import { expect, test } from 'vitest';
import { parseGlobPattern } from '../../../../src/kernel/tools/search/glob-pattern.js';

const tooMany = { problem: 'its braces give too many alternatives', expected: 'at most 1000 alternatives' };

test.each([
  ['{1..1000}', true],
  ['{1..25}{1..40}', true],
  ['{1..1001}', false],
  ['{1..40}{1..40}', false],
  ['{1..1000}/{a,b}', false],
  ['{a,b}{1..600}', false],
  ['{1..10}{1..10}{1..11}', false],
])('%s is read up to a thousand alternatives', (pattern, isRead) => {
  const glob = parseGlobPattern(pattern, '/root');
  if (isRead) expect('matches' in glob).toBe(true);
  else expect(glob).toMatchObject(tooMany);
});

test.each([
  ['{3..1}', ['3', '2', '1'], ['0', '4', '{3..1}']],
  ['{08..10}', ['08', '09', '10'], ['8', '010', '7']],
  ['{-01..01}', ['-01', '000', '001'], ['-1', '00', '01', '-001']],
  ['{1..9..4}', ['1', '5', '9'], ['2', '4', '13']],
  ['{-1..1}', ['-1', '0', '1'], ['2', '-2']],
  ['{a..c}', ['a', 'b', 'c'], ['d', '`']],
  ['a{b,{c,d}}e', ['abe', 'ace', 'ade'], ['ae', 'abce', 'ab']],
  ['{{name}}.txt', ['{{name}}.txt'], ['name2.txt']],
  ['*.{ts}', ['x.ts', 'x.{ts}'], ['x.t', 'x.tsx']],
])('%s matches what a shell makes of it', (pattern, hits, misses) => {
  const glob = parseGlobPattern(pattern, '/root');
  if (!('matches' in glob)) throw new Error(JSON.stringify(glob));
  expect([...hits, ...misses].filter((path) => glob.matches(path))).toEqual(hits);
});

test.each([
  ['', 'empty'],
  [' ', 'empty'],
  ['a\0', 'contains a NUL character'],
  ['x'.repeat(2001), '2001 characters'],
])('%j is refused with the reason', (pattern, problem) => {
  expect(parseGlobPattern(pattern, '/root')).toMatchObject({ problem });
});

test('a pattern of two thousand characters is read', () => {
  expect('matches' in parseGlobPattern('x'.repeat(2000), '/root')).toBe(true);
});
