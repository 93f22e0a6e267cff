import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { builtinTools } from '../../src/tools/builtin.js';
import { createProcessRunner } from '../../src/tools/process/runner.js';

const tools = builtinTools({
  env: {},
  protectedEnv: [],
  shell: 'sh',
  maxReadBytes: 1,
  modelOutputBytes: 1,
  timeoutS: 1,
  maxTimeoutS: 1,
  processes: createProcessRunner({ marker: { name: '_AGENT_RUN', value: '' } }),
});
const name = new RegExp(String.raw`\b(?:${tools.map((tool) => tool.name).join('|')})\b`);
const withoutComments = (text: string): string => text.replaceAll(/\/\*[^]*?\*\/|^\s*\/\/.*$/gm, '');

function namesTool(root: string): readonly string[] {
  return readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts') && name.test(withoutComments(readFileSync(join(root, file), 'utf8'))))
    .map((file) => join(root, file));
}

test('core and the loop know no tool by its name', () => {
  expect(tools.length).toBeGreaterThan(5);
  expect(['src/core', 'src/agent'].flatMap(namesTool)).toEqual([]);
  expect(namesTool('src/tools')).not.toEqual([]);
});
