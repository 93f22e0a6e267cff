import { expect, test } from 'vitest';
import { httpFault, streamFault } from '../../../../src/kernel/providers/wires/fault.js';
import { limitForms, usageLimitIn } from '../../../../src/kernel/providers/wires/usage-limits.js';

// 20 November 2026, 12:00 UTC: 4 in the morning in California.
const now = Date.UTC(2026, 10, 20, 12, 0, 0);
const unix = (seconds: number): string => String(now / 1000 + seconds);
const shortMs = 60_000;
const hour = 3_600_000;

interface Answer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

/** Answers of vendors, as users have reported them. `waitMs`: null for a limit without an end. */
const reported: readonly (readonly [vendor: string, answer: Answer, waitMs: number | null])[] = [
  [
    'Anthropic, plans',
    {
      headers: {
        'anthropic-ratelimit-unified-status': 'rejected',
        'anthropic-ratelimit-unified-representative-claim': 'seven_day',
        'anthropic-ratelimit-unified-5h-reset': unix(1800),
        'anthropic-ratelimit-unified-5h-utilization': '0.4',
        'anthropic-ratelimit-unified-7d-reset': unix(86_400),
        'anthropic-ratelimit-unified-7d-utilization': '1.0',
        'anthropic-ratelimit-unified-overage-reset': unix(60),
        'anthropic-ratelimit-unified-reset': unix(86_400),
        'retry-after': '86400',
      },
      body: {
        type: 'error',
        error: { type: 'rate_limit_error', message: "This request would exceed your account's rate limit." },
      },
    },
    24 * hour,
  ],
  [
    'Anthropic, plans',
    {
      headers: {
        'anthropic-ratelimit-unified-status': 'rejected',
        'anthropic-ratelimit-unified-5h-reset': unix(1800),
        'anthropic-ratelimit-unified-5h-utilization': '1.02',
        'anthropic-ratelimit-unified-7d-reset': unix(86_400),
        'anthropic-ratelimit-unified-7d-utilization': '0.4',
      },
    },
    hour / 2,
  ],
  ['Anthropic, plans, without a status', { headers: { 'anthropic-ratelimit-unified-reset': unix(20) } }, 20_000],
  [
    'Anthropic, plans through gateways',
    { body: { error: { message: `Claude AI usage limit reached|${unix(7200)}` } } },
    2 * hour,
  ],
  [
    'OpenAI, ChatGPT plans (Codex)',
    {
      body: {
        error: {
          type: 'usage_limit_reached',
          message: 'The usage limit has been reached',
          plan_type: 'plus',
          resets_at: now / 1000 + 13_872,
          eligible_promo: null,
          resets_in_seconds: 13_872,
        },
      },
    },
    13_872_000,
  ],
  [
    'OpenAI, ChatGPT plans (Codex)',
    {
      body: {
        error: { type: 'usage_limit_reached', message: 'The usage limit has been reached', resets_in_seconds: 20 },
      },
    },
    20_000,
  ],
  [
    'OpenAI, ChatGPT plans (Codex)',
    {
      headers: {
        'x-codex-primary-used-percent': '100',
        'x-codex-primary-reset-after-seconds': '471285',
        'x-codex-secondary-used-percent': '80',
        'x-codex-secondary-reset-at': unix(9),
      },
      body: { error: { type: 'usage_limit_reached', message: 'The usage limit has been reached' } },
    },
    471_285_000,
  ],
  [
    'OpenAI, ChatGPT plans (Codex)',
    {
      body: {
        type: 'error',
        error: { type: 'usage_limit_reached', message: 'The usage limit has been reached' },
        headers: { 'X-Codex-Primary-Used-Percent': '100', 'X-Codex-Primary-Reset-At': unix(600) },
      },
    },
    600_000,
  ],
  [
    'Google, Gemini Code Assist',
    {
      body: [
        {
          error: {
            code: 429,
            status: 'RESOURCE_EXHAUSTED',
            message: 'Individual quota reached. Resets in 9h22m20s.',
            details: [
              {
                reason: 'QUOTA_EXHAUSTED',
                domain: 'cloudcode-pa.googleapis.com',
                metadata: { quotaResetTimeStamp: '2026-11-20T21:03:14Z', quotaResetDelay: '32594.9s', model: 'gemini' },
              },
            ],
          },
        },
      ],
    },
    9 * hour + 194_000,
  ],
  [
    'Google, Gemini API, limits of a day',
    {
      body: {
        error: {
          code: 429,
          message: 'You exceeded your current quota, please check your plan and billing details. Please retry in 36s.',
          status: 'RESOURCE_EXHAUSTED',
          details: [
            { violations: [{ quotaId: 'GenerateRequestsPerDayPerProjectPerModel-FreeTier', quotaValue: '20' }] },
            { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '36s' },
          ],
        },
      },
    },
    20 * hour,
  ],
  [
    'Google, limits of a day for each user',
    {
      body: {
        error: {
          code: 429,
          message: "Quota exceeded for quota metric 'Requests' and limit 'Requests per day per user per tier'.",
          status: 'RESOURCE_EXHAUSTED',
        },
      },
    },
    null,
  ],
  [
    'OpenRouter, free models',
    {
      body: {
        error: {
          message:
            'Rate limit exceeded: free-models-per-day. Add 10 credits to unlock 1000 free model requests per day',
          code: 429,
          metadata: {
            headers: {
              'X-RateLimit-Limit': '50',
              'X-RateLimit-Remaining': '0',
              'X-RateLimit-Reset': String(now + 12 * hour),
            },
          },
        },
      },
    },
    12 * hour,
  ],
  [
    'Z.AI and Zhipu, GLM Coding Plan',
    {
      body: {
        type: 'error',
        error: {
          type: 'rate_limit_error',
          code: '1308',
          message: '[1308][Usage limit reached for 5 hour. Your limit will reset at 2026-11-20 22:35:41][20261120abc]',
        },
      },
    },
    2 * hour + 35 * 60_000 + 41_000,
  ],
  [
    'Z.AI and Zhipu, GLM Coding Plan',
    { body: { error: { code: '1308', message: '已达到 5 小时的使用上限。您的限额将在 2026-11-20 21:00:00 重置。' } } },
    hour,
  ],
  [
    'MiniMax, Token Plan',
    {
      body: {
        type: 'error',
        error: {
          type: 'rate_limit_error',
          message:
            'usage limit exceeded, 5-hour usage limit reached for Token Plan Starter (0/0 used), resets at 2026-11-20T15:00:00Z (2056)',
        },
      },
    },
    3 * hour,
  ],
  [
    'OpenCode, Zen and Go',
    {
      headers: { 'retry-after': '73801' },
      body: { error: { type: 'FreeUsageLimitError', message: 'Rate limit exceeded. Please try again later.' } },
    },
    73_801_000,
  ],
  [
    'Moonshot, Kimi Code',
    {
      status: 403,
      body: {
        error: {
          message:
            "You've reached your weekly (7-day) usage limit. Your quota will reset when the current 7-day window ends.",
          type: 'access_terminated_error',
        },
      },
    },
    null,
  ],
  [
    'Ollama Cloud',
    { body: { error: 'you (abc) have reached your session usage limit, upgrade for higher limits' } },
    null,
  ],
  [
    'GitHub Copilot',
    {
      body: {
        error: {
          code: 'user_global_rate_limited',
          message: "Sorry, you've exceeded your 5 hour session limits. Please retry after 2733 seconds.",
        },
      },
    },
    2_733_000,
  ],
  [
    'GitHub Copilot',
    {
      body: {
        error: {
          code: 'user_weekly_rate_limited',
          message:
            "You've reached your weekly rate limit. Please wait for your limit to reset on April 20, 2026 at 2:00 AM.",
        },
      },
    },
    null,
  ],
  ['Amazon Bedrock', { body: { message: 'Too many tokens per day, please wait before trying again.' } }, null],
];

