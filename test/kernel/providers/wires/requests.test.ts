import { loadWire } from '../../../../src/kernel/providers/wires/known-wires.js';
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import type { Stop } from '../../../../src/kernel/core/event.js';
import type { Json, JsonObject } from '../../../../src/kernel/core/json.js';
import type { AssistantMessage, Conversation, Message } from '../../../../src/kernel/core/projection.js';
import { builtInPresets } from '../../../../src/kernel/providers/catalog.js';
import type { Quirks } from '../../../../src/kernel/providers/quirks.js';
import type { WireFacts } from '../../../../src/kernel/providers/wires/wire.js';
import { decode, fold, wires } from './recordings.js';
import { hasBedrockShapes, schemaError } from './request-rules.js';

if (!hasBedrockShapes)
  console.log('Requests: the client of Bedrock is not there to judge them (AGENT_VENDOR_PACKAGES): 1 case skipped');

const tool = {
  name: 'glob',
  description: 'Finds files.',
  input_schema: { type: 'object', properties: { pattern: { type: 'string' } } },
};
const settings = { model_output_size: 32_768 };
const user = (content: string, seq = 3): Message => ({ role: 'user', seq, content });
const call = (id: string, args = '{"pattern": "*"}', success = true): AssistantMessage['calls'][number] => ({
  id,
  name: 'glob',
  arguments: args,
  result: { output: success ? '{"output":"a.ts"}' : '{"error":"no","code":"timeout"}', success },
});
const made = { response_id: 'r1', provider: 'p', model: 'm', stop: 'tool' as Stop };
const answer = (
  api: string,
  text: string,
  calls: AssistantMessage['calls'],
  reasoning?: readonly Json[],
): AssistantMessage => ({
  role: 'assistant',
  seq: 4,
  text,
  data: { ...made, api, ...(reasoning ? { reasoning } : {}) },
  calls,
});
const talk = (messages: readonly Message[], more: Partial<Conversation> = {}): Conversation => ({
  system: 'Be brief.',
  tools: [tool],
  settings,
  messages,
  ...more,
});

function body(
  wire: string,
  conversation: Conversation,
  quirks: Quirks = {},
  more: { toolChoice?: 'none'; extraBody?: JsonObject } = {},
): Record<string, unknown> {
  return wires[wire]!.request(conversation, { provider: 'p', model: 'm', toolChoice: 'auto', quirks, ...more });
}

const cache = { cache_control: { type: 'ephemeral' } };
const inParts = { cache_control_models: '^m$' };

test('Chat Completions: a turn with two calls', () => {
  const messages = [
    user('list'),
    answer('openai-chat', 'Looking.', [call('call_1'), call('call_2', 'oops', false)]),
    user('thanks', 9),
  ];
  expect(body('chat', talk(messages))).toEqual({
    model: 'm',
    stream: true,
    stream_options: { include_usage: true },
    tools: [
      { type: 'function', function: { name: 'glob', description: 'Finds files.', parameters: tool.input_schema } },
    ],
    messages: [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'list' },
      {
        role: 'assistant',
        content: 'Looking.',
        tool_calls: [
          { id: 'call_1', type: 'function', function: { name: 'glob', arguments: '{"pattern": "*"}' } },
          { id: 'call_2', type: 'function', function: { name: 'glob', arguments: '{}' } },
        ],
      },
      { role: 'tool', tool_call_id: 'call_1', content: '{"output":"a.ts"}' },
      { role: 'tool', tool_call_id: 'call_2', content: '{"error":"no","code":"timeout"}' },
      { role: 'user', content: 'thanks' },
    ],
  });
});

test('Messages: a turn with two calls, results first and marked', () => {
  const messages = [
    user('list'),
    answer('anthropic-messages', 'Looking.', [call('toolu_1'), call('call.2', 'oops', false)]),
    user('thanks', 9),
  ];
  const sent = body('messages', talk(messages));
  const [, assistant] = sent.messages as { content: { id: string }[] }[];
  const otherId = assistant?.content[2]?.id;
  expect(otherId).toMatch(/^[a-zA-Z0-9_-]+$/);
  expect(sent).toEqual({
    model: 'm',
    max_tokens: 8192,
    stream: true,
    tools: [tool],
    system: [{ type: 'text', text: 'Be brief.', ...cache }],
    messages: [
      { role: 'user', content: [{ type: 'text', text: 'list', ...cache }] },
      {
        role: 'assistant',
        content: [
          { type: 'text', text: 'Looking.' },
          { type: 'tool_use', id: 'toolu_1', name: 'glob', input: { pattern: '*' } },
          { type: 'tool_use', id: otherId, name: 'glob', input: {} },
        ],
      },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 'toolu_1', content: '{"output":"a.ts"}' },
          { type: 'tool_result', tool_use_id: otherId, content: '{"error":"no","code":"timeout"}', is_error: true },
          { type: 'text', text: 'thanks', ...cache },
        ],
      },
    ],
  });
});

