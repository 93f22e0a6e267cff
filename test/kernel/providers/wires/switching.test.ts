import { afterEach, expect, test } from 'vitest';
import type { Event, EventDraft } from '../../../../src/kernel/core/event.js';
import { project } from '../../../../src/kernel/core/projection.js';
import type { Provider } from '../../../../src/kernel/core/provider.js';
import type { Quirks } from '../../../../src/kernel/providers/quirks.js';
import { createTextProtocol } from '../../../../src/kernel/providers/text/protocol.js';
import { noteTool, rig } from '../../agent/harness.js';
import { testProvider } from '../http/http-rig.js';
import { number } from '../logs.js';
import { startVendor, type VendorServer } from '../vendor-server.js';
import { vendorEndpoint, vendors } from '../vendors.js';
import { wires } from './recordings.js';
import { rules, schemaError } from './request-rules.js';

type Draft = Omit<Event, 'seq' | 'createdAt'>;

interface Speaker {
  readonly wire: keyof typeof wires;
  readonly api: string;
  readonly quirks: Quirks;
  readonly reasoning: readonly unknown[];
}

const speakers: Readonly<Record<string, Speaker>> = {
  chat: {
    wire: 'chat',
    api: 'openai-chat',
    quirks: { reasoning_return: 'reasoning_content' },
    reasoning: [{ type: 'reasoning_content', text: 'SECRET-chat' }],
  },
  responses: {
    wire: 'responses',
    api: 'openai-responses',
    quirks: {},
    reasoning: [{ type: 'reasoning', id: 'rs', summary: [], encrypted_content: 'SECRET-responses' }],
  },
  messages: {
    wire: 'messages',
    api: 'anthropic-messages',
    quirks: { default_max_output_tokens: 4000 },
    reasoning: [
      { type: 'thinking', thinking: 'SECRET-messages', signature: 'c2ln' },
      { type: 'layout_text', units: 2 },
      { type: 'layout_call' },
    ],
  },
  text: { wire: 'chat', api: 'openai-chat', quirks: { tool_protocol: 'text' }, reasoning: [] },
};

const tools = [
  {
    name: 'glob',
    description: 'Finds.',
    input_schema: { type: 'object', properties: { pattern: { type: 'string' } } },
  },
];
const head: readonly Draft[] = [
  { kind: 'system', content: 'S', data: null },
  { kind: 'tools', content: '', data: { tools, settings: { model_output_size: 1000 } } },
  { kind: 'user', content: 'go', data: null },
];
const called = (id: string, args = '{"pattern":"*"}', name = 'glob'): Draft => ({
  kind: 'tool_call',
  content: '',
  data: { id, type: 'function', function: { name, arguments: args }, response_id: 'r4' },
});
const started = (id: string): Draft => ({ kind: 'tool_started', content: null, data: { tool_call_id: id } });
const result = (id: string, success = true): Draft => ({
  kind: 'tool_result',
  content: '',
  data: {
    tool_call_id: id,
    name: 'glob',
    output: success ? '{"output":"a\\n```\\n😀"}' : '{"error":"no","code":"not_found"}',
    success,
    duration_ms: 1,
  },
});

const states: Readonly<Record<string, (said: (text: string, more?: object) => Draft) => readonly Draft[]>> = {
  'nothing said': () => [],
  text: (said) => [said('Hello.')],
  'reasoning alone': (said) => [said('')],
  'text cut off by the user': (said) => [said('Hel', { stop: 'interrupted', interrupted: true })],
  'a call, answered': (said) => [said('I look.'), called('c1'), started('c1'), result('c1')],
  'a call without text': () => [called('c1'), started('c1'), result('c1')],
  'parallel calls, one failed': (said) => [
    said('I look.'),
    called('c1'),
    called('c2'),
    called('c3', '{broken'),
    started('c1'),
    result('c1'),
    started('c2'),
    result('c2', false),
    result('c3', false),
  ],
  'a call that never ran': (said) => [said('I look.'), called('c1')],
  'a call that was running': (said) => [said(''), called('c1'), started('c1')],
  'parallel calls, the second was running, the third never ran': (said) => [
    said('I look.'),
    called('c1'),
    called('c2'),
    called('c3'),
    started('c1'),
    result('c1'),
    started('c2'),
  ],
  'strange ids and names': (said) => [said('x'), called('functions.glob:0 ü', '', 'no such tool!'), called('', '[1]')],
};

test('after a switch between any two protocols, the next request is accepted and holds no foreign reasoning', () => {
  let cases = 0;
  for (const [fromName, from] of Object.entries(speakers))
    for (const [toName, to] of Object.entries(speakers))
      for (const [state, make] of Object.entries(states)) {
        const said = (text: string, more: object = {}): Draft => ({
          kind: 'assistant',
          content: text,
          data: {
            response_id: 'r4',
            provider: `p-${fromName}`,
            api: from.api,
            model: 'm',
            stop: 'stop',
            ...(from.reasoning.length > 0 ? { reasoning: from.reasoning } : {}),
            ...more,
          },
        });
        const log = number([
          ...head,
          ...make(said),
          { kind: 'model', content: '', data: { provider: `p-${toName}`, model: 'm' } },
          { kind: 'user', content: 'go on', data: null },
        ]);
        const asked = project(log);
        const wire = createTextProtocol().wire(wires[to.wire]!, asked, to.quirks);
        const body = wire.request(asked, {
          provider: `p-${toName}`,
          model: 'm',
          toolChoice: 'auto',
          quirks: to.quirks,
        });
        const about = `${fromName} to ${toName}, ${state}`;
        expect(rules[to.api]?.(body), about).toEqual([]);
        expect(schemaError(`${to.api}:request`, body), about).toBeNull();
        if (fromName !== toName) expect(JSON.stringify(body), about).not.toContain('SECRET');
        cases++;
      }
  console.log(`Switching: ${cases} states accepted`);
});