const textOf = (body: unknown): string => (body === undefined ? '' : JSON.stringify(body));
const limitOf = ({ status = 429, headers = {}, body }: Answer): ReturnType<typeof usageLimitIn> =>
  usageLimitIn({ status, headers, body: textOf(body) }, now, shortMs);

test.each(reported)('a usage limit is recognised, with its end: %s', (_vendor, answer, waitMs) => {
  expect(limitOf(answer)).toEqual({ waitMs });
});

test('every form of the table has an answer here that is of this form, and a source', () => {
  for (const form of limitForms) {
    const answers = reported.filter(([vendor]) => vendor === form.vendor);
    expect(answers.length, form.vendor).toBeGreaterThan(0);
    expect(form.source, form.vendor).not.toBe('');
    for (const [vendor, { headers = {}, body }] of answers) {
      const text = textOf(body);
      const first = limitForms.find(
        (one) =>
          !(one.unless?.test(text) ?? false) &&
          !(one.unlessHeader !== undefined && headers[one.unlessHeader] !== undefined) &&
          (one.header?.value.test(headers[one.header.name] ?? '') === true || one.text?.test(text) === true),
      );
      expect(first?.vendor, vendor).toBe(form.vendor);
    }
  }
});

test.each(reported.filter(([, { body }]) => body !== undefined))(
  'what the body reports is a rate limit, whatever its status and words: %s',
  (vendor, { status = 429, body }) => {
    expect(httpFault(status, textOf(body)).code).toBe('rate_limited');
    if (vendor !== 'Anthropic, plans') expect(streamFault(body).fault.code).toBe('rate_limited');
  },
);

