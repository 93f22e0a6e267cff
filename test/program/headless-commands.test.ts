import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import { agent, place, script } from './inside.js';

const answers = (count: number): readonly unknown[] =>
  Array.from({ length: count }, (_, at) => ({ text: `Answer ${at + 1}.` }));

test.each([
  ['/clear', '/clear works only in the REPL'],
  ['/model x', '/model works only in the REPL'],
  ['/undo', '/undo works only in the REPL'],
  ['/größer', 'there is no command /größer'],
  ['/nothing of that name', 'there is no command /nothing'],
])('%s with -p is a usage error that says what works, and no model reads it', async (prompt, said) => {
  const at = place();
  const { code, stdout, stderr } = await agent(at, ['-p', '-m', script(at, answers(1)), prompt]);
  expect([code, stdout]).toEqual([2, '']);
  expect(stderr).toContain(said);
  expect(stderr).toMatch(/With -p these work: \/compact, \/init/);
});

test.each(['/etc/hosts explain', '/tmp is full', 'what does /clear do', '/'])('%s is a message', async (prompt) => {
  const at = place();
  expect(await agent(at, ['-p', '-m', script(at, answers(1)), prompt])).toMatchObject({
    code: 0,
    stdout: 'Answer 1.\n',
  });
});

test('/compact with -p compacts the session that goes on', async () => {
  const at = place();
  const model = script(at, answers(3));
  await agent(at, ['-p', '-m', model, `begin ${'word '.repeat(3000)}`]);
  const { code, stdout } = await agent(at, ['-p', '-m', model, '-c', '/compact keep names']);
  expect([code, stdout]).toEqual([0, 'The conversation was compacted.\n']);
});

const failing = (code: string) => [{ text: 'One.' }, { text: '', fault: { code, message: 'It failed.' } }];

test.each([
  ['there is too little', 'hi', answers(2), 1, 'nothing to compact yet'],
  ['the summary fails', 'word '.repeat(3000), failing('bad_request'), 1, 'It failed'],
  ['the key is refused', 'word '.repeat(3000), failing('auth'), 4, 'It failed'],
])('/compact with -p fails where %s, and says so on standard error', async (_name, prompt, turns, wanted, reason) => {
  const at = place();
  const model = script(at, turns);
  await agent(at, ['-p', '-m', model, prompt]);
  const line = ['-p', '-m', model, '-c'];
  const ran = await agent(at, [...line, '/compact']);
  expect([ran.code, ran.stdout]).toEqual([wanted, '']);
  expect(ran.stderr).toContain(`agent: not compacted: ${reason}`);
  const asJson = await agent(at, [...line, '--output-format', 'json', '/compact']);
  expect(asJson.code).toBeGreaterThan(0);
  expect(JSON.parse(asJson.stdout)).toMatchObject({
    status: 'failed',
    error: { message: expect.any(String) as string },
  });
});

test('command files are named in any script, a blank is a hyphen, and one that cannot be typed is named', async () => {
  const at = place();
  const folder = join(at.home, '.agent', 'commands');
  mkdirSync(folder, { recursive: true });
  // As macOS spells it.
  writeFileSync(join(folder, 'größe.md'.normalize('NFD')), 'say SIZE\n');
  writeFileSync(join(folder, 'my cmd.md'), 'say MINE\n');
  writeFileSync(join(folder, 'サイズ.md'), 'say JAPANESE\n');
  writeFileSync(join(folder, '2fa!.md'), 'say NEVER\n');
  for (const [prompt, sent] of [
    ['/größe', 'say SIZE'],
    ['/my-cmd', 'say MINE'],
    ['/サイズ now', 'say JAPANESE'],
  ] as const) {
    const { code, stderr } = await agent(at, ['-p', '-m', script(at, answers(1)), prompt]);
    expect(code).toBe(0);
    expect(stderr).toMatch(/2fa!\.md is not a command/);
    const shown = await agent(at, ['sessions', 'list', '--json']);
    const id = (JSON.parse(shown.stdout) as { id: string }[])[0]?.id ?? '';
    expect((await agent(at, ['sessions', 'show', id])).stdout).toContain(sent);
  }
});

test('--image takes a file address, with its characters decoded', async () => {
  const at = place();
  const png = Buffer.from(
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
    'base64',
  );
  writeFileSync(join(at.work, 'my größe.png'), png);
  const { href } = pathToFileURL(join(at.work, 'my größe.png'));
  expect(href).toContain('%20');
  const { code, stderr } = await agent(at, ['-p', '-m', script(at, answers(1)), '--image', href, 'look']);
  expect([code, stderr]).toEqual([0, '']);
  const gone = await agent(at, ['-p', '-m', script(at, answers(1)), '--image', `${href}x`, 'look']);
  expect(gone.code).toBe(2);
});