test('Responses: a turn with two calls, without state at the provider', () => {
  const messages = [
    user('list'),
    answer('openai-responses', 'Looking.', [call('call_1'), call('call_2', 'oops', false)]),
  ];
  expect(body('responses', talk(messages))).toEqual({
    model: 'm',
    stream: true,
    store: false,
    include: ['reasoning.encrypted_content'],
    instructions: 'Be brief.',
    tools: [
      { type: 'function', name: 'glob', description: 'Finds files.', parameters: tool.input_schema, strict: false },
    ],
    input: [
      { type: 'message', role: 'user', content: 'list' },
      { type: 'message', role: 'assistant', content: 'Looking.' },
      { type: 'function_call', call_id: 'call_1', name: 'glob', arguments: '{"pattern": "*"}' },
      { type: 'function_call', call_id: 'call_2', name: 'glob', arguments: '{}' },
      { type: 'function_call_output', call_id: 'call_1', output: '{"output":"a.ts"}' },
      { type: 'function_call_output', call_id: 'call_2', output: '{"error":"no","code":"timeout"}' },
    ],
  });
});

test.each<
  readonly [
    name: string,
    wire: string,
    quirks: Quirks,
    more: Partial<Conversation>,
    extra: object,
    want: Record<string, unknown>,
  ]
