import { expect, test } from 'vitest';
import { findModel, knownModels } from '../../src/providers/models.js';
import { costUsd } from '../../src/providers/pricing.js';

test.each([
  ['openai', 'gpt-5.2', 1.75],
  ['openai', 'gpt-5.2-2025-12-11', 1.75],
  ['anthropic', 'claude-sonnet-4-5-20250929', 3],
  ['openrouter', 'anthropic/claude-sonnet-4.5', 3],
  ['openrouter', 'x-ai/grok-4', 3],
  ['openrouter', 'anthropic/claude-sonnet-4.5:free', undefined],
  ['openai', 'mock-model', undefined],
  ['ollama', 'qwen3:8b', undefined],
  ['openai', 'gpt-5.2-something-new', undefined],
])('%s/%s costs %s per million input tokens', (provider, model, usd) => {
  expect(findModel(provider, model)?.price?.input).toBe(usd);
});

test('the user\'s own table wins, field by field', () => {
  const own = { 'openai/gpt-5.2': { input_usd: 1 }, house: { context_window: 9, input_usd: 2, output_usd: 3 } };
  expect(findModel('openai', 'gpt-5.2', own)).toEqual({ contextWindow: 400_000, maxOutputTokens: 128_000, price: { input: 1, output: 14, cacheRead: 0.175 } });
  expect(findModel('lmstudio', 'house', own)).toEqual({ contextWindow: 9, maxOutputTokens: null, price: { input: 2, output: 3 } });
});

test('a request costs its four kinds of tokens, each at its price', () => {
  const usage = { input: 1000, cacheRead: 10_000, cacheWrite: 2000, output: 500 };
  expect(costUsd(usage, { input: 3, cacheRead: 0.3, cacheWrite: 3.75, output: 15 })).toBeCloseTo(0.021, 10);
  expect(costUsd(usage, { input: 2, output: 10 })).toBeCloseTo(0.031, 10);
  expect(costUsd(usage, null)).toBeNull();
});

test('a long prompt is charged at the long rates as a whole', () => {
  const price = findModel('google', 'gemini-2.5-pro')?.price ?? null;
  expect(costUsd({ input: 100_000, cacheRead: 150_000, cacheWrite: 0, output: 1000 }, price)).toBeCloseTo(0.25 + 0.0375 + 0.015, 10);
  expect(costUsd({ input: 100_000, cacheRead: 50_000, cacheWrite: 0, output: 1000 }, price)).toBeCloseTo(0.125 + 0.00625 + 0.01, 10);
});

test('every entry of the table has a window, and both prices or none', () => {
  const wrong = Object.entries(knownModels).filter(([, entry]) => entry.context_window === undefined || (entry.input_usd === undefined) !== (entry.output_usd === undefined));
  expect(wrong).toEqual([]);
});
