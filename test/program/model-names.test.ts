import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { startVendor, type VendorServer } from '../kernel/providers/vendor-server.js';
import { agent, place, repl } from './inside.js';
import type { Place } from '../e2e/program.js';

const open: VendorServer[] = [];

afterEach(async () => {
  for (const server of open.splice(0)) await server.close();
});

async function vendor(...habits: Parameters<typeof startVendor>): Promise<VendorServer> {
  const server = await startVendor(...habits);
  open.push(server);
  return server;
}

function configure(at: Place, config: unknown): void {
  const folder = join(at.home, '.agent');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'config.json'), JSON.stringify(config));
}

const claude = ['claude-opus-4-1-20250805', 'claude-opus-4-5-20251101', 'claude-sonnet-4-6', 'claude-sonnet-4-5'];

/** Both vendors, connected, each with a list of models. */
async function connected(
  models: { readonly anthropic?: readonly string[] | null; readonly openai?: readonly string[] | null } = {},
) {
  const anthropic = await vendor({
    api: 'anthropic-messages',
    models: models.anthropic === undefined ? claude : models.anthropic,
  });
  const openai = await vendor({ api: 'openai-chat', models: models.openai ?? ['gpt-5.2', 'gpt-5.2-mini', 'gpt-4.1'] });
  const at = place();
  Object.assign(at.env, {
    OPENAI_API_KEY: 'test-key-openai-1',
    ANTHROPIC_API_KEY: 'test-key-anthropic-1',
    ANTHROPIC_BASE_URL: anthropic.url,
    OPENAI_BASE_URL: `${openai.url}/v1`,
  });
  const asked = (): readonly unknown[] => [...anthropic.bodies, ...openai.bodies].map(({ model }) => model);
  return { at, anthropic, openai, asked };
}

test.each([
  ['opus', 'claude-opus-4-5-20251101'],
  ['anthropic/sonnet', 'claude-sonnet-4-6'],
  ['gpt', 'gpt-5.2'],
])('-m %s asks the newest model that the provider lists, and says which', async (name, model) => {
  const { at, asked } = await connected();
  const { code, stderr } = await agent(at, ['-m', name, '-p', 'hello']);
  expect([code, asked()]).toEqual([0, [model]]);
  expect(stderr).toContain(`${name.replace('anthropic/', '')} is `);
  expect(stderr).toContain(model);
});

test('without a list of models the table decides, and what the server calls by that name is meant', async () => {
  const table = await connected({ anthropic: null });
  expect((await agent(table.at, ['-m', 'opus', '-p', 'hello'])).code).toBe(0);
  expect(String(table.asked()[0])).toMatch(/^claude-opus-\d/);
  const proxy = await connected({ openai: ['gpt', 'gpt-5.2'] });
  expect((await agent(proxy.at, ['-m', 'openai/gpt', '-p', 'hello'])).code).toBe(0);
  expect(proxy.asked()).toEqual(['gpt']);
});

test('a family that the named provider lacks, an unknown alias and a misspelled name are errors', async () => {
  const { at, asked } = await connected();
  const lacking = await agent(at, ['-m', 'openai/opus', '-p', 'hello']);
  expect([lacking.code, lacking.stderr]).toEqual([
    2,
    expect.stringContaining('OpenAI has no model of the family opus'),
  ]);
  expect(lacking.stderr).toContain('<provider>/opus');
  const wrong = await agent(at, ['-m', 'sonet', '-p', 'hello']);
  expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('there is no model or alias `sonet`')]);
  expect(wrong.stderr).toContain('Did you mean sonnet?');
  expect(asked()).toEqual([]);
});

test('an alias stands for a model with its effort, and the command line overrides that effort', async () => {
  const { at, openai, asked } = await connected();
  configure(at, { models: { aliases: { fast: 'openai/gpt-5.2:low', quick: 'fast' } }, model: 'quick' });
  const quirks = ['--set', 'providers={"openai":{"quirks":{"effort":"reasoning_effort"}}}'];
  await agent(at, ['-p', 'hello']);
  await agent(at, [...quirks, '-m', 'fast:high', '-p', 'hello']);
  await agent(at, [...quirks, '-m', 'fast:high', '--effort', 'medium', '-p', 'hello']);
  await agent(at, [...quirks, '-m', 'fast', '-p', 'hello']);
  expect(asked()).toEqual(['gpt-5.2', 'gpt-5.2', 'gpt-5.2', 'gpt-5.2']);
  expect(openai.bodies.slice(1).map(({ reasoning_effort: effort }) => effort)).toEqual(['high', 'medium', 'low']);
});

test('a local id with a colon stays whole', async () => {
  const server = await vendor({ api: 'openai-chat', models: ['qwen3:8b'] });
  const at = place();
  const { code } = await agent(at, ['-p', 'hello', '-m', 'ollama/qwen3:8b'], {
    env: { OLLAMA_BASE_URL: `${server.url}/v1` },
  });
  expect([code, server.bodies.map(({ model }) => model)]).toEqual([0, ['qwen3:8b']]);
});

test('/model takes families and efforts, and keeps both', async () => {
  const { at, asked, anthropic } = await connected();
  const { stdout } = await repl(
    at,
    ['-m', 'openai/gpt-4.1'],
    [
      ['/model sonnet:high', 'Now using anthropic/claude-sonnet-4-6'],
      ['hello', 'End of script.'],
    ],
  );
  expect(stdout).toContain('with effort high (sonnet). Saved as the default.');
  expect(asked()).toEqual(['claude-sonnet-4-6']);
  expect(JSON.stringify(anthropic.bodies[0]?.output_config)).toBe('{"effort":"high"}');
});

test('fallback models are tried in order', async () => {
  const { at, openai } = await connected({ openai: ['gpt-5.2'] });
  const env = { ANTHROPIC_BASE_URL: 'http://127.0.0.1:9' };
  const args = ['--set', 'http.max_retries=0', '-m', 'anthropic/claude-opus-4-5', '-p', 'hello'];
  const { code, stdout, stderr } = await agent(at, [...args, '--fallback-model', 'claude-haiku-4-5, openai/gpt'], {
    env,
  });
  expect([code, stdout.trim()]).toEqual([0, 'End of script.']);
  expect(openai.bodies.map(({ model }) => model)).toEqual(['gpt-5.2']);
  expect(stderr).toContain('anthropic/claude-haiku-4-5 continues this turn.');
  expect(stderr).toContain('openai/gpt-5.2 continues this turn.');
});

test('a fallback model has the effort in its name, and the session keeps its own', async () => {
  const { at, openai } = await connected({ openai: ['gpt-5.2'] });
  const quirks = [
    '--set',
    'providers={"openai":{"quirks":{"effort":"reasoning_effort"}}}',
    '--set',
    'http.max_retries=0',
  ];
  const line = [...quirks, '-m', 'anthropic/claude-opus-4-5', '--effort', 'high', '-p', 'hello'];
  const env = { ANTHROPIC_BASE_URL: 'http://127.0.0.1:9' };
  await agent(at, [...line, '--fallback-model', 'openai/gpt:low'], { env });
  await agent(at, [...line, '--fallback-model', 'openai/gpt'], { env });
  expect(openai.bodies.map(({ reasoning_effort: effort }) => effort)).toEqual(['low', 'high']);
});