>([
  [
    'limits and effort',
    'chat',
    { effort: 'reasoning_effort' },
    { settings: { ...settings, max_output_tokens: 50, effort: 'high' } },
    {},
    { max_tokens: 50, reasoning_effort: 'high' },
  ],
  [
    'the other name of the limit',
    'chat',
    { max_tokens_field: 'max_completion_tokens', effort: 'reasoning.effort' },
    { settings: { ...settings, max_output_tokens: 50, effort: 'low' } },
    {},
    { max_completion_tokens: 50, reasoning: { effort: 'low' }, max_tokens: undefined },
  ],
  [
    'effort only where it is known to be taken',
    'chat',
    {},
    { settings: { ...settings, effort: 'high' } },
    {},
    { reasoning_effort: undefined, reasoning: undefined, thinking: undefined },
  ],
  [
    'thinking as a switch',
    'chat',
    { effort: 'thinking' },
    { settings: { ...settings, effort: 'none' } },
    {},
    { thinking: { type: 'disabled' } },
  ],
  ['no stream options', 'chat', { stream_usage: false }, {}, {}, { stream_options: undefined }],
  ['parallel calls', 'chat', { parallel_tool_calls: true }, {}, {}, { parallel_tool_calls: true }],
  ['parallel calls', 'responses', { parallel_tool_calls: true }, {}, {}, { parallel_tool_calls: true }],
  [
    'no tools',
    'chat',
    { parallel_tool_calls: true },
    { tools: [] },
    { toolChoice: 'none' },
    { tools: undefined, parallel_tool_calls: undefined, tool_choice: undefined },
  ],
  [
    'tools forbidden',
    'chat',
    {},
    {},
    { toolChoice: 'none' },
    {
      tool_choice: 'none',
      tools: [
        { type: 'function', function: { name: 'glob', description: 'Finds files.', parameters: tool.input_schema } },
      ],
    },
  ],
  [
    'tools forbidden where the field is refused',
    'chat',
    { tool_choice: false },
    {},
    { toolChoice: 'none' },
    { tool_choice: undefined },
  ],
  [
    'an extra body replaces fields',
    'chat',
    {},
    {},
    { extraBody: { provider: { order: ['x'] }, stream_options: null } },
    { provider: { order: ['x'] }, stream_options: null },
  ],
  [
    'nothing to answer',
    'chat',
    {},
    { system: '', messages: [] },
    {},
    { messages: [{ role: 'user', content: 'Continue.' }] },
  ],
  [
    'limits and effort',
    'responses',
    { effort: 'reasoning.effort' },
    { settings: { ...settings, max_output_tokens: 5, effort: 'high' } },
    {},
    { max_output_tokens: 16, reasoning: { effort: 'high' } },
  ],
  ['tools forbidden', 'responses', {}, {}, { toolChoice: 'none' }, { tool_choice: 'none' }],
  [
    'no system prompt',
    'responses',
    {},
    { system: '', tools: [], messages: [] },
    {},
    { instructions: undefined, tools: undefined, input: [{ type: 'message', role: 'user', content: 'Continue.' }] },
  ],
  [
    'a thinking budget',
    'messages',
    { effort: 'thinking', default_max_output_tokens: 20_000 },
    { settings: { ...settings, effort: 'low' } },
    {},
    { max_tokens: 20_000, thinking: { type: 'enabled', budget_tokens: 4096 } },
  ],
  [
    'a thinking budget larger than the limit',
    'messages',
    { effort: 'thinking' },
    { settings: { ...settings, effort: 'max', max_output_tokens: 3000 } },
    {},
    { max_tokens: 3000, thinking: { type: 'enabled', budget_tokens: 1976 } },
  ],
  [
    'adaptive thinking',
    'messages',
    { effort: 'adaptive' },
    { settings: { ...settings, effort: 'high' } },
    {},
    { thinking: { type: 'adaptive' }, output_config: { effort: 'high' } },
  ],
  ['tools forbidden', 'messages', {}, {}, { toolChoice: 'none' }, { tool_choice: { type: 'none' }, tools: [tool] }],
  [
    'no system prompt: the tools are marked',
    'messages',
    {},
    { system: ' ' },
    {},
    { system: undefined, tools: [{ ...tool, ...cache }] },
  ],
  [
    'nothing to answer',
    'messages',
    {},
    { messages: [] },
    {},
    { messages: [{ role: 'user', content: [{ type: 'text', text: 'Continue.', ...cache }] }] },
  ],
])('%s (%s)', (_name, wire, quirks, more, extra, want) => {
  const sent = body(wire, talk([user('hi')], more), quirks, extra);
  expect(Object.fromEntries(Object.keys(want).map((key) => [key, sent[key]]))).toEqual(want);
});

test('Messages: a session without tools any more names those that its history calls, and forbids them', () => {
  const sent = body(
    'messages',
    talk([user('x'), answer('openai-chat', '', [call('a'), call('b')]), user('y', 9)], { tools: [] }),
  );
  expect([sent.tools, sent.tool_choice]).toEqual([
    [{ name: 'glob', description: '', input_schema: { type: 'object' } }],
    { type: 'none' },
  ]);
  expect(schemaError('anthropic-messages:request', sent)).toBeNull();
  expect(body('messages', talk([user('x')], { tools: [] })).tools).toBeUndefined();
});

/** What a preset's model is sent for an effort setting, with what the table knows of it or nothing. */
const converse = await loadWire('bedrock-converse');

function effortSent(
  preset: string,
  model: string,
  effort: string,
  efforts: readonly string[] | null = null,
  facts: Partial<WireFacts> = {},
): Record<string, unknown> {
  const { api, quirks = {} } = builtInPresets[preset]!;
  const name = api === 'openai-chat' ? 'chat' : api === 'openai-responses' ? 'responses' : 'messages';
  const asked = talk([user('hi')], { settings: { ...settings, effort } });
  const options = {
    provider: preset,
    model,
    toolChoice: 'auto',
    quirks,
    facts: { efforts, maxOutputTokens: null, ...facts },
  } as const;
  const wire = api === 'bedrock-converse' ? converse : wires[name]!;
  const sent = wire.request(asked, options);
  expect(
    schemaError(preset === 'openrouter' ? 'openrouter-chat:request' : `${api}:request`, sent),
    `${preset}/${model} ${effort}`,
  ).toBeNull();
  return Object.fromEntries(
    ['reasoning_effort', 'reasoning', 'output_config', 'thinking'].flatMap((key) =>
      sent[key] === undefined ? [] : [[key, sent[key]]],
    ),
  );
}

