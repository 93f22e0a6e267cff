import { expect, test } from 'vitest';
import { rateLimitsIn } from '../../../../src/kernel/providers/wires/rate-limits.js';

const now = Date.UTC(2026, 10, 20, 12, 0, 0);

test('limits in the headers of an answer are read in the forms of Anthropic, OpenAI and their plans', () => {
  const headers = {
    'anthropic-ratelimit-input-tokens-limit': '50000',
    'anthropic-ratelimit-input-tokens-remaining': '49000',
    'anthropic-ratelimit-input-tokens-reset': '2026-11-20T12:00:30Z',
    'anthropic-ratelimit-unified-5h-utilization': '0.42',
    'anthropic-ratelimit-unified-5h-reset': String(now / 1000 + 3600),
    'anthropic-ratelimit-unified-status': 'allowed',
    'x-ratelimit-limit-requests': '60',
    'x-ratelimit-remaining-requests': '59',
    'x-ratelimit-reset-requests': '1m1s',
    'x-ratelimit-remaining-tokens': '7',
    'x-codex-primary-used-percent': '30',
    'x-codex-primary-window-minutes': '300',
    'x-codex-primary-reset-at': String(now / 1000 + 60),
    'x-codex-secondary-used-percent': '101',
    'x-codex-secondary-window-minutes': '10080',
    'x-codex-secondary-reset-after-seconds': '90',
    'content-type': 'text/event-stream',
  };
  expect(rateLimitsIn(headers, now)).toEqual([
    { name: 'input tokens', left: '49000 of 50000', resetsAt: now + 30_000 },
    { name: '5h', left: '58%', resetsAt: now + 3_600_000 },
    { name: 'requests', left: '59 of 60', resetsAt: now + 61_000 },
    { name: 'tokens', left: '7', resetsAt: null },
    { name: '5h', left: '70%', resetsAt: now + 60_000 },
    { name: '7d', left: '0%', resetsAt: now + 90_000 },
  ]);
  expect(rateLimitsIn({ 'x-ratelimit-remaining-requests': 'many' }, now)).toEqual([]);
});
