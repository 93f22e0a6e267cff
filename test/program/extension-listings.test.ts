import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { agent, place } from './inside.js';

type Place = ReturnType<typeof place>;

function write(at: Place, path: string, text: string): void {
  const file = join(at.home, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

function withFiles(): Place {
  const at = place();
  write(at, '.agent/skills/tidy/SKILL.md', '---\nname: tidy\ndescription: Tidies up.\n---\nSort the imports.\n');
  write(at, '.agent/agents/scout.md', '---\nname: scout\ndescription: Looks around.\ntools: glob\n---\nLook first.\n');
  const hooks = { PreToolUse: [{ matcher: 'bash', hooks: [{ type: 'command', command: 'true' }] }] };
  write(at, '.agent/hooks.json', JSON.stringify({ hooks }));
  return at;
}

const groups = [
  ['skills', 'tidy', 'Sort the imports.'],
  ['agents', 'scout', 'Look first.'],
  ['hooks', 'PreToolUse', 'command: true'],
] as const;

test.each(groups)('agent %s lists, shows and checks the files of the user', async (group, name, text) => {
  const at = withFiles();
  const listed = await agent(at, [group, 'list', '--json']);
  expect(JSON.stringify(JSON.parse(listed.stdout))).toContain(`"${name}"`);
  expect(await agent(at, [group, '--json'])).toEqual(listed);
  expect((await agent(at, [group, 'list'])).stdout).toContain(name);
  expect((await agent(at, [group, 'show', name])).stdout).toContain(text);
  expect(JSON.parse((await agent(at, [group, 'show', name, '--json'])).stdout)).toBeTruthy();
  expect(await agent(at, [group, 'check'])).toMatchObject({ code: 0, stderr: '' });
  expect(JSON.parse((await agent(at, [group, 'check', '--json'])).stdout)).toEqual([]);
});

test.each(groups)('agent %s show of another name says which there are', async (group, name) => {
  const { code, stdout, stderr } = await agent(withFiles(), [group, 'show', `${name}x`]);
  expect([code, stdout]).toEqual([2, '']);
  expect(stderr).toContain(`there is no ${group.slice(0, -1)} \`${name}x\``);
  expect(stderr).toContain(name);
});

test.each([
  ['skills', '.agent/skills/bad/SKILL.md', '---\nname: bad\n---\n', 'bad/SKILL.md has no description'],
  ['agents', '.agent/agents/bad.md', 'No front matter.', 'bad.md'],
  ['hooks', '.agent/hooks.json', '{"hooks": {"PreToolUs": []}}', 'PreToolUs'],
  ['hooks', '.agent/hooks.json', '{"hooks"', 'hooks.json'],
])('agent %s check ends with 2 for what is wrong in %s', async (group, path, text, problem) => {
  const at = place();
  write(at, path, text);
  const { code, stdout } = await agent(at, [group, 'check']);
  expect([code, stdout]).toEqual([2, expect.stringContaining(problem)]);
  expect(JSON.parse((await agent(at, [group, 'check', '--json'])).stdout)).toHaveLength(1);
});

test.each(['skills', 'agents', 'hooks'])('agent %s of none says so, as lines and as JSON', async (group) => {
  const at = place();
  expect(await agent(at, [group, 'check'])).toMatchObject({ code: 0 });
  const { code, stdout } = await agent(at, [group, 'list', '--json']);
  expect([code, Array.isArray(JSON.parse(stdout))]).toEqual([0, true]);
  expect((await agent(at, [group])).stdout).not.toBe('');
});

test('agent notes is agent memory', async () => {
  const at = place();
  await agent(at, ['notes', 'add', 'the build needs node 20']);
  const listed = await agent(at, ['notes', 'list', '--json']);
  expect(listed).toEqual(await agent(at, ['memory', 'list', '--json']));
  const [note] = JSON.parse(listed.stdout) as { id: number }[];
  for (const verb of ['show', 'approve', 'pin', 'unpin', 'rm'])
    expect(await agent(at, ['notes', verb, String(note?.id)])).toMatchObject({ code: 0 });
});

test.each([
  [['sesions', 'list'], 'sessions'],
  [['skils', 'list'], 'skills'],
  [['hook', 'check'], 'hooks'],
  [['agent', 'show'], 'agents'],
  [['note', 'list'], 'notes'],
  [['memroy', 'list'], 'memory'],
  [['Tasks', 'list'], 'tasks'],
  [['auditt'], 'audit'],
  [['seshions'], 'sessions'],
])('the line %j is asked about, not sent', async (words, command) => {
  const { code, stdout, stderr } = await agent(place(), ['-m', 'offline', ...words]);
  expect([code, stdout]).toEqual([2, '']);
  expect(stderr).toContain(`did you mean \`agent ${command}\`?`);
  expect(stderr).toContain(`agent -- ${words.join(' ')}`);
});

test.each([
  ['-p', 'sesions', 'list'],
  ['do', 'this'],
  ['seshionz', 'of', 'today'],
  ['sesions list'],
  ['--', 'sesions', 'list'],
])('the line %j is a prompt', async (...words) => {
  const { code, stdout } = await agent(place(), ['-m', 'offline', ...words]);
  expect([code, stdout]).toEqual([0, expect.stringContaining('offline provider')]);
});
