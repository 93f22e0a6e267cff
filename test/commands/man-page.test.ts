import { execFileSync, spawnSync } from 'node:child_process';
import { Command } from 'commander';
import { expect, test } from 'vitest';
import { addOptions, buildProgram } from '../../src/cli/run.js';
import { rootOptions } from '../../src/kernel/console/options.js';
import { manPage } from '../../src/commands/man-page.js';
import { table } from '../../src/commands/table.js';

const finish = (): void => undefined;
const whole = async (): Promise<string> =>
  manPage(await buildProgram({ words: ['help'], rest: [], early: null, finish }));
const written = (text: string): string => text.replaceAll('-', '\\-');

test('the manual page has every option and every command of the tables, the exit codes and the examples', async () => {
  const page = await whole();
  const terms = page.split('\n').filter((line) => line.startsWith('.B '));
  for (const { flags } of Object.values(rootOptions)) expect(terms).toContain(`.B ${ascii(flags)}`);
  for (const { line } of table.flatMap(({ entries }) => entries))
    if (line) expect(terms.map((term) => term.replace(' [options]', ''))).toContain(`.B agent ${ascii(line[0])}`);
  expect(page).toContain('.TP\n.B 5\nStopped at the spend limit.\n');
  expect(page).toContain(written('\n  agent -p "explain').replaceAll('"', '\\(dq'));
  expect(page).toMatch(/^[\n\x20-\x7e]*$/);
});

function ascii(text: string): string {
  return written(text).replaceAll('…', '\\[u2026]');
}

test('a new option is on the page, and no text is taken for a request of roff', () => {
  const about = ".so /etc/passwd\n'nx \\fBbold";
  const planted = { new: { group: 'New:', flags: '--brand-new <a|b>', about } };
  const page = manPage(addOptions(new Command('agent'), planted).description('-'));
  expect(page).toContain(`.SS New\n.TP\n.B ${written('--brand-new <a|b>')}\n\\&.so /etc/passwd\n\\&'nx \\efBbold\n`);
});

const hasGroff = spawnSync('groff', ['--version']).status === 0;
if (!hasGroff) console.info('groff is not installed: 1 case skipped');
test.runIf(hasGroff)('groff reads the page without a warning', async () => {
  const options = { input: await whole(), encoding: 'utf8' } as const;
  const { stderr } = spawnSync('groff', ['-man', '-Tutf8', '-ww'], options);
  expect(stderr).toBe('');
  expect(execFileSync('groff', ['-man', '-Tascii', '-P-c'], options)).toContain('Stopped at the spend limit.');
});
