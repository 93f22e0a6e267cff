import { afterAll, beforeEach, expect, test } from 'vitest';
import type { PaidSearch, SearchRequest } from '../../../src/kernel/core/provider.js';
import { createSecretGuard } from '../../../src/kernel/core/secrets/guard.js';
import { maskProvider } from '../../../src/kernel/providers/masked-provider.js';
import { searchNatively } from '../../../src/kernel/providers/native-search.js';
import { startDouble } from '../../features/web/http-double.js';
import { answers, cited, said } from '../../features/web/search-samples.js';
import { testKey } from './http/http-rig.js';
import { vendorEndpoint } from './vendors.js';

const double = await startDouble();
afterAll(() => {
  double.close();
});
beforeEach(() => {
  double.seen.length = 0;
});

const asked: SearchRequest = {
  query: 'oven temperature for bread',
  count: 3,
  allowedDomains: [],
  blockedDomains: [],
  recency: null,
  signal: new AbortController().signal,
};

async function searched(
  preset: string,
  more: Partial<SearchRequest> = {},
  webSearchUsd: number | null = 0.01,
): Promise<PaidSearch> {
  const { endpoint, ref } = vendorEndpoint(preset, `${double.url}${preset === 'google' ? '/v1beta/openai' : ''}`);
  const { search } = endpoint;
  if (search === undefined) throw new Error(`${preset} has no search`);
  return await searchNatively(
    { ...endpoint, search },
    { ...asked, signal: new AbortController().signal, ...more },
    ref,
    {
      env: {},
      now: () => 0,
      facts: () => ({ price: { input: 1, output: 10 }, webSearchUsd }),
    },
  );
}

const places: Readonly<Record<string, readonly [path: string, key: string]>> = {
  openai: ['/responses', 'authorization'],
  anthropic: ['/v1/messages', 'x-api-key'],
  google: ['/v1beta/models/gemini-2.5-pro:generateContent', 'x-goog-api-key'],
  openrouter: ['/chat/completions', 'authorization'],
};

test.each(Object.keys(answers))('%s searches in one request of its own, whose answer has one form', async (preset) => {
  double.script({ body: answers[preset] });
  const { answer, usage, costUsd } = await searched(preset);
  const pages = answer.ok ? answer.pages : [];
  expect(pages.slice(0, 1).concat(pages.slice(-1))).toEqual([
    { url: expect.stringContaining(cited) as string, title: 'Oven', snippet: said },
    { url: 'https://b.example/', title: expect.stringMatching(/^B?$/) as string, snippet: '' },
  ]);
  expect(usage).toEqual({ input: 800, cacheRead: 200, cacheWrite: 0, output: 50 });
  // 1,000 tokens at $1, 50 at $10, and one search; OpenRouter says itself what it cost.
  expect(costUsd).toBeCloseTo(preset === 'openrouter' ? 0.0123 : 0.0115, 10);
  const [path, header] = places[preset] ?? ['', ''];
  expect(double.seen.map((request) => [request.method, request.url])).toEqual([['POST', path]]);
  expect(double.seen[0]?.headers[header]).toContain(testKey);
  expect(double.seen[0]?.body).toContain('oven temperature for bread');
});

test('a search whose price the model table does not have is assumed to cost the list price', async () => {
  const costs: (number | null)[] = [];
  for (const preset of ['openai', 'anthropic', 'google']) {
    double.script({ body: answers[preset] });
    costs.push((await searched(preset, {}, null)).costUsd);
  }
  expect(costs.map((usd) => usd?.toFixed(4))).toEqual(['0.0115', '0.0115', '0.0365']);
});

test('domains and the age of pages are asked for where the provider can', async () => {
  for (const preset of Object.keys(answers)) {
    double.script({ body: answers[preset] });
    await searched(preset, { allowedDomains: ['bread.example'], recency: 'week' });
  }
  const bodies = double.seen.map(({ body }) => body);
  expect(bodies.map((body) => /Use only pages of the last week/.test(body))).toEqual([true, true, true, true]);
  expect(JSON.parse(bodies[0] ?? '')).toMatchObject({ tools: [{ filters: { allowed_domains: ['bread.example'] } }] });
  expect(JSON.parse(bodies[1] ?? '')).toMatchObject({ tools: [{ allowed_domains: ['bread.example'] }] });
  expect(JSON.parse(bodies[3] ?? '')).toMatchObject({
    tools: [{ parameters: { max_results: 3, allowed_domains: ['bread.example'] } }],
  });
});

