import { expect, test } from 'vitest';
import { classifyShell } from '../../../src/kernel/permissions/shell/verdict.js';
import { context } from './judging.js';

/** Lines near the longest that is judged, each of a shape that took seconds. */
const lines: readonly (readonly [string, string])[] = [
  ['wrappers', `${'env a=b '.repeat(7000)}ls`],
  ['wrappers without options', `${'nice '.repeat(12_000)}ls`],
  ['options', `git ${'-c x=y '.repeat(9000)}status`],
  ['substitutions', '$('.repeat(30_000)],
  ['process substitutions', `cat ${'<('.repeat(20_000)}`],
  ['expansions', '${a:-'.repeat(12_000)],
  ['backquotes', '`'.repeat(60_000)],
  ['redirects', `ls ${'>a '.repeat(20_000)}`],
  ['a program of awk', `awk '${'{print "a"} /x/ {y=1} '.repeat(2500)}' f`],
  ['a script of sed', `sed '${'s/a/b/;'.repeat(8000)}' f`],
  ['eval', `${'eval '.repeat(12_000)}ls`],
];

test.each(lines)(
  '%s without end are not looked through',
  (_what, line) => {
    const { findings } = classifyShell(line, context);
    expect(findings[0]?.reason).toMatch(/^cannot be analysed: /);
    expect(findings[0]?.unclear).toBe(true);
  },
  2000,
);

test('a long text that is written to a file is no reason to ask', () => {
  const text = 'const a = f(b[0], { c: `${d}` }); // (e)\n'.repeat(1000);
  expect(classifyShell(`cat > a.js <<'EOF'\n${text}EOF`, context).findings).toEqual([]);
});
