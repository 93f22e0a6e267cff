import { expect, test } from 'vitest';
import { askedWaitMs } from '../../../../src/kernel/providers/wires/waits.js';

const now = Date.UTC(2026, 10, 20, 12, 0, 0);
const later = (seconds: number): Date => new Date(now + seconds * 1000);
const error = (fields: object): string => JSON.stringify({ error: { code: 429, ...fields } });

const cases: readonly (readonly [
  source: string,
  headers: Readonly<Record<string, string>>,
  body: string,
  waitMs: number | undefined,
])[] = [
  ['retry-after in seconds', { 'retry-after': '20' }, '', 20_000],
  ['retry-after as a date', { 'retry-after': later(9).toUTCString() }, '', 9000],
  ['retry-after-ms', { 'retry-after-ms': '850', 'retry-after': '9' }, '', 850],
  ['retry-after before the body', { 'retry-after': '3' }, error({ message: 'Please try again in 20s.' }), 3000],
  [
    'Google RetryInfo',
    {},
    JSON.stringify([
      { error: { code: 429, details: [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '17.5s' }] } },
    ]),
    17_500,
  ],
  [
    'Google RetryInfo as an object',
    {},
    error({ details: [{ retryDelay: { seconds: 20, nanos: 500_000_000 } }] }),
    20_500,
  ],
  [
    'Google behind OpenRouter',
    {},
    error({ metadata: { raw: '{"error":{"details":[{"retryDelay":"20s"}]}}' } }),
    20_000,
  ],
  ['Google sentence', {}, error({ message: 'Please retry in 12.5s.' }), 12_500],
  ['OpenRouter metadata', {}, error({ metadata: { retry_after_seconds: 20 } }), 20_000],
  [
    'OpenRouter headers in metadata',
    {},
    error({ metadata: { headers: { 'X-RateLimit-Reset': String(now + 20_000) } } }),
    20_000,
  ],
  ['OpenAI 20s', {}, error({ message: 'Rate limit reached. Please try again in 20s.' }), 20_000],
  ['OpenAI 1m30s', {}, error({ message: 'Please try again in 1m30s. Visit' }), 90_000],
  ['OpenAI 850ms', {}, error({ message: 'Please try again in 850ms.' }), 850],
  ['OpenAI 1h2m3s', {}, error({ message: 'Please try again in 1h2m3s.' }), 3_723_000],
  ['OpenAI 6.66s', {}, error({ message: 'Please try again in 6.66s.' }), 6660],
  ['OpenAI usage limit', {}, error({ type: 'usage_limit_reached', resets_in_seconds: 20 }), 20_000],
  ['Azure', {}, error({ message: 'Please retry after 26 seconds.' }), 26_000],
  ['a sentence in words', {}, 'Too many requests, try again in 2 minutes and 3 seconds', 123_000],
  ['wait for', {}, 'Slow down: wait 30 seconds', 30_000],
  [
    'OpenAI reset headers',
    {
      'x-ratelimit-reset-requests': '20s',
      'x-ratelimit-remaining-requests': '0',
      'x-ratelimit-reset-tokens': '6m0s',
      'x-ratelimit-remaining-tokens': '9',
    },
    '',
    20_000,
  ],
  ['one reset header alone', { 'x-ratelimit-reset-tokens': '1m30.5s' }, '', 90_500],
  [
    'two without what is left',
    { 'x-ratelimit-reset-requests': '23h59m', 'x-ratelimit-reset-tokens': '7.66s' },
    '',
    7660,
  ],
  [
    'Cerebras reset headers',
    { 'x-ratelimit-reset-tokens-minute': '11.38', 'x-ratelimit-remaining-tokens-minute': '0' },
    '',
    11_380,
  ],
  [
    'Anthropic reset headers',
    {
      'anthropic-ratelimit-input-tokens-reset': later(20).toISOString(),
      'anthropic-ratelimit-input-tokens-remaining': '0',
      'anthropic-ratelimit-requests-reset': later(1).toISOString(),
      'anthropic-ratelimit-requests-remaining': '49',
    },
    '',
    20_000,
  ],
  [
    'Anthropic plan that is not used up',
    {
      'anthropic-ratelimit-unified-status': 'allowed',
      'anthropic-ratelimit-unified-reset': String(now / 1000 + 7200),
      'anthropic-ratelimit-unified-5h-reset': String(now / 1000 + 7200),
    },
    '',
    undefined,
  ],
  ['GitHub, Unix seconds', { 'x-ratelimit-reset': String(now / 1000 + 20) }, '', 20_000],
  ['OpenRouter, Unix milliseconds', { 'x-ratelimit-reset': String(now + 20_000) }, '', 20_000],
  ['IETF draft', { 'ratelimit-reset': '20' }, '', 20_000],
  [
    'a time in the past',
    { 'retry-after': later(-9).toUTCString(), 'x-ratelimit-reset': String(now / 1000 - 20) },
    '',
    undefined,
  ],
  ['no wait', {}, error({ message: 'Slow down. 20s of audio were read; try 3 times.' }), undefined],
];

test.each(cases)('the wait is read: %s', (_source, headers, body, waitMs) => {
  expect(askedWaitMs(headers, body, { now, isRateLimit: true })).toBe(waitMs);
});

test('a limit that is full again later matters only where it was reached', () => {
  expect(askedWaitMs({ 'x-ratelimit-reset-requests': '6m0s' }, '', { now, isRateLimit: false })).toBeUndefined();
});
