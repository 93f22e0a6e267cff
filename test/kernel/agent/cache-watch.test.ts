import { expect, test } from 'vitest';
import { cacheMiss } from '../../../src/kernel/agent/request.js';
import type { Event } from '../../../src/kernel/core/event.js';

const ref = { provider: 'anthropic', api: 'anthropic-messages', model: 'm' } as const;
const missed = { input: 9000, cacheRead: 0, cacheWrite: 0, output: 1 };
const minute = 60_000;

type Draft = Omit<Event, 'seq' | 'createdAt'> & { readonly at?: number };
const usage = (data: Record<string, unknown>): Draft => ({
  kind: 'usage',
  content: null,
  data: {
    provider: 'anthropic',
    model: 'm',
    input_tokens: 100,
    output_tokens: 5,
    cache_read_tokens: 0,
    cache_write_tokens: 8000,
    ...data,
  },
});
const tools = (size: number): Draft => ({
  kind: 'tools',
  content: '',
  data: { tools: [], settings: { model_output_size: size } },
});
const system: Draft = { kind: 'system', content: 'S', data: null };
const user: Draft = { kind: 'user', content: 'u', data: null };
const said: Draft = {
  kind: 'assistant',
  content: 'a',
  data: { response_id: 'r4', provider: 'anthropic', api: 'anthropic-messages', model: 'm', stop: 'stop' },
};

function log(...drafts: readonly Draft[]): readonly Event[] {
  return drafts.map(({ at, ...draft }, index) => ({ ...draft, seq: index + 1, createdAt: at ?? 0 }));
}

const cases: readonly (readonly [name: string, events: readonly Event[], expected: unknown])[] = [
  [
    'nothing differs, soon after',
    log(system, tools(1), user, usage({}), said, user),
    expect.stringMatching(/9000 tokens .* No event differs from the last request: the provider dropped it/),
  ],
  [
    'a search of the web in between, which is not a part of the conversation',
    log(system, tools(1), user, usage({}), said, usage({ purpose: 'web_search', cache_write_tokens: 0 }), user),
    expect.stringMatching(/9000 tokens .* No event differs from the last request: the provider dropped it/),
  ],
  [
    'a request for a title in between',
    log(system, tools(1), user, usage({}), said, usage({ purpose: 'title', cache_write_tokens: 0 }), user),
    expect.stringMatching(/9000 tokens .* No event differs from the last request: the provider dropped it/),
  ],
  [
    'nothing differs, an hour later',
    log(system, tools(1), user, usage({}), said, { ...user, at: 60 * minute }),
    expect.stringMatching(/No event differs .* 60 minutes ago: the cache has expired/),
  ],
  [
    'another catalogue',
    log(system, tools(1), user, usage({}), said, tools(2), user),
    expect.stringMatching(/Event 6 is the first that differs/),
  ],
  [
    'a result that came after the request',
    log(
      system,
      tools(1),
      user,
      {
        kind: 'tool_call',
        content: '',
        data: { id: 'c', type: 'function', function: { name: 'x', arguments: '{}' }, response_id: 'r3' },
      },
      usage({}),
      {
        kind: 'tool_result',
        content: '',
        data: { tool_call_id: 'c', name: 'x', output: '{"output":""}', success: true, duration_ms: 1 },
      },
      user,
    ),
    expect.stringMatching(/Event 4 is the first that differs/),
  ],
  ['the first request', log(system, tools(1), user), null],
  ['a short prompt', log(system, tools(1), user, usage({ cache_write_tokens: 50 }), said, user), null],
  [
    'a provider that never caches',
    log(system, tools(1), user, usage({ input_tokens: 9000, cache_write_tokens: 0 }), said, user),
    null,
  ],
  ['another model before', log(system, tools(1), user, usage({ model: 'other' }), said, user), null],
  [
    'a switch in between',
    log(
      system,
      tools(1),
      user,
      usage({}),
      said,
      { kind: 'model', content: '', data: { provider: 'anthropic', model: 'm' } },
      user,
    ),
    null,
  ],
];

test.each(cases)('a missed cache: %s', (_name, events, expected) => {
  expect(cacheMiss(events, ref, missed)).toEqual(expected);
});

test('a request that reads from the cache is not a miss', () => {
  expect(cacheMiss(log(system, tools(1), user, usage({}), said, user), ref, { ...missed, cacheRead: 1 })).toBeNull();
});