test('a paused answer is resumed once, and both requests are paid', async () => {
  const paused = { ...answers.anthropic, stop_reason: 'pause_turn' };
  double.script({ body: paused });
  const { answer, usage } = await searched('anthropic');
  expect([answer.ok, usage?.input, double.seen.length]).toEqual([true, 1600, 2]);
  expect(JSON.parse(double.seen[1]?.body ?? '')).toMatchObject({
    messages: [{ role: 'user' }, { role: 'assistant', content: [{ type: 'server_tool_use' }, {}, {}] }],
  });
});

test('a search that found nothing is told from an answer without a search', async () => {
  const none = { ...answers.anthropic, content: [{ type: 'web_search_tool_result', content: [] }] };
  const failed = {
    ...answers.anthropic,
    content: [
      {
        type: 'web_search_tool_result',
        content: { type: 'web_search_tool_result_error', error_code: 'max_uses_exceeded' },
      },
    ],
  };
  const silent = { ...answers.anthropic, content: [{ type: 'text', text: 'I know it by heart.' }] };
  double.script({ body: none }, { body: failed }, { body: silent });
  const heard = [await searched('anthropic'), await searched('anthropic'), await searched('anthropic')];
  expect(heard.map(({ answer }) => answer)).toEqual([
    { ok: true, pages: [] },
    { ok: false, reason: 'failed', message: 'Anthropic could not search: max uses exceeded.' },
    { ok: false, reason: 'failed', message: 'Anthropic answered without a search.' },
  ]);
  expect(heard.map(({ usage }) => usage?.output)).toEqual([50, 50, 50]);
});

test.each(['openai', 'anthropic', 'google', 'openrouter'])(
  'a refusal of %s says why, without the key',
  async (preset) => {
    const body = { error: { message: `bad key ${testKey}`, type: 'authentication_error' } };
    double.script(
      { status: 401, body },
      { status: 429, headers: { 'retry-after': '7' }, body: {} },
      { body: '<html>' },
    );
    const heard = [await searched(preset), await searched(preset), await searched(preset)];
    expect(heard.map(({ answer }) => answer)).toMatchObject([
      {
        ok: false,
        reason: 'failed',
        message: expect.stringContaining('refused the search: bad key [masked]') as string,
      },
      { ok: false, reason: 'rate_limited', waitMs: 7000 },
      { ok: false, reason: 'failed', message: expect.stringContaining('unreadable search result') as string },
    ]);
    expect(heard.map(({ usage }) => usage)).toEqual([null, null, null]);
  },
);

test('a server that is gone is a sentence, not an exception', async () => {
  const { endpoint, ref } = vendorEndpoint('openai', 'http://127.0.0.1:1');
  const search = 'openai' as const;
  const d = { env: {}, now: () => 0, facts: () => null };
  expect(await searchNatively({ ...endpoint, search }, asked, ref, d)).toEqual({
    answer: {
      ok: false,
      reason: 'failed',
      message: 'The search failed: 127.0.0.1:1 refused the connection (ECONNREFUSED).',
    },
    usage: null,
    costUsd: null,
  });
});

const never = (): Promise<never> => Promise.reject(new Error('not opened'));

test('secrets are masked in the words that are searched for, and in what is found', async () => {
  const guard = createSecretGuard({ forms: [], keys: [{ name: 'K', value: 'key-value' }], environment: [] });
  let query = '';
  const masked = maskProvider(
    {
      open: never,
      search: (request) => {
        query = request.query;
        const pages = [{ url: 'https://a.example/', title: 'key-value', snippet: '' }];
        return Promise.resolve({ answer: { ok: true, pages }, usage: null, costUsd: null });
      },
    },
    guard,
  );
  const found = await masked.search?.(
    { ...asked, query: 'what is key-value' },
    { provider: 'p', api: 'a', model: 'm' },
  );
  expect([query, JSON.stringify(found)].join(' ')).not.toContain('key-value');
  expect(maskProvider({ open: never }, guard).search).toBeUndefined();
});