test.each<readonly [preset: string, model: string, effort: string, known: readonly string[] | null, sent: object]>([
  [
    'anthropic',
    'claude-sonnet-5',
    'minimal',
    null,
    { thinking: { type: 'adaptive' }, output_config: { effort: 'low' } },
  ],
  [
    'anthropic',
    'claude-sonnet-5',
    'xhigh',
    ['low', 'medium', 'high', 'xhigh', 'max'],
    { thinking: { type: 'adaptive' }, output_config: { effort: 'xhigh' } },
  ],
  ['anthropic', 'claude-sonnet-5', 'none', null, {}],
  ['anthropic', 'claude-sonnet-4-5', 'minimal', ['low'], { thinking: { type: 'enabled', budget_tokens: 1024 } }],
  ['groq', 'openai/gpt-oss-120b', 'minimal', null, { reasoning_effort: 'low' }],
  ['groq', 'openai/gpt-oss-120b', 'max', null, { reasoning_effort: 'high' }],
  ['groq', 'openai/gpt-oss-120b', 'none', null, {}],
  ['xai', 'grok-3-mini', 'minimal', null, { reasoning_effort: 'low' }],
  ['xai', 'grok-3-mini', 'medium', null, { reasoning_effort: 'high' }],
  ['xai', 'grok-4', 'high', null, {}],
  ['xai', 'grok-9', 'high', ['low', 'high'], { reasoning_effort: 'high' }],
  ['google', 'gemini-2.5-pro', 'max', null, { reasoning_effort: 'high' }],
  ['google', 'gemini-2.5-pro', 'minimal', null, { reasoning_effort: 'low' }],
  ['openai', 'o3', 'minimal', null, { reasoning: { effort: 'low' } }],
  ['openai', 'o3', 'none', ['low', 'medium', 'high'], {}],
  ['openai', 'gpt-5', 'minimal', ['minimal', 'low', 'medium', 'high'], { reasoning: { effort: 'minimal' } }],
  ['openai', 'gpt-4o', 'high', null, {}],
  ['openrouter', 'x/y', 'max', null, { reasoning: { effort: 'xhigh' } }],
  ['deepseek', 'deepseek-chat', 'max', ['none', 'high'], { thinking: { type: 'enabled' } }],
  ['mistral', 'mistral-large-latest', 'high', null, {}],
])('%s/%s asked for the effort %s, of which the table knows %j', (preset, model, effort, known, sent) => {
  expect(effortSent(preset, model, effort, known)).toEqual(sent);
});

test('every level of effort gives each preset a request that its vendor takes', () => {
  for (const [preset, { api, default_model: model }] of Object.entries(builtInPresets)) {
    if (api === 'offline') continue;
    for (const effort of ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']) {
      for (const name of [model ?? 'm', 'another']) effortSent(preset, name, effort);
    }
  }
});

test.each([
  ['claude-3-5-haiku-20241022', null, undefined, 8192],
  ['claude-3-haiku-20240307', null, undefined, 4096],
  ['claude-3-opus-latest', null, 60_000, 4096],
  ['claude-3-7-sonnet', null, undefined, 32_000],
  ['claude-opus-4-1', 32_000, 50_000, 32_000],
  ['claude-opus-4-1', 32_000, 100, 100],
  ['claude-x', null, undefined, 32_000],
] as const)('Messages: %s, which can give %j tokens, is asked for %j: %j', (model, maxOutputTokens, wished, sent) => {
  const { quirks = {} } = builtInPresets.anthropic!;
  const asked = talk([user('hi')], {
    settings: { ...settings, ...(wished === undefined ? {} : { max_output_tokens: wished }) },
  });
  expect(
    wires.messages!.request(asked, {
      provider: 'p',
      model,
      toolChoice: 'auto',
      quirks,
      facts: { efforts: null, maxOutputTokens },
    }).max_tokens,
  ).toBe(sent);
});

