import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { formsFolder, printCounts } from '../../brought-forms.js';
import { stylesIn } from '../../../src/features/output-styles/read-styles.js';

/** Output styles in the forms of public repositories; the texts are ours. */
const folder = formsFolder('output-styles');

test('output styles of Claude Code are read as expected', async () => {
  const { styles, shadowed, leftOut, problems } = stylesIn([{ folder, origin: 'claude-code', root: null }]);
  const here = (path: string | null): string => (path ?? '').slice(folder.length + 1);
  const named = (text: string): string => text.replaceAll(`${folder}/`, '');
  const read = styles.filter(({ path }) => path !== null);
  const readings = {
    styles: Object.fromEntries(
      read.map(({ path, name, description, keepsCoding, body }) => [
        here(path),
        { name, description, keeps_coding_instructions: keepsCoding, first_line: body.split('\n')[0] },
      ]),
    ),
    left_out: Object.fromEntries(leftOut.map(({ path, reason }) => [here(path), reason])),
    problems: problems.map(named),
  };
  const expected = join(dirname(folder), 'output-styles-expected.json');
  await expect(`${JSON.stringify(readings, null, 2)}\n`).toMatchFileSnapshot(expected);
  const part = read.filter(({ path }) => problems.some((problem) => problem.startsWith(path ?? ' '))).length;
  const uses = { whole: read.length - part, part, not: leftOut.length };
  printCounts(
    'output-styles',
    (['whole', 'part', 'not'] as const).flatMap((use) => Array.from({ length: uses[use] }, () => use)),
  );
  expect([read.length >= 5, shadowed]).toEqual([true, []]);
});
