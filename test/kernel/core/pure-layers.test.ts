import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { builtinTools } from '../../../src/kernel/tools/builtin.js';
import { createProcessRunner } from '../../../src/kernel/tools/process/runner.js';

const tools = builtinTools({
  env: {},
  protectedEnv: [],
  shell: 'sh',
  encoding: null,
  maxReadBytes: 1,
  modelOutputBytes: 1,
  timeoutS: 1,
  maxTimeoutS: 1,
  processes: createProcessRunner({ marker: { name: '_AGENT_RUN', value: '' } }),
});
const name = new RegExp(String.raw`\b(?:${tools.map((tool) => tool.name).join('|')})\b`);
const withoutComments = (text: string): string => text.replaceAll(/\/\*[^]*?\*\/|^\s*\/\/.*$/gm, '');

function filesWith(pattern: RegExp, ...roots: readonly string[]): readonly string[] {
  return roots.flatMap((root) =>
    readdirSync(root, { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.ts') && pattern.test(withoutComments(readFileSync(join(root, file), 'utf8'))))
      .map((file) => join(root, file)),
  );
}

test('core and the loop know no tool by its name', () => {
  expect(tools.length).toBeGreaterThan(5);
  expect(filesWith(name, 'src/kernel/core', 'src/kernel/agent')).toEqual([]);
  expect(filesWith(name, 'src/kernel/tools')).not.toEqual([]);
});

test('core and the loop read no clock, set no timer, draw no random number and keep nothing by identity', () => {
  const impure =
    /\b(?:set(?:Timeout|Interval|Immediate)|Date\.now|new Date|performance|Math\.random|process\.\w|WeakMap|WeakRef)\b/;
  expect(filesWith(impure, 'src/kernel/core', 'src/kernel/agent')).toEqual([]);
  expect(filesWith(impure, 'src/app')).not.toEqual([]);
});
