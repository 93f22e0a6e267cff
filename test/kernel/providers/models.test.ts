import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { costUsd, findModel, knownModels, modelSources } from '../../../src/kernel/providers/models.js';
import { modelFamilies, parseModelName } from '../../../src/kernel/core/model-names.js';
import { builtInPresets } from '../../../src/kernel/providers/catalog.js';

test.each([
  ['openai', 'gpt-5.2', 1.75],
  ['openai', 'gpt-5.2-2025-12-11', 1.75],
  ['anthropic', 'claude-sonnet-4-5-20250929', 3],
  ['openrouter', 'anthropic/claude-sonnet-4.5', 3],
  ['openrouter', 'x-ai/grok-4', 3],
  ['openrouter', 'anthropic/claude-sonnet-4.5:free', undefined],
  ['openai', 'mock-model', undefined],
  ['azure', 'gpt-5.2', 1.75],
  ['vertex', 'claude-sonnet-4-5@20250929', 3],
  ['vertex', 'gemini-2.5-pro', 1.25],
  ['bedrock', 'global.anthropic.claude-sonnet-4-5-20250929-v1:0', 3],
  ['bedrock', 'us.anthropic.claude-sonnet-4-5-20250929-v1:0', 3.3],
  ['bedrock', 'us.anthropic.claude-opus-4-1-20250805-v1:0', 15],
  ['bedrock', 'us.anthropic.claude-sonnet-5', 2.2],
  ['bedrock', 'us.amazon.nova-pro-v1:0', undefined],
  ['azure', 'my-deployment', undefined],
  ['ollama', 'qwen3:8b', undefined],
  ['openai', 'gpt-5.2-something-new', undefined],
])('%s/%s costs %s per million input tokens', (provider, model, usd) => {
  expect(findModel(provider, model)?.price?.input).toBe(usd);
});

test("the user's own table wins, field by field", () => {
  const own = { 'openai/gpt-5.2': { input_usd: 1 }, house: { context_window: 9, input_usd: 2, output_usd: 3 } };
  expect(findModel('openai', 'gpt-5.2', own)).toEqual({
    contextWindow: 400_000,
    maxOutputTokens: 128_000,
    price: { input: 1, output: 14, cacheRead: 0.175 },
    webSearchUsd: 0.01,
    efforts: ['none', 'low', 'medium', 'high', 'xhigh'],
    vision: true,
    retired: false,
  });
  expect(findModel('lmstudio', 'house', own)).toEqual({
    contextWindow: 9,
    maxOutputTokens: null,
    price: { input: 2, output: 3 },
    webSearchUsd: null,
    efforts: null,
    vision: null,
    retired: false,
  });
});

test('a request costs its four kinds of tokens, each at its price', () => {
  const usage = { input: 1000, cacheRead: 10_000, cacheWrite: 2000, output: 500 };
  expect(costUsd(usage, { input: 3, cacheRead: 0.3, cacheWrite: 3.75, output: 15 })).toBeCloseTo(0.021, 10);
  expect(costUsd(usage, { input: 2, output: 10 })).toBeCloseTo(0.031, 10);
  expect(costUsd(usage, null)).toBeNull();
});

test('a long prompt is charged at the long rates as a whole', () => {
  const price = findModel('google', 'gemini-2.5-pro')?.price ?? null;
  expect(costUsd({ input: 100_000, cacheRead: 150_000, cacheWrite: 0, output: 1000 }, price)).toBeCloseTo(
    0.25 + 0.0375 + 0.015,
    10,
  );
  expect(costUsd({ input: 100_000, cacheRead: 50_000, cacheWrite: 0, output: 1000 }, price)).toBeCloseTo(
    0.125 + 0.00625 + 0.01,
    10,
  );
});

test('every entry of the table has a window, and both prices or none', () => {
  const wrong = Object.entries(knownModels).filter(
    ([, entry]) =>
      entry.context_window === undefined || (entry.input_usd === undefined) !== (entry.output_usd === undefined),
  );
  expect(wrong).toEqual([]);
});

const root = new URL('../../../', import.meta.url);

/** The models that a text names, as `provider/model`, without placeholders and families. Those of local servers and of the embedded
 * provider have no facts. */
function namedIn(path: string): readonly string[] {
  const providers = Object.entries(builtInPresets)
    .filter(([, { local, api }]) => local !== true && api !== 'offline')
    .map(([name]) => name);
  const names = readFileSync(new URL(path, root), 'utf8').matchAll(
    new RegExp(`(?<![\\w/.@-])(?:${providers.join('|')})/[\\w./:-]*\\w`, 'g'),
  );
  return [...names]
    .map(([name]) => parseModelName(name).name)
    .filter((name) => !/\.(?:md|json|ts|html?)$|\/model$/.test(name))
    .filter((name) => !modelFamilies.includes(name.slice(name.indexOf('/') + 1)));
}

const shown = [
  'README.md',
  ...readdirSync(new URL('docs/', root))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
  'src/kernel/console/options.ts',
  'src/cli/run.ts',
  'src/frontends/repl/repl.ts',
];
const defaults = Object.entries(builtInPresets).flatMap(([name, preset]) =>
  preset.default_model === null || preset.api === 'offline' ? [] : [`${name}/${preset.default_model}`],
);

test('every default model, and every model that a page, the help or the greeting names, has facts', () => {
  const named = [...new Set([...defaults, ...shown.flatMap(namedIn)])];
  expect(shown.flatMap(namedIn).length).toBeGreaterThan(3);
  const facts = named.map(
    (name) => [name, findModel(name.slice(0, name.indexOf('/')), name.slice(name.indexOf('/') + 1))] as const,
  );
  expect(
    facts
      .filter(([name]) => !name.startsWith('azure/'))
      .filter(([, known]) => !known?.contextWindow || known.price === null || known.retired)
      .map(([name]) => name),
  ).toEqual([]);
});

test('the facts say where they come from and of when they are', () => {
  expect(modelSources.map(({ package: name, version, date }) => [name, version, date])).toEqual([
    ['@earendil-works/pi-ai', expect.stringMatching(/^\d+\.\d+\.\d+$/), expect.stringMatching(/^\d{4}-\d{2}-\d{2}$/)],
    ['@pydantic/genai-prices', expect.stringMatching(/^\d+\.\d+\.\d+$/), expect.stringMatching(/^\d{4}-\d{2}-\d{2}$/)],
  ]);
});