const others: readonly (readonly [what: string, answer: Answer])[] = [
  ['a burst', { headers: { 'retry-after': '7' }, body: { error: { message: 'Rate limit reached' } } }],
  [
    'a burst of a plan that is not used up',
    { headers: { 'anthropic-ratelimit-unified-status': 'allowed', 'anthropic-ratelimit-unified-reset': unix(7200) } },
  ],
  [
    'tokens of a minute',
    {
      body: { error: { message: 'Rate limit reached on tokens per minute (TPM). Please try again in 50.597142857s.' } },
    },
  ],
  [
    'tokens of a day that are free again in seconds',
    { body: { error: { message: 'Rate limit reached on tokens per day (TPD). Please try again in 12.441s.' } } },
  ],
  ['requests of a minute', { body: { error: { message: 'Rate limit exceeded: free-models-per-min.' } } }],
  ['calls at once', { body: { error: { code: '1302', message: 'Rate limit reached for requests' } } }],
  [
    'a limit of Copilot that is over soon',
    {
      body: { error: { code: 'user_global_rate_limited', message: 'Please wait 6 seconds for your limit to reset.' } },
    },
  ],
  [
    'a model that the plan does not have',
    {
      body: {
        error: {
          message: 'You exceeded your current quota. limit: 0, model: gemini-pro. Please retry in 45s.',
          details: [{ violations: [{ quotaId: 'GenerateRequestsPerDayPerProjectPerModel-FreeTier' }] }],
        },
      },
    },
  ],
  ['an empty account', { status: 402, body: { error: { message: 'Insufficient Balance' } } }],
  ['a bad request that names a limit', { status: 400, body: { error: { message: 'usage_limit_reached is no tool' } } }],
];

test.each(others)('is no usage limit: %s', (_what, answer) => {
  expect(limitOf(answer)).toBeNull();
});

test('a point in time is read by the clock of the server where ours is wrong', () => {
  const headers = {
    date: new Date(now + 2 * hour).toUTCString(),
    'anthropic-ratelimit-unified-status': 'rejected',
    'anthropic-ratelimit-unified-reset': unix(7200 + 600),
  };
  expect(limitOf({ headers })).toEqual({ waitMs: 600_000 });
});

test('a limit whose time is over and that still refuses is asked about again soon, not at once', () => {
  const headers = {
    'anthropic-ratelimit-unified-status': 'rejected',
    'anthropic-ratelimit-unified-reset': unix(-5),
  };
  expect(limitOf({ headers })).toEqual({ waitMs: 30_000 });
});

test('the day of California ends at its midnight, in summer and on the days on which the clock changes', () => {
  const body = { error: { details: [{ violations: [{ quotaId: 'RequestsPerDay' }] }] } };
  const ends = (at: number): string | undefined => {
    const limit = usageLimitIn({ status: 429, headers: {}, body: textOf(body) }, at, shortMs);
    return limit?.waitMs == null ? undefined : new Date(at + limit.waitMs).toISOString();
  };
  expect([
    ends(Date.UTC(2026, 6, 1, 3, 4, 5, 678)),
    ends(Date.UTC(2026, 2, 8, 9, 0)),
    ends(Date.UTC(2026, 10, 1, 8, 0)),
    ends(Date.UTC(2026, 10, 1, 7, 0)),
  ]).toEqual([
    '2026-07-01T07:00:00.000Z',
    '2026-03-09T07:00:00.000Z',
    '2026-11-02T08:00:00.000Z',
    '2026-11-02T08:00:00.000Z',
  ]);
});
