import { expect, test } from 'vitest';
import { assistant } from './fake-session.js';
import { facts, openRepl } from './repl-harness.js';

const diff = '--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n-old\n+new\n end\n';

test.each([
  ['dark', 256],
  ['light', 16_777_216],
] as const)(
  'grounds of messages, changes and code reach the right edge, also after a new size, and add no blanks: %s, %i colours',
  async (theme, colors) => {
    const harness = openRepl({ columns: 40, rows: 24, facts: { ...facts, colors, theme } });
    const filled = (): readonly string[] =>
      harness.terminal.screen().filter((_row, index) => harness.terminal.isFilled(index));
    harness.type('one\\\r');
    harness.type('two\r');
    harness.session.call('c1', 'file_edit(path="a.txt")');
    harness.session.start('c1');
    harness.session.result('c1', 'done', { output: 'x' }, { diff });
    harness.session.stream('So:\n\n```\ncode\n```\n\nDone.');
    harness.session.append(assistant('So:\n\n```\ncode\n```\n\nDone.'));
    await harness.session.end();
    await harness.settle();
    const rows = ['❯ one', 'two', '-old', '+new', 'code'];
    expect(filled()).toEqual(rows);
    await harness.resize(60, 24);
    harness.tick(400);
    await harness.settle();
    const text = harness.terminal.lines().join('\n');
    for (const row of rows) expect(text.split(`\n${row}\n`).length, row).toBe(row === '❯ one' ? 1 : 2);
  },
);

test('a ground in the last column is not erased', async () => {
  const harness = openRepl({ columns: 20, rows: 12, facts: { ...facts, colors: 256 } });
  harness.type(`${'x'.repeat(18)}\r`);
  await harness.session.end();
  await harness.settle();
  expect(harness.terminal.screen()[0]).toBe(`❯ ${'x'.repeat(18)}`);
  expect(harness.terminal.isFilled(0)).toBe(false);
});

test('a terminal that reports a light background gets the light theme before the first message', async () => {
  const asked: string[] = [];
  const harness = openRepl({
    answers: false,
    facts: { ...facts, colors: 256 },
    onGround: (ground) => {
      asked.push(ground);
      return true;
    },
  });
  await harness.settle();
  expect(harness.terminal.sent()).toContain('\x1b]11;?\x1b\\');
  harness.type('\x1b]11;rgb:ffff/ffff/ffff\x1b\\');
  harness.type('go\r');
  harness.tick(40);
  await harness.settle();
  expect([asked, harness.session.submitted.map(String)]).toEqual([['light'], ['go']]);
  expect(harness.terminal.sent()).toContain('48;5;254');
  expect(harness.terminal.sent()).not.toContain('48;5;237');
});
