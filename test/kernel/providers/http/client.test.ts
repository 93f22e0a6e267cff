import { BaseAnthropic } from '@anthropic-ai/sdk/client';
import { OpenAI } from 'openai';
import { afterEach, expect, test, vi } from 'vitest';
import { connectAnthropic, connectOpenAi } from '../../../../src/kernel/providers/http/client.js';
import { HttpFailure, type HttpRequest, type Send } from '../../../../src/kernel/providers/http/exchange.js';
import { startFaultServer } from './fault-server.js';
import { hello, listen, testEndpoint, testKey, testProvider } from './http-rig.js';

const body = Buffer.from('{"stream":true}');
const never = new AbortController().signal;
const vendors = [
  ['openai', connectOpenAi, '/chat/completions', OpenAI.prototype, 'openai-chat'],
  ['anthropic', connectAnthropic, '/v1/messages', BaseAnthropic.prototype, 'anthropic-messages'],
] as const;

afterEach(() => {
  vi.restoreAllMocks();
});

/** Answers everything with `answer` and keeps what it was sent. */
function recorder(answer: () => Response): { readonly sent: HttpRequest[]; readonly send: Send } {
  const sent: HttpRequest[] = [];
  return {
    sent,
    send: async (request) => {
      sent.push(request);
      return await Promise.resolve(answer());
    },
  };
}

test.each(vendors)('the %s SDK makes every request, retries included', async (_name, _connect, _path, sdk, api) => {
  const posts = vi.spyOn(sdk, 'post');
  const server = await startFaultServer([{ status: 500, body: '{}' }]);
  const provider = testProvider(testEndpoint(api, server.url), { maxRetries: 2 });
  await listen(provider, hello, api);
  await listen(provider, hello, api);
  provider.close();
  await server.close();
  expect([posts.mock.calls.length, server.requests.length]).toEqual([6, 6]);
});

test('OpenAI: the SDK adds the key and the path, and nothing about this machine leaves', async () => {
  const { sent, send } = recorder(() => new Response('{}'));
  const endpoint = testEndpoint('openai-chat', 'https://api.example/v1?api-version=7', { headers: { 'X-Own': 'own' } });
  const post = await connectOpenAi(endpoint, '/chat/completions', send);
  await post(body, never);
  await post(body, never);
  const request = {
    method: 'POST',
    url: 'https://api.example/v1/chat/completions?api-version=7',
    headers: {
      accept: 'text/event-stream, application/json',
      authorization: `Bearer ${testKey}`,
      'content-type': 'application/json',
      'user-agent': 'agent-shell',
      'x-own': 'own',
    },
    body,
    signal: expect.any(AbortSignal),
  };
  expect(sent).toEqual([request, request]);
});

test('Anthropic: the key goes as x-api-key, and a version in the base URL is not repeated', async () => {
  const { sent, send } = recorder(() => new Response('{}'));
  const headers = { 'anthropic-version': '2023-06-01' };
  const endpoint = testEndpoint('anthropic-messages', 'https://api.example/v1', { headers });
  await (
    await connectAnthropic(endpoint, '/v1/messages', send)
  )(body, never);
  expect(sent[0]?.url).toBe('https://api.example/v1/messages');
  expect(sent[0]?.headers).toEqual({
    accept: 'text/event-stream, application/json',
    'anthropic-version': '2023-06-01',
    'content-type': 'application/json',
    'user-agent': 'agent-shell',
    'x-api-key': testKey,
  });
});

test.each(vendors)('%s: without a key no header carries one', async (_name, connect, path, _sdk, api) => {
  const { sent, send } = recorder(() => new Response('{}'));
  await (
    await connect(testEndpoint(api, 'http://127.0.0.1:1', { key: null }), path, send)
  )(body, never);
  expect(Object.keys(sent[0]?.headers ?? {})).toEqual(expect.not.arrayContaining(['authorization', 'x-api-key']));
});

test.each(vendors)('%s: an answer that is not a success arrives unread', async (_name, connect, path, _sdk, api) => {
  const { send } = recorder(() => new Response('[{"detail":"no"}]', { status: 404, headers: { 'x-a': 'b' } }));
  const answer = await (await connect(testEndpoint(api, 'http://127.0.0.1:1'), path, send))(body, never);
  expect([answer.status, answer.headers.get('x-a'), await answer.text()]).toEqual([404, 'b', '[{"detail":"no"}]']);
});

test.each(vendors)('%s: a connection that timed out is said as that', async (_name, connect, path, _sdk, api) => {
  const fault = { code: 'network', message: 'host did not answer (ETIMEDOUT)' } as const;
  const failure = new HttpFailure(fault, true, new Error('connect ETIMEDOUT 192.0.2.1:443'));
  const send: Send = () => Promise.reject(failure);
  const request = (await connect(testEndpoint(api, 'http://127.0.0.1:1'), path, send))(body, never);
  await expect(request).rejects.toBe(failure);
});
