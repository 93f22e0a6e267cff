import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import { table } from '../../src/commands/table.js';
import { agent, place, script } from './inside.js';

const answers = (count: number): readonly unknown[] =>
  Array.from({ length: count }, (_, at) => ({ text: `Answer ${at + 1}.` }));

test.each([
  ['/größer', 'there is no command /größer'],
  ['/nothing of that name', 'there is no command /nothing'],
])('%s with -p is a usage error that says what works, and no model reads it', async (prompt, said) => {
  const at = place();
  const { code, stdout, stderr } = await agent(at, ['-p', '-m', script(at, answers(1)), prompt]);
  expect([code, stdout]).toEqual([2, '']);
  expect(stderr).toContain(said);
  expect(stderr).toMatch(/With -p these work: \/compact, .*\/init/);
});

const slashForms = table.flatMap(({ entries }) =>
  entries.flatMap((entry) => (entry.slash ? [{ ...entry, name: entry.slash[0].split(/[ |]/)[0] ?? '' }] : [])),
);

test('every slash command runs with -p, or says that it needs the screen; no model reads its name', async () => {
  const at = place();
  const model = script(at, answers(9));
  await agent(at, ['-p', '-m', model, 'begin']);
  for (const { name, needsScreen, leaves } of slashForms) {
    const { code, stdout, stderr } = await agent(at, ['-p', '-m', model, '-c', '--output-format', 'json', `/${name}`]);
    const needs = needsScreen !== undefined || leaves === true;
    if (needs) expect([name, code, stdout], stderr).toEqual([name, 2, '']);
    else expect([0, 1], `${name}: ${stdout}${stderr}`).toContain(code);
    if (needs) expect(stderr).toMatch(new RegExp(`^agent: /${name} works only in the REPL: it needs the screen\n\\S`));
    if (['init', 'review'].includes(name)) expect([name, code], stderr).toEqual([name, 0]);
    if (needs || ['init', 'review', 'rename'].includes(name)) continue;
    const { text, error } = JSON.parse(stdout) as { readonly text: string; readonly error?: { readonly code: string } };
    expect(code === 0 ? text : error?.code, `${name}: ${stdout}`).not.toMatch(/^$|internal/);
  }
  const { stdout } = await agent(at, ['sessions', 'list', '--json']);
  const id = (JSON.parse(stdout) as { readonly id: string }[])[0]?.id ?? '';
  const events = JSON.parse((await agent(at, ['sessions', 'show', id, '--json'])).stdout) as readonly {
    readonly kind: string;
    readonly content: string | null;
  }[];
  const sent = events.filter(({ kind }) => kind === 'user').map(({ content }) => content?.slice(0, 6));
  expect(sent).toEqual(['begin', '[Note:', 'Write ', 'Review']);
}, 120_000);

test.each([
  [['--output-format', 'text'], /^\| requests \|/],
  [['--output-format', 'json'], /^\{"type":"result","status":"completed","text":"\| requests \|/],
  [
    ['--output-format', 'stream-json'],
    /"type":"session"[^]*"type":"result","status":"completed","text":"\| requests \|/,
  ],
  [['--output-format', 'json', '--dialect', 'claude'], /"subtype":"success","is_error":false,"result":"\| requests \|/],
])('the output of a command is the result with %s, and -o writes it', async (format, wanted) => {
  const at = place();
  const { code, stdout, stderr } = await agent(at, ['-p', ...format, '-o', 'cost.md', '/cost']);
  expect([code, stderr]).toEqual([0, '']);
  expect(stdout).toMatch(wanted);
  expect(readFileSync(join(at.work, 'cost.md'), 'utf8')).toMatch(/^\| requests \|/);
});

test('/model shows the models, and changes the one of a session', async () => {
  const at = place();
  await agent(at, ['-p', '-m', script(at, answers(1)), 'begin']);
  expect((await agent(at, ['-p', '-c', '/model'])).stdout).toMatch(
    /Model:\n[^]*\* offline\/[^]*Choose one with: agent -p/,
  );
  const { code, stdout } = await agent(at, ['-p', '-c', '/model offline/offline --session']);
  expect([code, stdout]).toEqual([0, 'Now using offline/offline. For this session only.\n']);
  expect((await agent(at, ['-p', '-c', '/status'])).stdout).toMatch(/offline\/offline/);
  const failed = await agent(at, ['-p', '-c', '/model nothing/at-all']);
  expect([failed.code, failed.stdout]).toEqual([1, '']);
  expect(failed.stderr).toMatch(/^agent: .*nothing/);
});

test('a command from standard input runs only where it changes nothing', async () => {
  const at = place();
  const show = await agent(at, ['-p'], { stdin: '/cost\n' });
  expect([show.code, show.stdout]).toEqual([0, expect.stringMatching(/^\| requests/)]);
  const change = await agent(at, ['-p'], { stdin: '/approval never --keep\n' });
  expect([change.code, change.stdout]).toEqual([2, '']);
  expect(change.stderr).toContain('/approval is not run from standard input');
  expect((await agent(at, ['config', 'get', 'approval'])).stdout).toBe('dangerous\n');
  const lines = ['/cost', '/approval never --keep', '/nothing', 'hello'].map((content) =>
    JSON.stringify({ type: 'user', message: { role: 'user', content } }),
  );
  const stream = ['-p', '--input-format', 'stream-json', '--output-format', 'stream-json'];
  const { stdout } = await agent(at, [...stream, '-m', script(at, answers(1))], { stdin: `${lines.join('\n')}\n` });
  const results = stdout.split('\n').filter((line) => line.startsWith('{"type":"result"'));
  expect(results.map((line) => (JSON.parse(line) as { readonly status: string }).status)).toEqual([
    'completed',
    'failed',
    'failed',
    'completed',
  ]);
  expect(results[3]).toContain('Answer 1.');
});

test('/plan with a request plans it, and the commands that send a message send it', async () => {
  const at = place();
  const { code, stdout } = await agent(at, ['-p', '-m', script(at, answers(1)), '/plan add a parser']);
  expect([code, stdout]).toEqual([0, 'Answer 1.\n']);
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
  expect(code).toBe(0);
  expect(stdout).toMatch(/^Compacted 2 messages into a summary: about \d+ tokens instead of \d+\. .*\n$/);
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
