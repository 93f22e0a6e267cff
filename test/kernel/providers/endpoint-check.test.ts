import { expect, test } from 'vitest';
import type { ModelRef } from '../../../src/kernel/core/projection.js';
import { checkEndpoint, type CheckReport } from '../../../src/kernel/providers/discover.js';
import { realSchedule } from '../../../src/kernel/providers/http/watch.js';
import { type Attempt, startFaultServer } from './http/fault-server.js';
import { testEndpoint, testLimits, wires } from './http/http-rig.js';

const ref: ModelRef = { provider: 'test', api: 'openai-chat', model: 'm' };
const usage = { prompt_tokens: 10, completion_tokens: 4, prompt_tokens_details: { cached_tokens: 6 } };
const call = { id: 'c1', index: 0, function: { name: 'ready', arguments: '{}' } };
const events = (finish: string, delta: object): string =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: finish }], usage })}\n\ndata: [DONE]\n\n`;
const stream = { 'content-type': 'text/event-stream' };
const counted = { inputTokens: 10, outputTokens: 4, costUsd: null };
const uncounted = { inputTokens: null, outputTokens: null, costUsd: null };
const works = { fault: null, reached: true, auth: true };

async function check(attempt: Attempt): Promise<{ readonly report: CheckReport; readonly requests: number }> {
  const server = await startFaultServer([attempt]);
  const report = await checkEndpoint(testEndpoint('openai-chat', server.url), ref, wires['openai-chat'], testLimits, {
    now: Date.now,
    random: () => 0.5,
    schedule: realSchedule,
    sleep: () => Promise.resolve(),
    env: {},
    price: () => null,
  });
  await server.close();
  return { report, requests: server.requests.length };
}

test.each<[string, Attempt, CheckReport]>([
  [
    'a streamed call',
    { status: 200, headers: stream, body: events('tool_calls', { tool_calls: [call] }) },
    { ...works, ...counted, streaming: true, tools: true },
  ],
  [
    'text in place of a call',
    { status: 200, headers: stream, body: events('stop', { content: 'ready' }) },
    { ...works, ...counted, streaming: true, tools: false },
  ],
  [
    'an answer that is not streamed',
    {
      status: 200,
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ choices: [{ message: { tool_calls: [call] }, finish_reason: 'tool_calls' }], usage }),
    },
    { ...works, ...counted, streaming: false, tools: true },
  ],
  [
    'a rejected key',
    { status: 401, body: '{"error":{"message":"bad key"}}' },
    {
      ...uncounted,
      fault: expect.objectContaining({ code: 'auth' }) as CheckReport['fault'],
      reached: true,
      auth: false,
      streaming: null,
      tools: null,
    },
  ],
  [
    'a model without tools',
    { status: 400, body: '{"error":{"message":"m does not support tools"}}' },
    {
      ...uncounted,
      fault: expect.objectContaining({ code: 'bad_request' }) as CheckReport['fault'],
      reached: true,
      auth: true,
      streaming: null,
      tools: false,
    },
  ],
  [
    'a server that is overloaded, once',
    { status: 503, body: '{}' },
    {
      ...uncounted,
      fault: expect.objectContaining({ code: 'network', status: 503 }) as CheckReport['fault'],
      reached: true,
      auth: null,
      streaming: null,
      tools: null,
    },
  ],
])('the check of an endpoint reports %s', async (_name, attempt, expected) => {
  expect(await check(attempt)).toEqual({ report: expected, requests: 1 });
});

test('the check of an endpoint reports a server that is not there', async () => {
  const server = await startFaultServer([{ status: 200 }]);
  await server.close();
  const endpoint = testEndpoint('openai-chat', server.url);
  const report = await checkEndpoint(endpoint, ref, wires['openai-chat'], testLimits, {
    now: Date.now,
    random: () => 0.5,
    schedule: realSchedule,
    sleep: () => Promise.resolve(),
    env: {},
    price: () => null,
  });
  expect([report.reached, report.auth, report.fault?.code]).toEqual([false, null, 'network']);
});