test('Chat Completions with cache marks: system and the last two user sides, contents always in parts', () => {
  const messages = [
    user('one'),
    answer('openai-chat', '', [call('a'), call('b')]),
    answer('openai-chat', 'ok', []),
    user('two', 9),
  ];
  expect(body('chat', talk(messages), inParts).messages).toMatchObject([
    { role: 'system', content: [{ type: 'text', text: 'Be brief.', ...cache }] },
    { role: 'user', content: [{ type: 'text', text: 'one' }] },
    { role: 'assistant', content: null },
    { role: 'tool', content: [{ type: 'text', text: '{"output":"a.ts"}' }] },
    { role: 'tool', content: [{ type: 'text', text: '{"output":"a.ts"}', ...cache }] },
    { role: 'assistant', content: 'ok' },
    { role: 'user', content: [{ type: 'text', text: 'two', ...cache }] },
  ]);
  expect(JSON.stringify(body('chat', talk(messages), { cache_control_models: '^anthropic/' }))).not.toContain(
    'cache_control',
  );
});

test('what the user says in a row is one message, and the sides take turns', () => {
  const messages = [
    user('one'),
    user('two'),
    answer('openai-chat', 'ok', []),
    answer('openai-chat', 'go', [call('a')]),
    user('three', 9),
    user('four', 10),
  ];
  const result = { tool_call_id: 'a', content: '{"output":"a.ts"}' };
  const calls = [{ id: 'a', type: 'function', function: { name: 'glob', arguments: '{"pattern": "*"}' } }];
  const turns = [
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: 'one\n\ntwo' },
    { role: 'assistant', content: 'ok' },
    { role: 'user', content: 'Continue.' },
    { role: 'assistant', content: 'go', tool_calls: calls },
    { role: 'tool', ...result },
  ];
  expect(body('chat', talk(messages)).messages).toEqual([...turns, { role: 'user', content: 'three\n\nfour' }]);
  const noted = [...turns, { role: 'assistant', content: 'Noted.' }, { role: 'user', content: 'three\n\nfour' }];
  expect(body('chat', talk(messages), { assistant_after_tool_models: '^M$' }).messages).toEqual(noted);
  expect((body('chat', talk(messages), inParts).messages as unknown[]).at(-1)).toEqual({
    role: 'user',
    content: [
      { type: 'text', text: 'three' },
      { type: 'text', text: 'four', ...cache },
    ],
  });
  const said = body('responses', talk(messages), { assistant_after_tool_models: '^M$' }).input as readonly {
    type: string;
    role?: string;
    content?: string;
  }[];
  expect(said.map(({ type, role, content: text }) => words(role ?? type, text))).toEqual([
    'user one\n\ntwo',
    'assistant ok',
    'user Continue.',
    'assistant go',
    'function_call',
    'function_call_output',
    'assistant Noted.',
    'user three\n\nfour',
  ]);
});

const details = [
  { type: 'reasoning.text', text: 'Hm.', signature: 'S==', format: 'anthropic-claude-v1', index: 0 },
  { type: 'reasoning.encrypted', data: 'E==', index: 1 },
];

test('Chat Completions: own reasoning goes back in the field its server wants', () => {
  const own = (reasoning: readonly Json[], quirks: Quirks): unknown =>
    (body('chat', talk([user('x'), answer('openai-chat', 'ok', [], reasoning)]), quirks).messages as unknown[]).at(-1);
  const plain = { role: 'assistant', content: 'ok' };
  expect(own([{ type: 'reasoning_content', text: 'Hm.' }], { reasoning_return: 'reasoning_content' })).toEqual({
    ...plain,
    reasoning_content: 'Hm.',
  });
  expect(own(details, { reasoning_return: 'reasoning_details' })).toEqual({ ...plain, reasoning_details: details });
  expect(own([{ type: 'reasoning_content', text: 'Hm.' }], { reasoning_return: 'reasoning_details' })).toEqual({
    ...plain,
    reasoning: 'Hm.',
  });
  expect(own(details, {})).toEqual(plain);
  expect(own([], { reasoning_return: 'reasoning_content' })).toEqual({ ...plain, reasoning_content: ' ' });
});

test('reasoning that another provider, wire or model made is dropped', () => {
  const items: Readonly<Record<string, readonly Json[]>> = {
    'openai-chat': details,
    'openai-responses': [{ type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'g' }],
    'anthropic-messages': [{ type: 'thinking', thinking: 'Hm.', signature: 'S' }],
  };
  for (const [name, wire] of Object.entries(wires)) {
    for (const [api, reasoning] of Object.entries(items)) {
      for (const change of [{}, { provider: 'q' }, { model: 'n' }]) {
        const base = answer(api, 'ok', [call('a')], reasoning);
        const message: Message = { ...base, data: { ...made, api, reasoning, ...change } };
        const text = JSON.stringify(body(name, talk([user('x'), message]), { reasoning_return: 'reasoning_details' }));
        const kept = wire.api === api && Object.keys(change).length === 0;
        expect(text.includes(JSON.stringify(reasoning[0])), `${name} ${api} ${JSON.stringify(change)}`).toBe(kept);
      }
    }
  }
});