const servers: VendorServer[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close();
});

test('one session runs a turn with tools on six providers and the first again; no request is refused', async () => {
  const names = ['openai', 'anthropic', 'openrouter', 'ollama', 'deepseek', 'mistral', 'openai'];
  const opened = new Map<string, { readonly server: VendorServer; readonly provider: Provider }>();
  for (const name of new Set(names)) {
    const server = await startVendor(vendors[name]!);
    servers.push(server);
    opened.set(name, { server, provider: testProvider(vendorEndpoint(name, server.url).endpoint, { maxRetries: 0 }) });
  }
  const note = noteTool();
  const opening: EventDraft[] = [
    { kind: 'system', content: 'S', data: null },
    {
      kind: 'tools',
      content: 'note',
      data: {
        tools: [{ name: note.name, description: note.description, input_schema: note.input_schema }],
        settings: { model_output_size: 1000 },
      },
    },
  ];
  const { session } = rig({
    provider: opened.get('openai')!.provider,
    tools: [note],
    opening,
    connect: (ref) => Promise.resolve(opened.get(ref.provider)!.provider),
  });
  for (const [turn, name] of names.entries()) {
    opened.get(name)!.server.script(
      {
        reasoning: 'Hm.',
        text: 'I note.',
        calls: [
          { name: 'note', arguments: `{"text":"${turn}"}` },
          { name: 'note', arguments: '{"wrong":1}' },
        ],
        split: 3,
      },
      { text: `Noted ${turn}.` },
    );
    await session.switchModel(vendorEndpoint(name, 'http://127.0.0.1:1').ref);
    const end = await session.submit(`note ${turn}`);
    expect(end, name).toMatchObject({ status: 'completed', text: `Noted ${turn}.`, toolCalls: 2 });
  }
  expect(note.ran).toEqual(names.map((_name, turn) => String(turn)));
  const all = [...opened.values()].map(({ server }) => server);
  expect(all.flatMap(({ refusals }) => refusals)).toEqual([]);
  console.log(
    `Six providers in one session: ${all.reduce((sum, { bodies }) => sum + bodies.length, 0)} requests, 0 refused`,
  );
});

test('over fifty turns each request continues the one before, cache marks aside, on every wire and as text', () => {
  const turns = Array.from({ length: 50 }, (_unused, n): readonly Draft[] => [
    { kind: 'user', content: `question ${n}`, data: null },
    {
      kind: 'assistant',
      content: n % 3 === 0 ? '' : `look ${n}`,
      data: { response_id: `r${n}`, provider: 'p', api: 'openai-chat', model: 'm', stop: 'tool' },
    },
    ...[0, 1].map((k): Draft => ({
      kind: 'tool_call',
      content: '',
      data: {
        id: `c${n}_${k}`,
        type: 'function',
        function: { name: 'glob', arguments: '{"pattern":"*"}' },
        response_id: `r${n}`,
      },
    })),
    ...[0, 1].map((k): Draft => ({ ...result(`c${n}_${k}`, k === 0) })),
    {
      kind: 'assistant',
      content: `done ${n}`,
      data: { response_id: `s${n}`, provider: 'p', api: 'openai-chat', model: 'm', stop: 'stop' },
    },
  ]);
  const events = number([...head, ...turns.flat()]);
  const mark = ',"cache_control":{"type":"ephemeral"}';
  let requests = 0;
  for (const [name, quirks] of [
    ['chat', {}],
    ['chat', { cache_control_models: '.' }],
    ['responses', {}],
    ['messages', { default_max_output_tokens: 9 }],
    ['chat', { tool_protocol: 'text' }],
    ['messages', { tool_protocol: 'text', default_max_output_tokens: 9 }],
  ] as const) {
    const protocol = createTextProtocol();
    let before = '';
    for (const [index, event] of events.entries()) {
      const isLastResult = event.kind === 'tool_result' && events[index + 1]?.kind === 'assistant';
      if (event.kind !== 'user' && !isLastResult) continue;
      const asked = project(events.slice(0, index + 1));
      const text = protocol
        .wire(wires[name]!, asked, quirks)
        .requestParts(asked, { provider: 'p', model: 'm', toolChoice: 'auto', quirks })
        .join('')
        .replaceAll(mark, '');
      expect(text.startsWith(before), `${name} ${JSON.stringify(quirks)} at ${index}`).toBe(true);
      // Without the brackets that close the list, and as what the user says next may go into the last message too.
      const isParts = 'cache_control_models' in quirks || (name === 'messages' && !('tool_protocol' in quirks));
      before = text.slice(0, text.lastIndexOf(isParts ? ']}]' : name === 'messages' ? '"}]}]' : '"}]'));
      requests++;
    }
  }
  console.log(`Prefix: ${requests} requests of 50 turns, each continuing the one before`);
});
