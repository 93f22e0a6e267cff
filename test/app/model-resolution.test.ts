import { createExtraDirectories } from '../../src/kernel/core/directories.js';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { allowance } from '../../src/kernel/agent/budget.js';
import { openSecretKey, plainGuard } from '../../src/kernel/secrets/known-secrets.js';
import { createSpendLimit } from '../../src/app/spend-limit.js';
import {
  chooseModel,
  configuredModel,
  resolveModel,
  resolveReady,
  unpricedModel,
} from '../../src/app/model-resolution.js';
import type { Settings } from '../../src/kernel/console/run-settings.js';
import { storedKeys } from '../kernel/secrets/stored.js';
import { loadConfig } from '../../src/kernel/config/load.js';
import { builtInPresets, keyNames } from '../../src/kernel/providers/catalog.js';
import { projects } from '../../src/app/project-files.js';

const keys = { OPENAI_API_KEY: 'k-openai', ANTHROPIC_API_KEY: 'k-anthropic', DEEPSEEK_API_KEY: 'k-deepseek' };
const proxy = 'http://127.0.0.1:9/v1';

interface Given {
  readonly file?: unknown;
  readonly env?: Readonly<Record<string, string>>;
  readonly flags?: Readonly<Record<string, unknown>>;
  readonly set?: readonly string[];
}

async function setupOf({ file = {}, env = {}, flags = {}, set = [] }: Given): Promise<Settings> {
  const home = mkdtempSync(join(tmpdir(), 'agent-model-'));
  onTestFinished(() => {
    rmSync(home, { recursive: true, force: true });
  });
  mkdirSync(join(home, 'agent'));
  writeFileSync(join(home, 'agent', 'config.json'), JSON.stringify(file));
  const all = { ...keys, ...env, AGENT_HOME: join(home, 'agent') };
  const loaded = await loadConfig({ env: all, cwd: home, home, flags, set });
  expect(loaded.problems).toEqual([]);
  return {
    cwd: home,
    env: all,
    home,
    loaded,
    config: loaded.config,
    projects,
    commandNames: [],
    directories: createExtraDirectories([]),
    notices: [],
    log: () => undefined,
    secrets: [],
    keys: { ...(await storedKeys(loaded.config.files.keys)), ofInstallation: openSecretKey(null) },
    guard: plainGuard(all, []),
    testMode: false,
    ephemeral: false,
  };
}

/** Where the first request goes, and where one after `/model` to another provider does. */
const cases: readonly (readonly [
  name: string,
  given: Given,
  first: string,
  switched: readonly (readonly [model: string, to: string])[],
])[] = [
  [
    'a flag names both',
    { flags: { base_url: proxy, model: 'openai/m' } },
    `openai m ${proxy}`,
    [
      ['anthropic/claude', 'anthropic claude https://api.anthropic.com'],
      ['openai/n', `openai n ${proxy}`],
      ['n', `openai n ${proxy}`],
    ],
  ],
  [
    'a file names provider and URL',
    { file: { provider: 'deepseek', base_url: proxy } },
    `deepseek deepseek-flash ${proxy}`,
    [
      ['openai/x', 'openai x https://api.openai.com/v1'],
      ['deepseek/y', `deepseek y ${proxy}`],
    ],
  ],
  [
    "a flag for another provider than the file's",
    { file: { provider: 'deepseek', base_url: proxy }, flags: { model: 'anthropic/claude' } },
    'anthropic claude https://api.anthropic.com',
    [['deepseek/y', `deepseek y ${proxy}`]],
  ],
  [
    "a file's URL alone, the model on the command line",
    { file: { base_url: proxy }, flags: { model: 'anthropic/claude' } },
    `anthropic claude ${proxy}`,
    [['openai/x', 'openai x https://api.openai.com/v1']],
  ],
  [
    'a URL in the environment',
    { env: { AGENT_BASE_URL: proxy }, set: ['model=deepseek/z'] },
    `deepseek z ${proxy}`,
    [['openai/x', 'openai x https://api.openai.com/v1']],
  ],
  [
    "a URL alone is OpenAI's",
    { flags: { base_url: proxy } },
    `openai gpt-5.2 ${proxy}`,
    [['anthropic/claude', 'anthropic claude https://api.anthropic.com']],
  ],
  [
    'a URL with --provider: the whole of the model is the id',
    { flags: { base_url: proxy, provider: 'openai', model: 'anthropic/claude' } },
    `openai anthropic/claude ${proxy}`,
    [],
  ],
  [
    "a provider's own variable",
    { env: { DEEPSEEK_BASE_URL: proxy }, flags: { model: 'deepseek/z' } },
    `deepseek z ${proxy}`,
    [['openai/x', 'openai x https://api.openai.com/v1']],
  ],
];

