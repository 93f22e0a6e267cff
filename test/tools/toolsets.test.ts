import { Ajv } from 'ajv';
import { expect, test } from 'vitest';
import document from '../../config/config.schema.json' with { type: 'json' };
import { renderSystemPrompt } from '../../src/agent/system-prompt.js';
import { offeredTools } from '../../src/cli/session/open-tools.js';
import type { CommandLine } from '../../src/commands/command.js';
import { listTools } from '../../src/commands/settings/use-tools.js';
import { checkSettings } from '../../src/config/settings-check.js';
import { configSchema, resolveKey, schemaFor } from '../../src/config/settings-schema.js';
import { type Tool, toolsets } from '../../src/core/tool.js';
import { builtinTools, inToolset } from '../../src/tools/builtin.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { createRegistry } from '../../src/tools/registry.js';
import { processes, toolOptions } from './workbench.js';

const sums = { name: 'sums', on: false, about: 'Offer sums.', guidance: 'Count with sums, not by heart.' };
const planted = [...toolsets, sums];
const add = defineTool({
  name: 'add',
  description: 'Adds.',
  effect: 'read',
  schema: { type: 'object', properties: {}, additionalProperties: false },
  run: () => Promise.resolve({ envelope: { output: '' }, summary: '' }),
});
const tools = [...builtinTools(toolOptions()), ...inToolset(sums, [add])];

test('a set that is planted has a switch in the settings', () => {
  const check = new Ajv().compile(schemaFor(planted));
  expect([true, 'yes'].map((on) => check({ tools: { sums: on } }))).toEqual([true, false]);
  expect(checkSettings({ tools: { sums: true } })).toMatchObject([{ path: ['tools', 'sums'], unknown: true }]);
  expect(resolveKey('tools.sums', schemaFor(planted))?.node).toEqual({
    type: 'boolean',
    default: false,
    description: 'Offer sums.',
  });
});

test('a set that is planted is offered where it is switched on or named, and nowhere else', () => {
  const names = (switchedOn: readonly string[], chosen?: string): readonly string[] =>
    offeredTools(tools, switchedOn, chosen).map(({ name }) => name);
  expect(names(['exec', 'sums'])).toEqual(['bash', 'add']);
  expect(names(['exec'])).toEqual(['bash']);
  expect(names(['exec', 'sums'], 'sums')).toEqual(['add']);
  expect(() => names(['exec', 'sums'], 'sum')).toThrow('there is no tool or toolset `sum`');
});

test('a set that is planted is listed', async () => {
  const registry = createRegistry({ maxOutputBytes: 1000, now: () => 0 });
  for (const tool of offeredTools(tools, ['exec', 'sums'], undefined)) registry.register(tool);
  let printed = '';
  // The verb asks for nothing else.
  const line = {
    out: { print: (text: string) => (printed += text) },
    tools: { open: () => Promise.resolve({ registry, processes }) },
  } as unknown as CommandLine;
  await listTools.line?.run?.(line, [], {});
  expect(printed).toMatch(/^bash +exec +execute .*\nadd +sums +read +Adds\.\n$/);
});

test('a set says its sentence in the prompt of a session that has one of its tools', () => {
  const prompt = (offered: readonly Tool[]): string =>
    renderSystemPrompt({
      cwd: '/work',
      platform: 'linux',
      date: '2026-11-21',
      isGitRepository: false,
      tools: offered,
      contextFiles: [],
      userPrompt: '',
    });
  expect(prompt(tools).split('\n')).toContain('- Count with sums, not by heart.');
  expect(prompt(builtinTools(toolOptions()))).not.toContain('sums');
});

test('every tool stands in a set of the list, and every set has tools', () => {
  const used = new Set(builtinTools(toolOptions()).map(({ toolset }) => toolset));
  expect([...used]).toEqual(toolsets);
});

test('the published schema of the settings knows the sets of the list', () => {
  expect(document).toEqual(configSchema);
});
