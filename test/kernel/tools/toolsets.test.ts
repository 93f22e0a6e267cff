import { createSecretGuard } from '../../../src/kernel/core/secrets/guard.js';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import document from '../../../config/config.schema.json' with { type: 'json' };
import { renderSystemPrompt } from '../../../src/kernel/agent/system-prompt.js';
import { toolSpecs } from '../../../src/app/open-tools.js';
import { type Catalogue, offeredTools } from '../../../src/app/open-toolsets.js';
import type { CommandLine } from '../../../src/kernel/console/command.js';
import { listTools } from '../../../src/commands/use-tools.js';
import { loadConfig } from '../../../src/kernel/config/load.js';
import { checkSettings } from '../../../src/kernel/config/settings-check.js';
import { resolveKey } from '../../../src/kernel/config/settings-schema.js';
import type { Tool } from '../../../src/kernel/core/tool.js';
import { builtinTools, inToolset } from '../../../src/kernel/tools/builtin.js';
import { defineTool } from '../../../src/kernel/tools/define-tool.js';
import { createRegistry } from '../../../src/kernel/tools/registry.js';
import { mathTools } from '../../../src/features/small-tools/math.js';
import { toolOptions, tree } from './workbench.js';
import { featureToolsets, toolsets } from '../../../src/app/features.js';

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

/** A catalogue of all sets that counts which ones are loaded. */
function catalogueOf(loaded: string[] = []): Catalogue {
  const namesIn = (set: string): string[] => tools.flatMap(({ name, toolset }) => (toolset.name === set ? [name] : []));
  return {
    sets: planted.map(({ name }) => ({ name, tools: namesIn(name) })),
    find: () => Promise.resolve(),
    reload: () => Promise.resolve({ before: [], now: [] }),
    load: (set) => {
      loaded.push(set);
      return Promise.resolve(tools.filter(({ toolset }) => toolset.name === set));
    },
  };
}

test('a set that is planted is offered where it is switched on or named, and loaded nowhere else', async () => {
  const names = async (switchedOn: readonly string[], chosen?: string): Promise<string> => {
    const loaded: string[] = [];
    const offered = await offeredTools(catalogueOf(loaded), switchedOn, chosen);
    return `${offered.map(({ name }) => name).join()} from ${loaded.join()}`;
  };
  expect(await names(['exec', 'sums'])).toBe('bash,add from exec,sums');
  expect(await names(['exec'])).toBe('bash from exec');
  expect(await names(['exec', 'sums'], 'sums')).toBe('add from sums');
  expect(await names(['exec'], 'add,grep')).toBe('grep,add from fs,sums');
  expect(await names(['exec'], '+sums')).toBe('bash,add from exec,sums');
  expect(await names(['exec', 'sums'], '-bash, +glob')).toBe('glob,add from fs,sums');
  await expect(names(['exec', 'sums'], 'sum')).rejects.toThrow('there is no tool or toolset `sum`');
  await expect(names(['exec'], '+tod')).rejects.toMatchObject({ hint: expect.stringMatching(/^Did you mean todo/) });
  await expect(names(['exec'], '+tod')).rejects.toMatchObject({ hint: expect.not.stringMatching(/todo.*todo.*todo/) });
  await expect(names(['exec'], '+sums,bash')).rejects.toThrow('mixes names with and without a sign');
});

test('a set that is planted is listed', async () => {
  const registry = createRegistry({ maxOutputBytes: 1000, now: () => 0 });
  for (const tool of await offeredTools(catalogueOf(), ['exec', 'sums'], undefined)) registry.register(tool);
  let printed = '';
  // The verb asks for nothing else.
  const line = {
    out: { print: (text: string) => (printed += text) },
    tools: { open: () => Promise.resolve({ registry }) },
    settings: () => Promise.resolve({ guard: createSecretGuard({ forms: [], keys: [], environment: [] }) }),
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

test('docs/toolsets.md names every set of a feature, with its tools', () => {
  const page = readFileSync(join(import.meta.dirname, '../../../docs/toolsets.md'), 'utf8');
  for (const [set, { tools: names }] of featureToolsets
    .filter(({ name, tools }) => name !== 'mcp' && tools?.length !== 0)
    .map((set) => [set.name, set] as const))
    expect(page).toContain(`\n| \`${set}\` | ${names?.map((name) => `\`${name}\``).join(', ') ?? 'yours'} |`);
});

test('that a tool of the program takes nothing else is checked and not sent', async () => {
  const registry = createRegistry({ maxOutputBytes: 1000, now: () => 0 });
  const math = toolsets.find(({ name }) => name === 'math') ?? sums;
  for (const tool of [...builtinTools(toolOptions()), ...inToolset(math, mathTools())]) registry.register(tool);
  expect(registry.list().every(({ input_schema }) => input_schema.additionalProperties === false)).toBe(true);
  expect(JSON.stringify(toolSpecs(registry))).not.toMatch(/additionalProperties|minLength|"minimum":[01]\b/);
  expect(await registry.bind({ name: 'math_eval', arguments: '{"expression":"1","more":1}' })).toMatchObject({
    error: { code: 'invalid_args', details: { argument: 'more' } },
  });
});

test('the settings have a switch for each set of the program, and its name in `toolsets`', () => {
  const {
    confirm: _confirm,
    limits: _limits,
    bash: _bash,
    diagnostics_wait_ms: _wait,
    ...switches
  } = document.properties.tools.properties;
  const expected = toolsets.map(({ name, on, about }) => [name, { type: 'boolean', description: about, default: on }]);
  expect(Object.entries(switches)).toEqual(expected);
  const names = toolsets.flatMap(({ name, on }) => (on ? [`-${name}`] : [name, `-${name}`]));
  expect(document.properties.toolsets.items.enum).toEqual(names);
  expect(checkSettings({ tools: { sums: true } })).toMatchObject([{ path: ['tools', 'sums'], unknown: true }]);
  expect(resolveKey('tools.math')?.node).toMatchObject({ type: 'boolean' });
});

/** Loads settings from a user's file and the environment. */
async function load(file: object, env: Readonly<Record<string, string>> = {}) {
  const home = tree({ 'a/config.json': JSON.stringify(file) });
  return await loadConfig({ env: { ...env, AGENT_HOME: join(home, 'a') }, cwd: home, home });
}

test('sets are switched on by the settings and by the environment, and off wins from another place', async () => {
  const on = async (file: object, env?: Readonly<Record<string, string>>) =>
    (await load(file, env)).config.tools.toolsets.join();
  expect(await on({})).toBe('fs,exec,mcp,diagnostics');
  expect(await on({ toolsets: ['math'] })).toBe('fs,exec,math,mcp,diagnostics');
  expect(await on({}, { AGENT_TOOLSETS: 'time, math' })).toBe('fs,exec,time,math,mcp,diagnostics');
  expect(await on({ tools: { math: true, fs: false } })).toBe('exec,math,mcp,diagnostics');
  expect(await on({ toolsets: ['math'] }, { AGENT_TOOLS_MATH: 'false' })).toBe('fs,exec,mcp,diagnostics');
});

test('one place that switches a set on and off is told so', async () => {
  const { problems } = await load({ toolsets: ['math'], tools: { math: false } });
  expect(problems.map(({ message }) => message.replace(/^.*config\.json/, 'config.json'))).toEqual([
    'config.json: `toolsets` names math, and `tools.math` is false',
  ]);
  expect((await load({ toolsets: ['maths'] })).problems).toHaveLength(1);
});
