import { expect, test } from 'vitest';
import { allowance, contextTokens, money, spendingWarning, spentUsd } from '../../../src/kernel/agent/budget.js';
import type { Event } from '../../../src/kernel/core/event.js';

const price = { input: 1, output: 10 };
const user = (content: string): Event => ({ seq: 1, kind: 'user', content, data: null, createdAt: 0 });
const usage = (input_tokens: number, cost_usd: number): Event => ({
  seq: 2,
  kind: 'usage',
  content: null,
  createdAt: 0,
  data: {
    response_id: 'r',
    provider: 'p',
    model: 'm',
    input_tokens,
    output_tokens: 0,
    cache_read_tokens: 0,
    cache_write_tokens: 0,
    cost_usd,
  },
});

/** A first message with which a request has so many tokens. */
const sized = (tokens: number): Event => {
  const least = ['""', '[]', JSON.stringify([{ role: 'user', seq: 1, content: '' }])].map((text) => text.length);
  const [system = 0, tools = 0, message = 0] = least;
  const own = tokens - Math.ceil(system / 4) - Math.ceil(tools / 4);
  return user('x'.repeat(own * 4 - message));
};

const past = (events: readonly Event[]) => ({ contextTokens: contextTokens(events), spentUsd: spentUsd(events) });

const free = { allowed: true, maxOutputTokens: null, isShort: false };

test('the remaining money limits an answer, and a request is refused only where a small answer does not fit', () => {
  const events = [sized(1000)];
  const of = (maxCostUsd: number, limit?: number): unknown =>
    allowance(past(events), { maxCostUsd, price, maxOutputTokens: 100_000, isEnforced: true }, limit);
  expect([of(2), of(1.001), of(1)]).toEqual([free, free, { allowed: true, maxOutputTokens: 99_900, isShort: true }]);
  expect([of(0.011), of(0.011, 1000), of(0.011, 2000)]).toEqual([
    { allowed: true, maxOutputTokens: 1000, isShort: true },
    free,
    { allowed: true, maxOutputTokens: 1000, isShort: true },
  ]);
  expect([of(0.00356), of(0.00355)]).toMatchObject([
    { allowed: true, maxOutputTokens: 256 },
    {
      allowed: false,
      fault: {
        code: 'max_cost',
        message:
          'The spend limit of $0.00355 is too small: a request with an answer of 256 tokens costs about $0.00356.',
      },
    },
  ]);
  expect([of(0.0011, 10), of(0.00109, 10)]).toMatchObject([free, { allowed: false }]);
});

test('spent money counts, reported tokens replace the estimate, and the highest rate is assumed', () => {
  const events = [user('x'.repeat(400_000)), usage(1000, 0.5), user('yyyy')];
  const of = (maxCostUsd: number, more: object = {}): unknown =>
    allowance(
      past(events),
      { maxCostUsd, price: { ...price, ...more }, maxOutputTokens: 100, isEnforced: true },
      undefined,
    );
  expect([of(0.502011), of(0.50201)]).toMatchObject([free, { allowed: false }]);
  expect(of(0.5)).toMatchObject({
    allowed: false,
    fault: {
      message:
        'Stopped at the spend limit of $0.50: $0.50 is spent, and the next request would cost at least $0.00201.',
    },
  });
  expect([of(0.502264, { cacheWrite: 1.25 }), of(0.50226, { cacheWrite: 1.25 })]).toMatchObject([
    { allowed: true },
    { allowed: false },
  ]);
  expect([
    of(0.504, { long: { aboveTokens: 1000, input: 2, output: 20 } }),
    of(0.504, { long: { aboveTokens: 1011, input: 2, output: 20 } }),
  ]).toMatchObject([{ allowed: false }, { allowed: true }]);
});

test('what has come since the last request counts as it is sent: a long result is cut, and a command of the user is not sent', () => {
  const event = (seq: number, kind: string, content: string, data: unknown): Event => ({
    ...{ seq, kind, content, data },
    createdAt: 0,
  });
  const output = JSON.stringify({ output: 'x'.repeat(1_000_000) });
  const since = [
    event(3, 'tool_call', 'bash', { id: 'c', function: { name: 'bash', arguments: '{}' }, response_id: 'r' }),
    event(4, 'tool_result', '', { tool_call_id: 'c', name: 'bash', output, success: true, duration_ms: 1 }),
    event(5, 'shell', 'y'.repeat(1_000_000), { command: 'seq 1 9', exit_code: 0 }),
  ];
  const catalogue = event(1, 'tools', '', { tools: [], settings: { model_output_size: 4000 } });
  const cut = contextTokens([catalogue, usage(1000, 0), ...since]);
  expect([cut > 2000, cut < 2200]).toEqual([true, true]);
  const unset = contextTokens([usage(1000, 0), ...since]);
  expect([unset > 9100, unset < 9500]).toEqual([true, true]);
});

test('where nothing limits an answer, the assumed length is sent, so that the projection holds', () => {
  expect(
    allowance(past([user('hi')]), { maxCostUsd: 9, price, maxOutputTokens: 8192, isEnforced: false }, undefined),
  ).toEqual({
    allowed: true,
    maxOutputTokens: 8192,
    isShort: false,
  });
  expect(
    allowance(past([user('hi')]), { maxCostUsd: 9, price, maxOutputTokens: 8192, isEnforced: false }, 500),
  ).toEqual(free);
});

test('a warning is given once at 80 and once at 95% of the limit', () => {
  const steps = [0, 0.79, 0.8, 0.9, 0.96, 0.99];
  expect(steps.slice(1).map((after, at) => spendingWarning(1, steps[at] ?? 0, after))).toEqual([
    null,
    '80% of the spend limit of $1.00 is used: $0.80.',
    null,
    '95% of the spend limit of $1.00 is used: $0.96.',
    null,
  ]);
  expect(spendingWarning(1, 0, 2)).toBe('95% of the spend limit of $1.00 is used: $2.00.');
});

test.each([
  [0, '$0.00'],
  [5, '$5.00'],
  [1.7934, '$1.7934'],
  [0.5, '$0.50'],
  [0.0109, '$0.0109'],
  [0.000042, '$0.000042'],
  [12.345, '$12.35'],
  [0.00005, '$0.00005'],
  [120, '$120.00'],
])('%f is %s', (usd, text) => {
  expect(money(usd)).toBe(text);
});
