import { expect, test } from 'vitest';
import { assistant } from './fake-session.js';
import { openRepl, shown } from './repl-harness.js';

test('the prompt stands at once, the status below it, and idle writes nothing', async () => {
  const harness = openRepl();
  await harness.settle();
  expect(shown(harness.terminal)).toEqual(['❯', 'offline · ~/thing (main) · approval dangerous']);
  expect(harness.terminal.cursor()).toEqual({ row: 0, column: 2 });
  const before = harness.terminal.sent();
  harness.tick(60_000);
  expect(harness.terminal.sent()).toBe(before);
  expect(harness.scheduled()).toBe(0);
});

test('typing echoes at one byte a key', async () => {
  const harness = openRepl();
  const before = harness.terminal.sent().length;
  for (const key of 'hello') harness.type(key);
  expect(harness.terminal.sent().slice(before)).toBe('hello');
});

test('a turn: text, call, live result, answer', async () => {
  const harness = openRepl();
  harness.type('list files\r');
  const { session } = harness;
  session.stream('I look **around**.');
  harness.tick(40);
  session.append(assistant('I look **around**.'));
  session.call('c1', 'glob(pattern="**/*.ts")');
  session.start('c1');
  session.result('c1', '2 files found', { output: 'a.ts\nb/c.ts', count: 2 });
  session.stream('There are two.');
  session.append(assistant('There are two.'));
  await session.end();
  await harness.settle();
  expect(shown(harness.terminal)).toEqual([
    '❯ list files', '', 'I look around.', '', '↪ glob(pattern="**/*.ts")', '✔ 2 files found (34ms)', 'a.ts', 'b/c.ts', '', 'There are two.', '', '❯', 'offline · ~/thing (main) · approval dangerous',
  ]);
  expect(session.submitted).toEqual(['list files']);
  expect(harness.history).toEqual(['list files']);
});