const words = (...parts: readonly unknown[]): string => parts.filter((part) => typeof part === 'string').join(' ');

/** The next request after a recorded answer: what must come back does, byte for byte and in its place. */
function replay(wire: 'messages' | 'responses', file: string): readonly Record<string, unknown>[] {
  const got = fold(decode(wires[wire]!, [readFileSync(pathToFileURL(`fixtures/${file}`))]));
  const calls = got.calls.map((item) => ({ ...item, result: { output: '{"output":""}', success: true } }));
  const sent = body(wire, talk([user('x'), answer(wires[wire]!.api, got.text, calls, got.kept as readonly Json[])]));
  expect(schemaError(`${wires[wire]!.api}:request`, sent)).toBeNull();
  if (wire === 'responses') return sent.input as readonly Record<string, unknown>[];
  return (sent.messages as { content: Record<string, unknown>[] }[])[1]?.content ?? [];
}

test('Messages: thinking, server tools and calls come back where they stood', () => {
  const types = (file: string): unknown[] =>
    replay('messages', file).map(({ type, id, text }) => words(type, id ?? text));
  expect(replay('messages', 'anthropic/thinking-text-calls.sse')[0]).toEqual({
    type: 'thinking',
    thinking: 'Let me look.',
    signature: 'EqQB==',
  });
  expect(types('anthropic/thinking-text-calls.sse')).toEqual([
    'thinking',
    'text Looking.',
    'tool_use toolu_1',
    'tool_use toolu_2',
  ]);
  expect(types('anthropic/interleaved-thinking.sse')).toEqual([
    'thinking',
    'tool_use toolu_1',
    'redacted_thinking',
    'tool_use toolu_2',
  ]);
  expect(types('anthropic/server-tools.sse')).toEqual([
    'text Searching.',
    'server_tool_use srvtoolu_1',
    'web_search_tool_result',
    'text Found it.',
  ]);
  expect(types('anthropic/unanswered-server-tool.sse')).toEqual(['text Searching.']);
});

test('Messages: a paused answer goes back unchanged, but without its open server tool after a user message', () => {
  const search = { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} };
  const thinking = { type: 'thinking', thinking: 'Hm.', signature: 'S' };
  const paused: Message = {
    role: 'assistant',
    seq: 4,
    text: 'Searching.',
    calls: [],
    data: {
      ...made,
      stop: 'pause',
      api: 'anthropic-messages',
      reasoning: [thinking, { type: 'layout_text', units: 10 }, search],
    },
  };
  const effort = { settings: { ...settings, effort: 'low', max_output_tokens: 9000 } };
  const sent = body('messages', talk([user('x'), paused], effort), { effort: 'thinking' });
  expect((sent.messages as { content: unknown }[])[1]?.content).toEqual([
    thinking,
    { type: 'text', text: 'Searching.' },
    search,
  ]);
  expect(sent.thinking).toBeDefined();
  const found = answer(
    'anthropic-messages',
    'Found.',
    [],
    [{ type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [] }],
  );
  const went = body('messages', talk([user('x'), paused, found, user('y', 9)])).messages as { content: unknown[] }[];
  expect(went[1]?.content).toHaveLength(5);
  const broken = body('messages', talk([user('x'), paused, user('y', 9)])).messages as { content: unknown[] }[];
  expect(broken[1]?.content).toEqual([thinking, { type: 'text', text: 'Searching.' }]);
});

test('Responses: encrypted reasoning comes back before what it led to', () => {
  const types = (file: string): unknown[] =>
    replay('responses', file).map(({ type, role, call_id: id }) => words(type === 'message' ? role : type, id));
  expect(types('openai/responses-reasoning-and-call.sse')).toEqual([
    'user',
    'reasoning',
    'assistant',
    'function_call call_a',
    'function_call_output call_a',
  ]);
  expect(types('openai/responses-interleaved.sse')).toEqual([
    'user',
    'reasoning',
    'function_call call_a',
    'reasoning',
    'function_call call_b',
    'function_call_output call_a',
    'function_call_output call_b',
  ]);
  expect(types('openai/responses-server-tools.sse')).toEqual(['user', 'web_search_call', 'assistant']);
});

