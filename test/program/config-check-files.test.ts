import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { agent, place, script } from './inside.js';

test('config check names unknown tools and ignored fields of agent, command and skill files, and stays ok', async () => {
  const at = place();
  const own = (path: string, text: string): void => {
    mkdirSync(join(at.home, '.agent', path, '..'), { recursive: true });
    writeFileSync(join(at.home, '.agent', path), text);
  };
  const head = 'name: x\ndescription: Does x.\ntools: Read, WebFetch, Frobnicate, mcp__server__a, file_*\ncolour: red';
  own('agents/x.md', `---\n${head}\n---\nYou do x.\n`);
  own('commands/y.md', '---\ndescription: Does y.\nmodel: opus\nhooks: x\nallowed-tools: Bash(git *)\n---\nDo y.\n');
  const skill = 'name: z\ndescription: Does z.\neffort: turbo\npaths: a\ndisallowed-tools: Bash, Frobnicate';
  own('skills/z/SKILL.md', `---\n${skill}\n---\nDo z.\n`);
  const { code, stdout, stderr } = await agent(at, ['config', 'check']);
  expect([code, stdout]).toEqual([0, expect.stringMatching(/config\.json: ok/)]);
  expect(
    stderr
      .trim()
      .split('\n')
      .map((line) => line.replace(/.*\//, '')),
  ).toEqual([
    'x.md: colour is ignored.',
    'x.md: there is no tool Frobnicate; agent tools lists them.',
    'y.md: hooks is ignored.',
    'SKILL.md: paths is ignored.',
    'SKILL.md: effort turbo is ignored; write one of none, minimal, low, medium, high, xhigh, max.',
    'SKILL.md: there is no tool Frobnicate; agent tools lists them.',
  ]);
});

test('fields of a command and a skill without an effect are named when they are used', async () => {
  const at = place();
  const own = (path: string, text: string): void => {
    mkdirSync(join(at.home, '.agent', path, '..'), { recursive: true });
    writeFileSync(join(at.home, '.agent', path), text);
  };
  own('commands/y.md', '---\ndescription: Does y.\nhooks: a\npaths: b\n---\nDo y.\n');
  own('skills/z/SKILL.md', '---\nname: z\ndescription: Does z.\npaths: a\n---\nDo z.\n');
  const notices = async (message: string): Promise<string> => {
    const model = script(at, [{ text: 'Done.' }]);
    return (await agent(at, ['-p', '-m', model, '--output-format', 'stream-json', message])).stdout;
  };
  expect(await notices('/y')).toContain('/y: hooks, paths of its file have no effect here.');
  expect(await notices('/skill:z')).toContain('/skill:z: paths of its file has no effect here.');
});
