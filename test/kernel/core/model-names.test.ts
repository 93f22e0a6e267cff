import { expect, test } from 'vitest';
import schema from '../../../config/config.schema.json' with { type: 'json' };
import { effortLevels, newestOf, parseModelName, splitModelList } from '../../../src/kernel/core/model-names.js';

test('the levels of effort are those of the setting', () => {
  expect([...effortLevels]).toEqual(schema.properties.effort.enum);
});

const aliases = {
  fast: 'openai/gpt-5-mini:low',
  mine: 'fast',
  opus: 'anthropic/claude-opus-5',
  one: 'two',
  two: 'one',
};

test.each([
  ['sonnet:high', 'sonnet', 'high'],
  ['anthropic/claude-sonnet-5:max', 'anthropic/claude-sonnet-5', 'max'],
  ['qwen3:8b', 'qwen3:8b', null],
  ['ollama/qwen3:8b:low', 'ollama/qwen3:8b', 'low'],
  ['deepseek/deepseek-r1:free', 'deepseek/deepseek-r1:free', null],
  [':high', ':high', null],
  ['fast', 'openai/gpt-5-mini', 'low'],
  ['fast:high', 'openai/gpt-5-mini', 'high'],
  ['mine', 'openai/gpt-5-mini', 'low'],
  ['opus', 'anthropic/claude-opus-5', null],
  ['one', 'one', null],
  ['toString', 'toString', null],
])('%s is the model %s with the effort %s', (text, name, effort) => {
  expect(parseModelName(text, aliases)).toEqual({ name, effort });
});

test('a list of models is split at commas', () => {
  expect(splitModelList('a, openai/b ,,c')).toEqual(['a', 'openai/b', 'c']);
  expect(splitModelList(null)).toEqual([]);
});

test.each([
  [
    'opus',
    ['claude-opus-4-5-20251101', 'claude-opus-4-1-20250805', 'claude-3-opus-20240229'],
    'claude-opus-4-5-20251101',
  ],
  ['opus', ['claude-opus-4-5-20251101', 'claude-opus-4-5', 'claude-sonnet-5'], 'claude-opus-4-5'],
  ['sonnet', ['claude-3-7-sonnet-latest', 'claude-3-5-sonnet-20241022'], 'claude-3-7-sonnet-latest'],
  [
    'sonnet',
    ['anthropic/claude-sonnet-4.5', 'anthropic/claude-sonnet-4', 'anthropic/claude-sonnet-5:free'],
    'anthropic/claude-sonnet-4.5',
  ],
  [
    'haiku',
    ['us.anthropic.claude-haiku-4-5-20251001-v1:0', 'anthropic.claude-3-haiku-20240307-v1:0'],
    'us.anthropic.claude-haiku-4-5-20251001-v1:0',
  ],
  ['opus', ['claude-opus-4-1@20250805', 'claude-opus-4@20250514'], 'claude-opus-4-1@20250805'],
  [
    'gpt',
    ['gpt-5.2', 'gpt-5.10', 'gpt-5.10-mini', 'gpt-5.10-codex', 'gpt-5.10-pro', 'gpt-image-9', 'gpt-oss-120b', 'gpt-4o'],
    'gpt-5.10',
  ],
  ['gpt', ['gpt-6.1-terra', 'gpt-6.1-sol', 'gpt-6-astra'], 'gpt-6.1-sol'],
  ['gpt', ['gpt-5', 'gpt-5-2025-08-07', 'o3'], 'gpt-5'],
  [
    'gemini',
    ['gemini-2.5-flash', 'gemini-2.5-pro', 'gemini-2.5-pro-preview-tts', 'gemini-2.5-flash-lite'],
    'gemini-2.5-pro',
  ],
  [
    'gemini',
    ['google/gemini-3-pro-preview', 'gemini-embedding-001', 'gemini-3.1-flash-lite'],
    'google/gemini-3-pro-preview',
  ],
  ['gpt', ['claude-opus-5', 'o4-mini'], null],
])('the newest %s of %j is %s', (family, ids, newest) => {
  const prices: Readonly<Record<string, number>> = { 'gpt-6.1-sol': 2, 'gpt-6.1-terra': 1 };
  expect(newestOf(family, ids, (id) => prices[id] ?? null)).toBe(newest);
  expect(newestOf(family, ids.toReversed(), (id) => prices[id] ?? null)).toBe(newest);
});
