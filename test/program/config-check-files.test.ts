import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { agent, place } from './inside.js';

test('config check names unknown tools and ignored fields of agent, command and skill files, and stays ok', async () => {
  const at = place();
  const own = (path: string, text: string): void => {
    mkdirSync(join(at.home, '.agent', path, '..'), { recursive: true });
    writeFileSync(join(at.home, '.agent', path), text);
  };
  const head = 'name: x\ndescription: Does x.\ntools: Read, WebFetch, Frobnicate, mcp__server__a, file_*\ncolour: red';
  own('agents/x.md', `---\n${head}\n---\nYou do x.\n`);
  own('commands/y.md', '---\ndescription: Does y.\nmodel: opus\n---\nDo y.\n');
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
    'y.md: model is ignored.',
  ]);
});
