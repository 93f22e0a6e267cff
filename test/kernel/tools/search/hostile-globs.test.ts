import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { globProblem } from '../../../../src/kernel/core/files/glob-steps.js';
import { compileGlobs } from '../../../../src/kernel/permissions/guarded-paths.js';
import { compileGlob } from '../../../../src/kernel/tools/search/compiled-glob.js';
import { folderRules } from '../../../../src/kernel/tools/search/ignore-rules.js';

let folder = '';

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'hostile-globs-')));
  mkdirSync(join(folder, '.git'));
  onTestFinished(() => {
    rmSync(folder, { recursive: true, force: true });
  });
});

/** Patterns that made a matcher overflow the stack, or look for an answer for minutes. */
const shapes: readonly (readonly [string, string])[] = [
  ['stars and a letter', `${'*'.repeat(15_000)}x`],
  ['more stars', `${'*'.repeat(60_000)}x`],
  ['question marks', '?'.repeat(60_000)],
  ['open classes', '[a-'.repeat(20_000)],
  ['stars between letters', '*a'.repeat(2000)],
  ['stars between letters, within a line', `${'*a'.repeat(1500)}b`],
  ['folders', '**/'.repeat(1300) + 'x'],
  ['groups', '{a,b}'.repeat(800)],
  ['deep groups', `${'{a,'.repeat(1300)}${'}'.repeat(100)}`],
  ['wide groups', `{${'a,'.repeat(2000)}b}${'c'.repeat(80)}`],
  ['backslashes', '\\'.repeat(4001)],
];

test.each(shapes)('an ignore file with %s is read and held against names', (_what, line) => {
  writeFileSync(join(folder, '.gitignore'), `${line}\n`.repeat(line.length > 5000 ? 3 : 60) + 'ignored.txt\n');
  const told: string[] = [];
  const rules = folderRules({ folder, shown: '', env: {}, refused: (_path, reason) => told.push(reason) });
  const names = [`${'a'.repeat(250)}c`, 'kept.txt', 'ignored.txt'];
  expect(names.map((name) => rules.skips(name, false)).slice(1)).toEqual([false, true]);
  if (line.length > 4096) expect(told.join()).toContain('lines are left out, because they are too long');
});

test.each(shapes)('a pattern with %s is compiled or refused, and matches in time', (_what, pattern) => {
  const glob = compileGlob(pattern.slice(0, 5000));
  for (const path of [`${'a'.repeat(4000)}c`, `${'a/'.repeat(2000)}c`]) {
    expect(typeof (glob?.matches(path) ?? false)).toBe('boolean');
    expect(typeof (glob?.leadsInto(path) ?? false)).toBe('boolean');
  }
});

test.each(shapes)('a guarded glob with %s is refused with a sentence, or matches in time', (_what, pattern) => {
  const problem = globProblem(pattern);
  if (pattern.length > 1000) expect(problem).toMatch(/^has \d+ characters; at most 1000$/);
  const inTime = compileGlobs([pattern.slice(0, 900)], '/home/u');
  expect(typeof inTime(`/${'a'.repeat(4000)}c`)).toBe('boolean');
});

test('forty stars between letters match what they say', () => {
  const glob = compileGlobs(['*a'.repeat(40)], '/home/u');
  expect(glob(`/x/${'ba'.repeat(40)}`)).toBe(true);
  expect(glob(`/x/${'ba'.repeat(39)}`)).toBe(false);
  expect(glob(`/x/${'a'.repeat(4000)}b`)).toBe(false);
  expect(glob(`/X/${'BA'.repeat(40)}`)).toBe(true);
});

test.each([
  ['{a,'.repeat(50_000), 'has 150000 characters; at most 1000'],
  [`${'{a,'.repeat(20)}b${'}'.repeat(20)}`, 'nests braces more than 8 deep'],
  [`{${'a,'.repeat(20)}b}`.repeat(5), 'its braces give more than 512 alternatives'],
])('%s is refused', (glob, problem) => {
  expect(globProblem(glob)).toBe(problem);
});
