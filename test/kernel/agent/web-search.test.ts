import { expect, test } from 'vitest';
import type { PaidSearch, Provider } from '../../../src/kernel/core/provider.js';
import { calls, end, envelopes, kinds, noteTool, ref, rig, scripted, text } from './harness.js';

const paid: PaidSearch = {
  answer: { ok: true, pages: [{ title: 'T', url: 'https://a.example/', snippet: '' }] },
  usage: { input: 9000, cacheRead: 0, cacheWrite: 0, output: 90 },
  costUsd: 0.03,
};

/** A tool that has the provider search, and says what came of it. */
const searching = noteTool(async (_args, ctx) => {
  const request = { query: 'x', count: 1, allowedDomains: [], blockedDomains: [], recency: null, signal: ctx.signal };
  const answer = await ctx.session.searchWeb?.(request);
  return { envelope: { output: JSON.stringify(answer) }, summary: '' };
});

/** A turn with two searches. */
async function turn(search?: Provider['search'], maxCostUsd = 1) {
  const model = scripted([calls(['note', '{"text":"1"}'], ['note', '{"text":"2"}']), [text('done'), end()]]);
  const { session } = rig({
    provider: { stream: (request) => model.stream(request), ...(search && { search }) },
    tools: [searching],
    budget: () => ({ maxCostUsd, price: { input: 1, output: 1 }, maxOutputTokens: 1000, isEnforced: true }),
  });
  await session.submit('go');
  const events = session.events();
  return {
    events,
    usage: events.filter((event) => event.kind === 'usage').map((event) => event.data),
    answers: envelopes(events).map(({ output }) => String(output)),
    requests: model.requests,
  };
}

test("what a provider's search used is recorded before its result, and is no part of the conversation", async () => {
  const { events, usage, requests, answers } = await turn(() => Promise.resolve(paid));
  const one = { provider: ref.provider, model: ref.model, input_tokens: 9000, output_tokens: 90, cost_usd: 0.03 };
  expect(usage).toMatchObject([
    { ...one, purpose: 'web_search' },
    { ...one, purpose: 'web_search' },
  ]);
  expect(kinds(events)).toBe(
    'system tools user tool_call tool_call tool_started usage tool_result tool_started usage tool_result assistant',
  );
  expect(answers[0]).toBe(JSON.stringify(paid.answer));
  expect(requests[1]?.conversation.messages.map(({ role }) => role)).toEqual(['user', 'assistant']);
});

test('a search that the spend limit does not pay for is not made', async () => {
  let searches = 0;
  const search = (): Promise<PaidSearch> => {
    searches += 1;
    return Promise.resolve(paid);
  };
  const { answers } = await turn(search, 0.02);
  expect([searches, answers[1]]).toEqual([1, expect.stringContaining('Stopped at the spend limit of $0.02')]);
});

test('a provider without a search says so to the model', async () => {
  const { answers, usage } = await turn();
  expect([usage, answers[0]]).toEqual([[], expect.stringContaining('scripted has no built-in web search')]);
});