test.each(cases)('a base URL belongs to one provider: %s', async (_name, given, first, switched) => {
  const settings = await setupOf(given);
  const { ref, endpoint } = await resolveReady(settings, configuredModel(settings));
  expect(`${ref.provider} ${ref.model} ${endpoint.baseUrl}`).toBe(first);
  for (const [model, to] of switched) {
    const resolved = await resolveModel(settings, model, ref);
    expect(resolved.ok && `${resolved.ref.provider} ${resolved.ref.model} ${resolved.endpoint.baseUrl}`).toBe(to);
    expect(resolved.ok && resolved.endpoint.key).toBe(
      keys[`${to.split(' ')[0]?.toUpperCase() ?? ''}_API_KEY` as keyof typeof keys],
    );
  }
});

test('provider_api stays with its provider, extra_body goes to all where none is named', async () => {
  const named = await setupOf({ file: { provider: 'openai', provider_api: 'openai-chat', extra_body: { seed: 1 } } });
  const other = await resolveModel(named, 'anthropic/claude', { provider: 'openai', api: 'openai-chat', model: 'm' });
  expect(other.ok && [other.ref.api, other.endpoint.extraBody]).toEqual(['anthropic-messages', undefined]);
  const own = await resolveReady(named, configuredModel(named));
  expect([own.ref.api, own.endpoint.extraBody]).toEqual(['openai-chat', { seed: 1 }]);
  const unnamed = await setupOf({ file: { extra_body: { seed: 1 } } });
  const any = await resolveModel(unnamed, 'deepseek/x', { provider: 'openai', api: 'openai-chat', model: 'm' });
  expect(any.ok && any.endpoint.extraBody).toEqual({ seed: 1 });
});

test('a limit of one dollar lets every preset start with its default model', async () => {
  const presets = Object.entries(builtInPresets).filter(
    ([, { default_model: model, api }]) => model !== null && api !== 'offline',
  );
  const past = { contextTokens: 3000, spentUsd: 0 };
  for (const [name, preset] of presets) {
    const settings = await setupOf({
      flags: { provider: name, max_cost_usd: 1 },
      env: {
        ...Object.fromEntries(keyNames(preset).map((key) => [key, 'k'])),
        ...{ AWS_REGION: 'us-east-1', GOOGLE_CLOUD_PROJECT: 'p', AZURE_OPENAI_ENDPOINT: 'https://r.openai.azure.com' },
      },
    });
    const { ref } = await resolveReady(settings, configuredModel(settings));
    const budget = createSpendLimit(settings.config).budget(ref);
    expect(budget !== null && !('code' in budget) && allowance(past, budget, undefined), name).toMatchObject({
      allowed: true,
    });
  }
});

test('a model without a known price is named, also one that the first key decides; the embedded one costs nothing', async () => {
  const name = async (given: Given): Promise<string | null> => unpricedModel(await setupOf(given));
  const price = { models: { 'openai/mine': { input_usd: 1, output_usd: 2 } } };
  expect([
    await name({ flags: { model: 'openai/mine' } }),
    await name({ flags: { model: 'openai/mine' }, file: price }),
    await name({ flags: { provider: 'openai', model: 'mine' } }),
    await name({ flags: { model: 'openai/gpt-5.2' } }),
    await name({ flags: { model: 'offline/oven-reminder' } }),
    await name({ flags: { model: 'unheard' } }),
  ]).toEqual(['openai/mine', null, 'openai/mine', null, null, expect.stringMatching(/\/unheard$/)]);
});

test('a session asks its own model, a new one the model in use, and without either the configured one', async () => {
  const settings = await setupOf({ file: { model: 'anthropic/claude' } });
  const row = { id: 's', parentId: null, cwd: '/', title: null, createdAt: 0, updatedAt: 0 };
  const recorded = { ...row, provider: 'deepseek', model: 'z', api: 'openai-chat', baseUrl: proxy };
  const events = [{ seq: 1, kind: 'user', content: 'x', data: null, createdAt: 0 }];
  const inUse = { provider: 'openai', model: 'm', api: 'openai-responses', baseUrl: proxy };
  const choose = async (restored: typeof events, ref?: typeof inUse): Promise<unknown> =>
    await chooseModel(settings, { row: recorded, restored }, () => Promise.resolve(restored), ref);
  const configured = { provider: null, model: 'anthropic/claude' };
  expect(await choose(events)).toEqual({ provider: 'deepseek', model: 'z', api: 'openai-chat', baseUrl: proxy });
  expect(await choose([], inUse)).toEqual(inUse);
  expect(await choose([], { ...inUse, api: 'offline', model: 'offline' })).toEqual(configured);
  expect(await choose([])).toEqual(configured);
});
