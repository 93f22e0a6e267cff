import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import schema from '../../../config/config.schema.json' with { type: 'json' };
import { secretVariables } from '../../../src/kernel/secrets/known-secrets.js';
import {
  builtInPresets,
  keyNames,
  mergePresets,
  type Preset,
  resolveProvider,
  suggestedProvider,
} from '../../../src/kernel/providers/catalog.js';
import { chooseProvider } from '../../../src/kernel/providers/discover.js';
import { isWireName, wireNames } from '../../../src/kernel/providers/wires/known-wires.js';

const sources = readdirSync('src', { recursive: true, encoding: 'utf8' })
  .filter((name) => /\.tsx?$/.test(name))
  .map((name) => ({ name, text: readFileSync(join('src', name), 'utf8') }));

function naming(words: readonly string[], isAllowed: (name: string) => boolean): readonly string[] {
  return sources
    .filter(({ name }) => !isAllowed(name))
    .flatMap(({ name, text }) => words.filter((word) => text.includes(word)).map((word) => `${name}: ${word}`));
}

/** Every list of allowed values in a schema. */
function enums(node: unknown): readonly (readonly unknown[])[] {
  if (typeof node !== 'object' || node === null) return [];
  const own = 'enum' in node && Array.isArray(node.enum) ? [node.enum as readonly unknown[]] : [];
  return [...own, ...Object.values(node).flatMap(enums)];
}

test('no source but the wires, and the types made from the schema, names a wire', () => {
  const isAllowed = (name: string): boolean =>
    name.startsWith('kernel/providers/wires/') || name === 'kernel/config/settings-values.ts';
  expect(naming(wireNames, isAllowed)).toEqual([]);
});

test('no source names the variable of a provider key', () => {
  const variables = Object.values(builtInPresets).flatMap(keyNames);
  expect(variables.length).toBeGreaterThan(10);
  expect(naming(variables, () => false)).toEqual([]);
});

test('the schema of the settings allows the wires there are, in one place', () => {
  expect(enums(schema).filter((list) => list.some((item) => isWireName(String(item))))).toEqual([wireNames]);
});

test('every preset speaks a wire there is', () => {
  const apis = Object.values(builtInPresets).flatMap(({ api, other_host_api: other }) => [api, other ?? api]);
  expect(apis.filter((api) => api !== 'offline' && !isWireName(api))).toEqual([]);
});

test('a preset that is added as data is chosen, resolved, hidden and suggested', async () => {
  const planted: Preset = {
    label: 'Planted',
    api: 'openai-chat',
    base_url: 'https://planted.example/v1',
    key_env: 'PLANTED_CREDENTIAL',
    default_model: 'large',
    suggested: true,
  };
  const presets = { planted, ...builtInPresets };
  const env = { PLANTED_CREDENTIAL: 'planted-key-1' };
  const resolved = resolveProvider({ env, presets, model: 'planted/small' });
  const unknown = resolveProvider({ env, presets, name: 'plantet' });
  expect([
    await chooseProvider({ env, presets }),
    resolved.ok && [resolved.ref, resolved.endpoint.key],
    unknown.ok ? '' : unknown.problem.hint,
    secretVariables(env, undefined, presets),
    suggestedProvider(presets),
  ]).toEqual([
    { provider: 'planted', model: null },
    [
      { provider: 'planted', api: 'openai-chat', model: 'small', baseUrl: 'https://planted.example/v1' },
      'planted-key-1',
    ],
    expect.stringContaining('planted'),
    ['PLANTED_CREDENTIAL'],
    { name: 'planted', key: 'PLANTED_CREDENTIAL', model: 'large' },
  ]);
});

test('a wire that is not in the table is refused, and the hint names those that are', () => {
  const userProviders = { own: { api: 'telepathy', base_url: 'https://own.example', default_model: 'm' } };
  const resolved = resolveProvider({ env: {}, presets: mergePresets({}, {}), userProviders, name: 'own' });
  expect(resolved.ok ? null : [resolved.problem.kind, resolved.problem.hint]).toEqual([
    'bad_api',
    `Known: ${wireNames.join(', ')}`,
  ]);
});
