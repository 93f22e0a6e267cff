import { expect, test } from 'vitest';
import { overBudget } from '../../src/agent/budget.js';
import type { Event } from '../../src/core/event.js';

const price = { input: 1, output: 10 };
const user = (content: string): Event => ({ seq: 1, kind: 'user', content, data: null, createdAt: 0 });
const usage = (input_tokens: number, cost_usd: number): Event => ({ seq: 2, kind: 'usage', content: null, createdAt: 0, data: {
  response_id: 'r', provider: 'p', model: 'm', input_tokens, output_tokens: 0, cache_read_tokens: 0, cache_write_tokens: 0, cost_usd,
} });

test('a request whose projected cost would pass the limit is refused before it is sent', () => {
  const events = [user('x'.repeat(4000))];
  expect(overBudget(events, { maxCostUsd: 0.011, price, maxOutputTokens: 1000 })).toBeNull();
  expect(overBudget(events, { maxCostUsd: 0.0109, price, maxOutputTokens: 1000 })).toMatchObject({
    code: 'max_cost', message: 'Stopped at the spend limit of $0.0109: $0.0000 is spent and the next request may cost $0.0110.',
  });
});

test('what was spent counts, and reported tokens replace the estimate', () => {
  const events = [user('x'.repeat(400_000)), usage(1000, 0.5), user('yyyy')];
  expect(overBudget(events, { maxCostUsd: 0.501002, price, maxOutputTokens: 0 })).toBeNull();
  expect(overBudget(events, { maxCostUsd: 0.501, price, maxOutputTokens: 0 })).toMatchObject({ code: 'max_cost' });
});
