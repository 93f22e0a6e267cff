import { join } from 'node:path';
import { writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { createAgent } from '../../src/frontends/library/library.js';
import { agent, lines, place, script } from './inside.js';

type Place = ReturnType<typeof place>;

const answers = ['One.', 'Two.', 'Three.', 'Four.'].map((text) => ({ text }));
const verse = ['--system-prompt', 'Speak in verse.'];
const prose = ['--system-prompt', 'Speak in prose.'];

async function newest(at: Place): Promise<string> {
  const { stdout } = await agent(at, ['sessions', 'list', '--json']);
  return (JSON.parse(stdout) as { id: string }[])[0]?.id ?? '';
}

/** Returns the system prompt that the next request of the newest session sends. */
async function sent(at: Place): Promise<string> {
  const { stdout } = await agent(at, ['sessions', 'show', await newest(at), '--as', 'anthropic-messages']);
  return JSON.stringify((JSON.parse(stdout) as { system: unknown }).system);
}

async function prompts(at: Place): Promise<number> {
  const { stdout } = await agent(at, ['sessions', 'show', await newest(at), '--json']);
  return (JSON.parse(stdout) as { kind: string }[]).filter(({ kind }) => kind === 'system').length;
}

test.each([
  ['-c', (_id: string) => ['-c']],
  ['-r', (id: string) => ['-r', id]],
  ['-c --fork', (_id: string) => ['-c', '--fork']],
])('--system-prompt with %s replaces the prompt of the session, and says so once', async (_name, resume) => {
  const at = place({ 'AGENTS.md': 'Use tabs.' });
  const model = script(at, answers);
  await agent(at, ['-p', '-m', model, ...verse, 'one']);
  const changed = await agent(at, ['-p', '-m', model, ...resume(await newest(at)), ...prose, 'two']);
  expect([changed.code, changed.stderr]).toEqual([
    0,
    expect.stringContaining('The system prompt of this session changed'),
  ]);
  expect(await sent(at)).toMatch(/Use tabs\.[^]*Speak in prose\./);
  expect(await sent(at)).not.toContain('Speak in verse.');
  const again = await agent(at, ['-p', '-m', model, '-c', ...prose, 'three']);
  expect([again.stderr, await prompts(at)]).toEqual(['', 2]);
});

test('without the option, and with the same one, a resumed session keeps its prompt byte for byte', async () => {
  const at = place();
  const model = script(at, answers);
  await agent(at, ['-p', '-m', model, ...verse, 'one']);
  const before = await sent(at);
  for (const more of [[], verse, ['--set', 'system_prompt=Speak in verse.']])
    expect(await agent(at, ['-p', '-m', model, '-c', ...more, 'on'])).toMatchObject({ code: 0, stderr: '' });
  expect([await sent(at), await prompts(at)]).toEqual([before, 1]);
});

test('an empty --system-prompt takes the prompt of the session away', async () => {
  const at = place();
  const model = script(at, answers);
  await agent(at, ['-p', '-m', model, ...verse, 'one']);
  await agent(at, ['-p', '-m', model, '-c', '--system-prompt', '', 'two']);
  expect(await sent(at)).not.toContain('verse');
});

test('--replace-system-prompt replaces the default prompt; instructions and an addition follow, and a resumed session keeps it', async () => {
  const at = place({ 'AGENTS.md': 'Use tabs.', 'role.md': 'You review code.\n' });
  const model = script(at, answers);
  const replaced = ['--replace-system-prompt', '@role.md', '--append-system-prompt', 'Speak in verse.'];
  await agent(at, ['-p', '-m', model, ...replaced, 'one']);
  const first = await sent(at);
  expect(first).toMatch(/"You review code\.\\n\\n# Instructions from [^]*Use tabs\.\\n\\nSpeak in verse\."/);
  expect(first).not.toContain('You are agent');
  for (const more of [[], replaced])
    expect(await agent(at, ['-p', '-m', model, '-c', ...more, 'on'])).toMatchObject({ code: 0, stderr: '' });
  expect([await sent(at), await prompts(at)]).toEqual([first, 1]);
  const back = await agent(at, ['-p', '-m', model, '-c', '--replace-system-prompt', '', 'three']);
  expect(back.stderr).toContain('The system prompt of this session changed');
  expect(await sent(at)).toContain('You are agent');
});

test('the help says what each option does to the default prompt', async () => {
  const { stdout } = await agent(place(), ['--help']);
  const help = stdout.replaceAll(/\s+/g, ' ');
  expect(help).toContain('--append-system-prompt, --system-prompt <text|@file> add your text to the default');
  expect(help).toContain('--replace-system-prompt <text|@file> use your text in place of the default');
});

test('a setting that changed does not change an old session, and a notice says so', async () => {
  const at = place();
  const model = script(at, answers);
  await agent(at, ['-p', '-m', model, 'one']);
  const line = ['-p', '-m', model, '-c', '--output-format', 'stream-json', 'two'];
  const { stdout } = await agent(at, line, { env: { AGENT_SYSTEM_PROMPT: 'Speak in verse.' } });
  expect(lines(stdout)).toContainEqual(expect.objectContaining({ type: 'notice', code: 'system_prompt_kept' }));
  expect(await sent(at)).not.toContain('verse');
});

test('with a new prompt the instructions are given once, as they are now', async () => {
  const at = place({ 'AGENTS.md': 'Use tabs.' });
  const model = script(at, answers);
  await agent(at, ['-p', '-m', model, 'one']);
  writeFileSync(join(at.work, 'AGENTS.md'), 'Use spaces.');
  const { stderr } = await agent(at, ['-p', '-m', model, '-c', ...prose, 'two']);
  expect(stderr).not.toContain('Instructions changed');
  expect(await sent(at)).toMatch(/Use spaces\./);
  expect(await sent(at)).not.toMatch(/Use tabs\./);
});

test('a prompt of another program replaces that of the session it resumes', async () => {
  const at = place();
  const model = script(at, answers);
  await agent(at, ['-p', '-m', model, ...verse, 'one']);
  const request = { subtype: 'initialize', systemPrompt: 'Speak in prose.' };
  const stdin = [
    { type: 'control_request', request_id: '1', request },
    { type: 'user', message: { role: 'user', content: 'two' } },
  ];
  const formats = ['--input-format', 'stream-json', '--output-format', 'stream-json'];
  await agent(at, ['-p', '-m', model, '-c', ...formats], {
    stdin: stdin.map((line) => `${JSON.stringify(line)}\n`).join(''),
  });
  expect(await sent(at)).toContain('Speak in prose.');
});

test('the library replaces the prompt of a session that it resumes', async () => {
  const at = place();
  const store = join(at.home, 'own.db');
  const program = await createAgent({ cwd: at.work, model: script(at, answers), store });
  const first = program.createSession({ systemPrompt: 'Speak in verse.' });
  const { session_id: id } = await first.prompt('one');
  await first.close();
  const second = program.createSession({ resume: id, systemPrompt: 'Speak in prose.' });
  const codes: string[] = [];
  for await (const event of second.run('two')) if (event.type === 'notice') codes.push(event.code);
  await second.close();
  await program.close();
  expect(codes).toContain('system_prompt_changed');
});