test('a thinking budget is left out while a call is answered that was made without thinking', () => {
  const messages = [user('x'), answer('openai-chat', '', [call('a')])];
  const effort = { settings: { ...settings, effort: 'low', max_output_tokens: 9000 } };
  expect(body('messages', talk(messages, effort), { effort: 'thinking' }).thinking).toBeUndefined();
  expect(body('messages', talk([...messages, user('y', 9)], effort), { effort: 'thinking' }).thinking).toBeUndefined();
  expect(
    body('messages', talk([...messages, answer('openai-chat', 'ok', []), user('y', 9)], effort), { effort: 'thinking' })
      .thinking,
  ).toBeDefined();
  const own = answer('anthropic-messages', '', [call('a')], [{ type: 'thinking', thinking: 'Hm.', signature: 'S' }]);
  expect(body('messages', talk([user('x'), own], effort), { effort: 'thinking' }).thinking).toBeDefined();
});

test('a list that ends with the assistant is trimmed, because Messages refuses it otherwise', () => {
  const sent = body('messages', talk([user('x'), answer('anthropic-messages', 'so far \n', [])]));
  expect(sent.messages).toMatchObject([
    { role: 'user' },
    { role: 'assistant', content: [{ type: 'text', text: 'so far' }] },
  ]);
});

test('arguments go back as they came; what is not an object, or too deep, goes back as {}', () => {
  const rows: readonly (readonly [received: string, sent: string])[] = [
    ['{"a": 1.0, "b":"\\n"}', '{"a": 1.0, "b":"\\n"}'],
    ['', '{}'],
    ['null', '{}'],
    ['[1]', '{}'],
    ['{"a":', '{}'],
    ['{}{}', '{}'],
    ['{"a":"\\ud83d"}', '{"a":"\ufffd"}'],
    [`${'{"a":'.repeat(70)}1${'}'.repeat(70)}`, '{}'],
  ];
  const messages = [
    user('x'),
    answer(
      'openai-chat',
      '',
      rows.map(([received], index) => call(`c${index}`, received)),
    ),
  ];
  const sent = body('chat', talk(messages)).messages as { tool_calls?: { function: { arguments: string } }[] }[];
  expect(sent[2]?.tool_calls?.map((item) => item.function.arguments)).toEqual(rows.map(([, args]) => args));
  const blocks = (body('messages', talk(messages)).messages as { content: { input?: unknown }[] }[])[1]?.content;
  expect(blocks?.map(({ input }) => input)).toEqual(rows.map(([, args]) => JSON.parse(args) as unknown));
});

test('ids take the form their vendor demands, alike in call and result', () => {
  const ids = ['call_1', 'functions.glob:0', 'x'.repeat(90), '', 'é ü'];
  const messages = [
    user('x'),
    answer(
      'openai-chat',
      '',
      ids.map((id) => call(id)),
    ),
  ];
  const forms: readonly (readonly [string, Quirks, RegExp])[] = [
    ['chat', {}, /^[\w:.-]{1,40}$/],
    ['chat', { call_id_form: 'nine' }, /^[a-zA-Z0-9]{9}$/],
    ['chat', inParts, /^[\w-]{1,64}$/],
    ['messages', {}, /^[\w-]{1,64}$/],
    ['responses', {}, /^[\w:.-]{1,64}$/],
  ];
  for (const [wire, quirks, form] of forms) {
    const text = JSON.stringify(body(wire, talk(messages), quirks));
    const inCalls = [
      ...text.matchAll(wire === 'responses' ? /"function_call","call_id":"([^"]*)"/g : /"id":"([^"]*)"/g),
    ].map((match) => match[1]);
    const inResults = [
      ...text.matchAll(/"(?:tool_call_id|tool_use_id|function_call_output","call_id)":"([^"]*)"/g),
    ].map((match) => match[1]);
    expect(inCalls).toEqual(inResults);
    expect(new Set(inCalls).size).toBe(ids.length);
    expect(inCalls.filter((id) => !form.test(id ?? ''))).toEqual([]);
  }
});
