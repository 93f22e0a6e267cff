import { expect, test } from 'vitest';
import { createUsageMeter } from '../../../src/kernel/console/usage-meter.js';
import type { AgentEvent } from '../../../src/kernel/core/session-port.js';
import type { Json } from '../../../src/kernel/core/json.js';

const row = (kind: string, data: Json = null): AgentEvent => ({
  type: 'event',
  event: { seq: 1, kind, content: '', data, createdAt: 0 },
});
const usage = (costUsd: number): AgentEvent =>
  row('usage', {
    response_id: 'r',
    provider: 'p',
    model: 'm',
    input_tokens: 3,
    output_tokens: 2,
    cache_read_tokens: 0,
    cache_write_tokens: 0,
    cost_usd: costUsd,
  });
const asked: AgentEvent = { type: 'request_started' };

test('an answer whose usage nobody reported is seen once, and leaves the cost unknown', () => {
  const meter = createUsageMeter();
  expect([asked, usage(0.5), row('assistant')].map((event) => meter.see(event))).toEqual([false, false, false]);
  expect(meter.sum()).toMatchObject({ input_tokens: 3, cost_usd: 0.5 });
  expect([asked, row('tool_call'), row('tool_call')].map((event) => meter.see(event))).toEqual([false, true, false]);
  expect([asked, row('assistant'), row('tool_call')].map((event) => meter.see(event))).toEqual([false, true, false]);
  expect(meter.sum()).toMatchObject({ input_tokens: 3, output_tokens: 2, cost_usd: null });
});

test('a request that gave nothing owes nothing', () => {
  const meter = createUsageMeter();
  expect([asked, row('error'), asked, usage(0), row('assistant')].map((event) => meter.see(event))).toEqual([
    false,
    false,
    false,
    false,
    false,
  ]);
});
