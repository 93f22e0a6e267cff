import type { EventWire } from './http/http-rig.js';
import { afterEach, expect, test } from 'vitest';
import { openMemoryStore } from '../../../src/kernel/store/memory-store.js';
import { noteTool, rig } from '../agent/harness.js';
import { type FaultServer, startFaultServer } from './http/fault-server.js';
import { testEndpoint, testProvider } from './http/http-rig.js';

const servers: FaultServer[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close();
});

const chunk = (delta: object, finish: string | null = null): object => ({
  choices: [{ index: 0, delta, finish_reason: finish }],
});
const made = { name: 'note', arguments: '{"text":"a"}' };
const signed = { extra_content: { google: { thought_signature: 'SIG' } } };
const longId = `call_a1__thought__${'CiYB'.repeat(60)}==`;
const chatCall = (...pieces: readonly object[]): readonly object[] => [
  ...pieces.map((piece) => chunk({ tool_calls: [piece] })),
  chunk({}, 'tool_calls'),
];
const head = { index: 0, id: 'x', type: 'function' };
const messagesCall = (block: object, delta: object = {}): readonly object[] => [
  { type: 'message_start', message: { id: 'm', usage: { input_tokens: 1, output_tokens: 0 } } },
  {
    type: 'content_block_start',
    index: 0,
    content_block: { type: 'tool_use', id: 'x', name: 'note', input: {}, ...block },
  },
  {
    type: 'content_block_delta',
    index: 0,
    delta: { type: 'input_json_delta', partial_json: made.arguments, ...delta },
  },
  { type: 'content_block_stop', index: 0 },
  { type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 1 } },
  { type: 'message_stop' },
];
const responsesCall = (fields: object): readonly object[] => [
  {
    type: 'response.output_item.done',
    output_index: 0,
    item: { type: 'function_call', id: 'f', call_id: 'x', ...made, ...fields },
  },
  { type: 'response.completed', response: { status: 'completed', output: [] } },
];

const last: Readonly<Record<EventWire, readonly object[]>> = {
  'openai-chat': [chunk({ content: 'ok' }, 'stop')],
  'anthropic-messages': [
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: 'ok' } },
    { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 1 } },
    { type: 'message_stop' },
  ],
  'openai-responses': [
    { type: 'response.output_text.delta', item_id: 'm', delta: 'ok' },
    { type: 'response.completed', response: { status: 'completed', output: [] } },
  ],
};

/** What a server gives with a call, and what of it the next request has to hold. */
const cases: readonly (readonly [name: string, api: EventWire, events: readonly object[], back: string])[] = [
  ['Google', 'openai-chat', chatCall({ ...head, function: made, ...signed }), JSON.stringify(signed).slice(1, -1)],
  [
    'Vertex',
    'openai-chat',
    chatCall({ ...head, function: made, extra_content: { vertex: { thought_signature: 'SIG' } } }),
    '"extra_content":{"vertex":{"thought_signature":"SIG"}}',
  ],
  [
    'LiteLLM, in the id',
    'openai-chat',
    chatCall({ ...head, id: longId, function: made }),
    `"tool_call_id":"${longId}"`,
  ],
  [
    'in the first piece alone',
    'openai-chat',
    chatCall(
      { ...head, function: { name: 'note', arguments: '' }, ...signed },
      { index: 0, function: { arguments: made.arguments } },
    ),
    '"thought_signature":"SIG"',
  ],
  [
    'behind the arguments',
    'openai-chat',
    chatCall({ ...head, function: made }, { index: 0, ...signed }),
    '"thought_signature":"SIG"',
  ],
  [
    'with the call repeated',
    'openai-chat',
    chatCall({ ...head, function: made }, { ...head, function: made, ...signed }),
    '"thought_signature":"SIG"',
  ],
  [
    'inside the function',
    'openai-chat',
    chatCall({ ...head, function: { ...made, thought: 'T1' } }),
    '"function":{"thought":"T1"',
  ],
  [
    'any other field',
    'openai-chat',
    chatCall({ ...head, function: made, vendor_state: ['A', { b: 1 }] }),
    '"vendor_state":["A",{"b":1}]',
  ],
  [
    'on the message',
    'openai-chat',
    [chunk({ extra_content: { google: { thought_signature: 'MSG' } } }), ...chatCall({ ...head, function: made })],
    '"thought_signature":"MSG"',
  ],
  [
    'LiteLLM, thinking blocks',
    'openai-chat',
    [
      chunk({ thinking_blocks: [{ type: 'thinking', thinking: 'T', signature: 'TS' }] }),
      ...chatCall({ ...head, function: made }),
    ],
    '"signature":"TS"',
  ],
  [
    'Messages, a field of the block',
    'anthropic-messages',
    messagesCall({ caller: { type: 'direct' } }),
    '"caller":{"type":"direct"}',
  ],
  ['Messages, a signature of the block', 'anthropic-messages', messagesCall({ signature: 'SIG' }), '"signature":"SIG"'],
  ['Messages, in a delta', 'anthropic-messages', messagesCall({}, { signature: 'SIG' }), '"signature":"SIG"'],
  [
    'Responses',
    'openai-responses',
    responsesCall({ caller: { type: 'program', caller_id: 'P' } }),
    '"caller":{"type":"program","caller_id":"P"}',
  ],
];

const sse = (events: readonly object[]): string => events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');

test.each(cases)('what a server gives with a call comes back to it: %s (%s)', async (_name, api, events, back) => {
  const answer = (list: readonly object[]): object => ({
    status: 200,
    headers: { 'content-type': 'text/event-stream' },
    body: sse(list),
  });
  const server = await startFaultServer([answer(events), answer(last[api])]);
  servers.push(server);
  const provider = testProvider(testEndpoint(api, server.url, { provider: 'scripted' }));
  const store = openMemoryStore({ now: () => 1 });
  const ref = { provider: 'scripted', api, model: 'm' };
  const first = rig({ provider, store, tools: [noteTool()], connect: () => Promise.resolve(provider) });
  await first.session.switchModel(ref);
  expect(await first.session.submit('go')).toMatchObject({ status: 'completed', text: 'ok' });
  expect(server.requests[1]?.body).toContain(back);
  // A resumed session has it from the log; another model is not sent it.
  const resumed = rig({
    provider,
    store,
    restored: await store.load('s1'),
    tools: [noteTool()],
    connect: () => Promise.resolve(provider),
  });
  await resumed.session.switchModel(ref);
  await resumed.session.submit('again');
  expect(server.requests[2]?.body).toContain(back);
  await resumed.session.switchModel({ ...ref, model: 'other' });
  await resumed.session.submit('and again');
  expect(server.requests[3]?.body).not.toContain(back);
  provider.close();
});
