import { readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { agent, place, script } from './program.js';
import { openScreen } from './terminal.js';

test('the prompt stands before the greeting, and each stands once', async () => {
  const screen = openScreen(place());
  const text = await screen.until(/\/help/);
  expect(screen.raw().indexOf('❯')).toBeLessThan(screen.raw().indexOf('/help'));
  expect([text.split('❯').length, text.split('/help').length]).toEqual([2, 2]);
});

test('what was said last stands on the screen when one comes back, also what was said elsewhere since', async () => {
  const at = place();
  const model = script(at, [{ text: 'The first answer.' }, { text: 'The second answer.' }]);
  const screen = openScreen(at, ['-m', model]);
  await screen.until(/\/help/);
  screen.type('hello\r');
  await screen.until(/The first answer\.[^]*❯$/m);
  screen.type('\x04');
  await screen.exited;
  const again = openScreen(at, ['-c']);
  await again.until(/The first answer/);
  expect(again.raw().split('The first answer')).toHaveLength(2);
  again.type('\x04');
  await again.exited;

  expect((await agent(at, ['-c', '-p', 'more'])).code).toBe(0);
  const after = openScreen(at, ['-c']);
  expect(await after.until(/The second answer/)).not.toContain('The first answer');
});

test('a REPL left without a word leaves no session', async () => {
  const at = place();
  const screen = openScreen(at);
  await screen.until(/\/help/);
  screen.type('\x04');
  await screen.exited;
  expect(JSON.parse((await agent(at, ['sessions', 'list', '--json'])).stdout)).toEqual([]);
});

test('with --ephemeral nothing of a REPL is on the disk afterwards', async () => {
  const at = place();
  const screen = openScreen(at, ['--ephemeral']);
  await screen.until(/\/help/);
  screen.type('run echo hello\r');
  await screen.until(/succeeded[^]*❯$/m);
  screen.type('a draft');
  await screen.until(/❯ a draft/);
  screen.pty.kill('SIGTERM');
  await screen.exited;
  expect(readdirSync(at.home)).toEqual([]);
});

test('where nothing can be kept, a REPL ends as it should', async () => {
  const at = place();
  const screen = openScreen(at);
  await screen.until(/\/help/);
  rmSync(join(at.home, '.agent'), { recursive: true, force: true });
  writeFileSync(join(at.home, '.agent'), 'no folder');
  rmSync(at.work, { recursive: true });
  screen.type('\x04');
  expect(await screen.exited).toBe(0);
});
