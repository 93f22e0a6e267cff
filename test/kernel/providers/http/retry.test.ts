import { expect, test } from 'vitest';
import { backoffMs, type Failed, isRetryableAnswer, planRetry } from '../../../../src/kernel/providers/http/attempt.js';
import { askedWaitMs } from '../../../../src/kernel/providers/wires/waits.js';

const rules = { maxRetries: 5, retryBaseMs: 500, maxRetryAfterMs: 60_000 };
const now = Date.UTC(2026, 10, 20, 12, 0, 0);
const at = { random: 0.5, now, leftMs: 900_000 };
const limited: Failed = { fault: { code: 'rate_limited', message: 'slow down', status: 429 }, retryable: true };

test('waits double from half a second to 32 seconds, a quarter more or less', () => {
  expect([1, 2, 3, 4, 5, 6, 7, 8].map((attempt) => backoffMs(attempt, 500, 0.5))).toEqual([
    500, 1000, 2000, 4000, 8000, 16_000, 32_000, 32_000,
  ]);
  expect([backoffMs(1, 500, 0), backoffMs(1, 500, 0.999_999)]).toEqual([375, 625]);
});

test.each([
  [{ 'retry-after': '7' }, 7000],
  [{ 'retry-after': '0.5' }, 500],
  [{ 'retry-after': '0' }, undefined],
  [{ 'retry-after': 'soon' }, undefined],
  [{ 'retry-after': '-3' }, undefined],
  [{ 'retry-after': 'Fri, 20 Nov 2026 12:00:09 GMT' }, 9000],
  [{ 'retry-after': 'Fri, 20 Nov 2026 11:59:00 GMT' }, undefined],
  [{ 'retry-after-ms': '300', 'retry-after': '9' }, 300],
  [{}, undefined],
])('%j asks for a wait of %s ms', (headers, waitMs) => {
  expect(askedWaitMs(headers, '', { now, isRateLimit: true })).toBe(waitMs);
});

test('a failure is tried again after the backoff, or after the wait the server asks for', () => {
  expect(planRetry(limited, 3, rules, at)).toEqual({ retry: true, delayMs: 2000 });
  expect(planRetry({ ...limited, retryAfterMs: 7000 }, 1, rules, at)).toEqual({ retry: true, delayMs: 7000 });
});

test('the sixth failure is the last, and says how many requests were made', () => {
  expect(planRetry(limited, 6, rules, at)).toEqual({
    retry: false,
    fault: { ...limited.fault, message: 'slow down (gave up after 6 tries)' },
  });
});

test('a server that asks for a day is not waited for, and the message says until when', () => {
  expect(planRetry({ ...limited, retryAfterMs: 86_400_000 }, 1, rules, at)).toEqual({
    retry: false,
    fault: {
      code: 'rate_limited',
      status: 429,
      message: 'slow down; the server asks to wait 86400 s, until 2026-11-21T12:00:00Z',
      hint: 'try again then, switch the model, or raise `http.max_retry_after_ms`',
      retryAt: now + 86_400_000,
    },
  });
});

test('a wait that would outlast the turn is not started', () => {
  expect(planRetry({ ...limited, retryAfterMs: 30_000 }, 1, rules, { ...at, leftMs: 20_000 })).toMatchObject({
    retry: false,
  });
});

test('x-should-retry may forbid a retry; a request that was refused is never sent again unchanged', () => {
  const network = { code: 'network', message: '' } as const;
  const limit = { code: 'rate_limited', message: '' } as const;
  const bad = { code: 'bad_request', message: 'no' } as const;
  expect([
    isRetryableAnswer(400, {}, bad),
    isRetryableAnswer(400, { 'x-should-retry': 'true' }, bad),
    isRetryableAnswer(500, { 'x-should-retry': 'true' }, bad),
    isRetryableAnswer(503, { 'x-should-retry': 'false' }, network),
    isRetryableAnswer(429, { 'x-should-retry': 'true' }, { code: 'quota', message: '' }),
    isRetryableAnswer(401, { 'x-should-retry': 'true' }, { code: 'auth', message: '' }),
    isRetryableAnswer(429, {}, limit),
  ]).toEqual([false, false, false, false, false, false, true]);
  expect(
    [408, 409, 425, 429, 500, 502, 503, 504, 529, 400, 404, 422].map((status) =>
      isRetryableAnswer(status, {}, network),
    ),
  ).toEqual([true, true, true, true, true, true, true, true, true, false, false, false]);
});
