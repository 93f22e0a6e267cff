import { expect, test } from 'vitest';
import { withoutSgr } from '../../../src/ui/terminal/rows.js';
import { ScrolledBody } from '../../../src/ui/components/approval.js';
import { type DiffLine, paintEdit } from '../../../src/ui/diff-lines.js';
import { promptParts } from '../../../src/ui/question-lines.js';
import { createTheme } from '../../../src/kernel/console/theme.js';
import type { Question } from '../../../src/kernel/core/policy.js';

const theme = createTheme({ unicode: true, colors: 256, theme: 'dark' });

function edit(old_string: string, new_string: string): readonly (readonly DiffLine[])[] {
  const call = { tool: { name: 'file_edit' }, args: { path: 'a', old_string, new_string } };
  return promptParts({ call, lines: [7], verdict: { risk: 'mutating', reasons: [] } } as unknown as Question).edit;
}

const cases: readonly (readonly [name: string, before: string, after: string])[] = [
  ['short lines', 'one\ntwo\nthree', 'one\n2\nthree'],
  ['long lines beside short ones', `a\n${'b'.repeat(200)}\nc`, `a\n${'d'.repeat(170)}\nc\n`],
  ['lines of words', 'keep this word\nand this'.repeat(20), 'keep that word\nand that'.repeat(20)],
];

test.each(cases)('%s: any part of the rows is what all rows are', (_name, before, after) => {
  const rows = paintEdit(edit(before, after), { theme }, null).rows(40);
  const all = rows.slice(0, rows.length);
  expect(all).toHaveLength(rows.length);
  expect(all.map((row) => withoutSgr(row)).filter((row) => !/^(?:@@ line 7$|[-+ ])/.test(row))).toEqual([]);
  for (let from = 0; from < all.length; from++)
    for (const height of [1, 3, all.length])
      expect(rows.slice(from, from + height)).toEqual(all.slice(from, from + height));
});

test('of an edit of 20,000 lines, and of one line of 400 kB, only what is shown is painted', () => {
  const many = Array.from({ length: 20_000 }, (_item, index) => `line ${index}`).join('\n');
  for (const lines of [edit(many, many.replaceAll('line', 'row')), edit('ab'.repeat(200_000), 'cd'.repeat(200_000))]) {
    let painted = 0;
    const counting = {
      ...theme,
      paint: (...args: Parameters<typeof theme.paint>) => (painted++, theme.paint(...args)),
    };
    const body = new ScrolledBody(['path: a'], { edit: paintEdit(lines, { theme: counting }, null).rows });
    expect(body.wrap(80, { prose: false, behind: ['reason'] })).toBeGreaterThan(5_000);
    expect(body.part(20).rows).toHaveLength(20);
    expect(painted).toBeLessThan(20_000);
    for (; body.goesOn; body.page(1)) body.part(10_000);
    expect(withoutSgr(body.part(10_000).rows.at(-1) ?? '')).toBe('reason');
    expect(body.isUnseen).toBe(false);
  }
});
