import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { agent, place, script, type Place } from './program.js';
import { openScreen } from './terminal.js';

/** Opens the REPL, waits for `ready`, types, ends it; gives every byte it wrote until it was ready. */
async function opened(at: Place, args: readonly string[], ready: RegExp, keys = ''): Promise<string> {
  const screen = openScreen(at, args);
  await screen.until(ready);
  // The draft is shown in the input once the program is there, which takes keys before it is: an answer to one shows
  // that it is.
  screen.type('x');
  await screen.until(/❯ x/);
  const raw = screen.raw();
  screen.type(`\x7f${keys}`);
  screen.type('\x04');
  await screen.exited;
  return raw;
}

/** What was said stands behind a sign of the prompt of its own. */
const promptsBefore = (raw: string, text: string): number => raw.slice(0, raw.indexOf(text)).split('❯').length - 1;
const once = (raw: string, text: string): boolean => raw.split(text).length === 2;

test('the second start paints all at once, and not where it would look otherwise', async () => {
  const at = place();
  const first = await opened(at, [], /\/help/);
  expect(first.indexOf('❯')).toBeLessThan(first.indexOf('/help'));
  const second = await opened(at, [], /\/help/);
  expect(second.indexOf('/help')).toBeLessThan(second.indexOf('❯'));
  expect(once(second, '/help') && once(second, '❯')).toBe(true);
  const other = await opened({ ...at, env: { ...at.env, NO_COLOR: '1' } }, [], /\/help/);
  expect(other.indexOf('❯')).toBeLessThan(other.indexOf('/help'));
});

test('what was said last stands at once when one comes back, unless something was said since', async () => {
  const at = place();
  const model = script(at, [{ text: 'The first answer.' }, { text: 'The second answer.' }]);
  const screen = openScreen(at, ['-m', model]);
  await screen.until(/\/help/);
  screen.type('hello\r');
  await screen.until(/The first answer\.[^]*❯$/m);
  screen.type('\x04');
  await screen.exited;
  const again = await opened(at, ['-c'], /The first answer/);
  expect(promptsBefore(again, 'hello')).toBe(1);
  expect(once(again, 'The first answer')).toBe(true);

  const said = await agent(at, ['-c', '-p', 'more']);
  expect(said.code).toBe(0);
  const after = await opened(at, ['-c'], /The second answer/);
  expect(promptsBefore(after, 'more')).toBe(2);
  expect(after).not.toContain('The first answer');
});

test('a kept frame that holds more than text and colours is not painted', async () => {
  const at = place();
  await opened(at, [], /\/help/);
  const folder = join(at.home, '.agent', 'frames');
  const [name = ''] = readdirSync(folder);
  const kept = readFileSync(join(folder, name), 'utf8');
  writeFileSync(join(folder, name), kept.replace('/help', '\\u001b]0;owned\\u0007/help'));
  expect(await opened(at, [], /\/help/)).not.toContain('owned');
});

test('a session that is removed leaves nothing of it in a kept frame', async () => {
  const at = place();
  const model = script(at, [{ text: 'The answer.' }]);
  const screen = openScreen(at, ['-m', model]);
  await screen.until(/\/help/);
  screen.type('hello\r');
  await screen.until(/The answer\.[^]*❯$/m);
  screen.type('\x04');
  await screen.exited;
  const folder = join(at.home, '.agent', 'frames');
  const list = await agent(at, ['sessions', 'list', '--json']);
  const [row] = JSON.parse(list.stdout) as { readonly id: string }[];
  expect(readdirSync(folder).some((name) => readFileSync(join(folder, name), 'utf8').includes('The answer'))).toBe(
    true,
  );
  expect((await agent(at, ['sessions', 'rm', row?.id ?? ''])).code).toBe(0);
  expect(existsSync(folder)).toBe(false);
});

test('a REPL left without a word leaves no session', async () => {
  const at = place();
  await opened(at, [], /\/help/);
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
